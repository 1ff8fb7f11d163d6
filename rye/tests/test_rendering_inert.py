"""Where a value may stand in a command line, and which values may stand there."""

from __future__ import annotations

import re
from typing import Any

import pytest
from rye.errors import ConfigTemplateError, ParameterError
from rye.executor.config.command_line import CommandLine, render_command_line
from rye.executor.config.templates import Names

PROJECT = "/home/me/my project; $(id)"
ALONE = "pass it as an argument of its own"
RUNS = "is part of text that a program may run"
OTHERS = {
    "value": f"""{ALONE}, for example sh -c 'echo "$1"' sh {{x}}, or write a shell script that """
    "reads RYE_PARAM_X (rye new --runtime bash)",
    "folder": f"""{ALONE}, for example sh -c 'cd "$1"' sh {{project_path}}""",
    "variable": "in a shell script, write $WORD without braces, and the shell expands it (if it is "
    "from a .env, also add it to permissions.env); "
    'elsewhere give the whole text a name in env_config.env, as in TEXT: "…${WORD}…", and write '
    "${TEXT}",
    "below": f"{ALONE}, or write / after the folder",
    "stdin": "make it the whole text, or a value of a mapping, which becomes JSON",
}
NAME_OR = f"{ALONE} or as --option={{x}}, or "
INTEGER = "declare it as an integer"
FOLDER = "write ${FOLDER}/… with FOLDER: /… in env_config.env, or "
AFTER_AN_OPTION = "is part of an argument that follows an option and may be code"
BEGINNING = "is part of text that does not begin with two letters or ./"
TOUCHES = "touches a letter, a digit or another value"


def line(command: str, *args: Any, input_data: Any = None, **parameters: Any) -> CommandLine:
    names = Names(
        injected={"project_path": PROJECT, "tool_dir": "/tools"},
        parameters=parameters,
        declared=None,
        env={"HOME": "/home/me", "WORD": "it's $(id)", "EMPTY": ""},
        tool="a/tool",
    )
    return render_command_line({"command": command, "args": args, "input_data": input_data}, names)


def refusal(*argv: Any, **given: Any) -> str:
    with pytest.raises(ConfigTemplateError) as caught:
        line(*argv, **given)
    return str(caught.value)


@pytest.mark.parametrize("value", ["", "-rf", "$(id)", "a b\n'\"", "{x} ${HOME}", "../..", "/etc"])
def test_a_whole_argument_and_the_end_of_a_long_option_take_any_value(value: str) -> None:
    args = ["{x}", "--text={x}", "-c", "{x}", "--filter-2={x}"]
    wanted = [value, f"--text={value}", "-c", value, f"--filter-2={value}"]
    assert line("tool", *args, x=value).args == wanted
    assert line("cat", input_data="{x}", x=value).input_data == value


@pytest.mark.parametrize(
    ("template", "value", "wanted"),
    [
        ("{project_path}/{x}", "src/a.py", f"{PROJECT}/src/a.py"),
        ("{project_path}/src/{x}.py", ".hidden/a:b_c-d", f"{PROJECT}/src/.hidden/a:b_c-d.py"),
        ("--file={tool_dir}/{x}", "Größe/日本", "--file=/tools/Größe/日本"),
        ("{project_path}/{x}", "folder/", f"{PROJECT}/folder/"),
        ("${HOME}/notes/{x}", "a/b", "/home/me/notes/a/b"),
        ("out/{x}.txt", "report", "out/report.txt"),
        ("out/{x}.txt", "Größe-2.b", "out/Größe-2.b.txt"),
        ("./{x}", ".hidden", "./.hidden"),
        ("refs/heads/{x}", "main", "refs/heads/main"),
        ("name_{x}", "a:b", "name_a:b"),
        ("out/{x}/{x}", "a", "out/a/a"),
        ("{x}p", 3, "3p"),
        ("-j{x}", 12, "-j12"),
        ("s/a/b/{x}", 2, "s/a/b/2"),
        ("{x}:{x}", 0, "0:0"),
    ],
)
def test_an_inert_value_stands_in_a_path_or_a_name(template: str, value: Any, wanted: str) -> None:
    assert line("tool", template, x=value).args == [wanted]


def test_a_name_stands_after_the_end_of_options_and_after_a_complete_option() -> None:
    args = ["-v", "--", "out/{x}", "--color=never", "out/{x}"]
    assert line("ls", *args, x="a").args == ["-v", "--", "out/a", "--color=never", "out/a"]


def test_the_arguments_of_a_script_take_a_folder_and_a_name() -> None:
    args = ["-c", 'cd "$1" && cat "$2"', "sh", "{project_path}", "out/{x}"]
    assert line("sh", *args, x="a").args[-2:] == [PROJECT, "out/a"]


A_PATH = "a relative path of letters, digits and _ - . : /, where no name is .. or begins with -"
A_NAME = "a name of letters, digits and _ - . : that does not begin with -"


@pytest.mark.parametrize(
    "value",
    ["", " ", "a b", "..", ".", "../a", "-rf", "a/../b", "a//b", "/etc", "a\n", "a;b", "$(id)", "~",
     "a*", "a=b", "a,b", "a@b", "a'b", "a\\b", "\u202ea", "a\u2028b", "a\uff0fb", ["a"],
     {"a": "b"}],
)  # fmt: skip
@pytest.mark.parametrize(
    ("template", "expected"),
    [("{project_path}/{x}", A_PATH), ("out/{x}.txt", A_NAME)],
)
def test_a_value_that_is_not_inert_is_refused_in_a_path_and_in_a_name(
    template: str, expected: str, value: Any
) -> None:
    with pytest.raises(ParameterError) as caught:
        line("tool", template, x=value)
    assert str(caught.value) == (
        f"invalid parameters for 'a/tool': parameters.x: expected {expected}, because it is part "
        "of a longer text"
    )


@pytest.mark.parametrize("value", ["a/b", "a/", "/a"])
def test_a_name_has_no_slash(value: str) -> None:
    with pytest.raises(ParameterError, match="expected a name of letters"):
        line("cat", "out/{x}", x=value)


@pytest.mark.parametrize("value", [-1, 1.5, True, "3", None])
def test_only_an_integer_that_is_not_negative_may_stand_anywhere(value: Any) -> None:
    assert refusal("sed", "{x}p", x=value) == (
        f"'a/tool': config.args[0]: {{x}} {BEGINNING}; {NAME_OR}"
        f"write {{project_path}}/{{x}}p if it is a path, or {INTEGER}"
    )


@pytest.mark.parametrize(
    "template",
    [
        "echo {x}", "a={x}", "'{x}'", '"{x}"', "$({x})", "`{x}`", "{x};", "({x})", "[{x}]", "{x},1",
        "a@{x}", "a*{x}", "{x}\n", "!{x}", "%{x}", "#{x}", "~{x}", "\\{x}", "--a=b={x}",
        "--a_b={x}", "-o={x}", "+{x}", "{x}{unknown}", "ä/{x}", "--a=b {x}",
    ],
)  # fmt: skip
@pytest.mark.parametrize("value", ["word", 3])
def test_other_text_takes_no_value(template: str, value: str | int) -> None:
    assert refusal("tool", template, x=value) == (
        f"'a/tool': config.args[0]: {{x}} {RUNS}; {OTHERS['value']}"
    )


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (["-e", "out/{x}"], AFTER_AN_OPTION),
        (["-n", "1", "-pe", "out/{x}"], AFTER_AN_OPTION),
        (["--expression", "out/{x}"], AFTER_AN_OPTION),
        (["--output=out/{x}"], AFTER_AN_OPTION),
        (["-e", "{gone}", "out/{x}"], AFTER_AN_OPTION),
        (["{dash}", "out/{x}"], AFTER_AN_OPTION),
        (["-m{x}"], BEGINNING),
        (["--{x}"], BEGINNING),
        (["-{x}"], BEGINNING),
        (["{x}.txt"], BEGINNING),
        (["/foo/{x}"], BEGINNING),
        (["s/a/b/{x}"], BEGINNING),
        (["1s/a/b/{x}"], BEGINNING),
        ([":{x}"], BEGINNING),
        (["out{x}"], TOUCHES),
        (["out/{x}txt"], TOUCHES),
        (["out/{x}{x}"], TOUCHES),
        (["sxaxbx{x}"], TOUCHES),
    ],
)
def test_a_text_takes_no_name_where_it_may_be_code(args: list[str], why: str) -> None:
    index = len(args) - 1
    option, separator, text = args[-1].rpartition("=")
    path = f"write {option}{separator}{{project_path}}/{text} if it is a path, or "
    path = {"-": "", ":": "", "/": FOLDER}.get(text[0], path)
    assert refusal("tool", *args, x="word", gone=None, dash="-e") == (
        f"'a/tool': config.args[{index}]: {{x}} {why}; {NAME_OR}{path}{INTEGER}"
    )


def test_a_value_does_not_extend_the_name_of_a_folder() -> None:
    for template in ("{project_path}{x}", "{project_path}-{x}", "${HOME}:{x}"):
        assert refusal("cat", template, x="evil") == (
            "'a/tool': config.args[0]: {x} is not below the folder that begins the argument; "
            + OTHERS["below"]
        )


def test_a_variable_without_the_path_of_a_folder_does_not_begin_a_path() -> None:
    for name in ("EMPTY", "WORD"):
        assert refusal("cat", f"${{{name}}}/{{x}}", x="etc") == (
            f"'a/tool': config.args[0]: ${{{name}}}: expected the path of a folder, of letters, "
            "digits and _ - . / :, because it is part of a longer text; change its value"
        )


def test_a_variable_that_begins_a_longer_argument_is_plain() -> None:
    assert line("cat", "-f", "${HOME}/a:${HOME}", "${WORD}", "--a=${WORD}").args == [
        *("-f", "/home/me/a:/home/me", "it's $(id)", "--a=it's $(id)")
    ]
    assert refusal("env", "sh", "-c", "${WORD}/run") == (
        "'a/tool': config.args[2]: ${WORD}: expected only letters, digits and _ - . / :, because "
        "it is part of a longer text; change its value"
    )
    assert line("${WORD}/run").command == "it's $(id)/run"


@pytest.mark.parametrize(
    "args",
    [("-C", "{project_path}"), ("--in={project_path}",), ("{project_path}/a:{tool_dir}/b",)],
)
def test_a_folder_begins_an_argument_whatever_it_is_called(args: tuple[str, ...]) -> None:
    wanted = [one.format(project_path=PROJECT, tool_dir="/tools") for one in args]
    assert line("tool", *args).args == wanted


@pytest.mark.parametrize("args", [("-o", "{project_path}/out"), ("--out={project_path}/out",)])
def test_after_an_option_the_path_of_a_folder_is_no_code(args: tuple[str, ...]) -> None:
    assert refusal("tool", *args).endswith(
        "{project_path}: expected a path of letters, digits, blanks and _ - . / : + , @ ~ =, "
        "because it is part of a longer text; move the project, or pass the folder as an "
        "argument of its own"
    )
    for folder in ("/home/me/My Projects", "/srv/c++/a@b,c=~", "/home/日本"):
        names = Names(
            injected={"project_path": folder}, parameters={}, declared=None, env={}, tool="t"
        )
        rendered = render_command_line({"command": "tool", "args": args}, names).args
        assert rendered == [one.format(project_path=folder) for one in args]


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["bash", "-c", "cd {project_path} && make"], RUNS),
        (["bash", "-c", "cd '{project_path}'"], RUNS),
        (["bash", "-c", "{project_path}/run"], RUNS),
        (["python3", "-c", "open('{project_path}/a')"], RUNS),
        (["perl", "-e", "print.{project_path}"], "does not begin the argument"),
        (["gcc", "-I{project_path}"], "does not begin the argument"),
    ],
)
def test_a_folder_in_other_text_is_refused(argv: list[str], why: str) -> None:
    assert refusal(*argv) == (
        f"'a/tool': config.args[{len(argv) - 2}]: {{project_path}} {why}; {OTHERS['folder']}"
    )


def test_the_command_is_a_whole_value_or_begins_with_a_folder() -> None:
    assert line("{x}", x="any program").command == "any program"
    assert line("{tool_dir}/bin/run").command == "/tools/bin/run"
    assert line("${HOME}/bin/run").command == "/home/me/bin/run"
    part = f"is part of the command; {OTHERS['value']}"
    for command in ("bin/{x}", "{project_path}/bin/{x}", "python{x}"):
        for value in ("run", 3):
            assert refusal(command, x=value) == f"'a/tool': config.command: {{x}} {part}"


@pytest.mark.parametrize("text", ["echo {x}", "out/{x}", "{x}\n", "{x}{x}"])
def test_a_text_on_stdin_is_one_whole_value(text: str) -> None:
    stdin = "is part of a text on stdin, which a program may run"
    for value in ("word", 3):
        assert refusal("tool", input_data=text, x=value) == (
            f"'a/tool': config.input_data: {{x}} {stdin}; {OTHERS['stdin']}"
        )


def test_a_mapping_on_stdin_becomes_json_and_its_texts_follow_the_rule() -> None:
    data = {"server": {"args": ["{x}", "--a={x}", "out/{y}"], "n": 1}, "text": "{x}"}
    assert line("tool", input_data=data, x='"; id', y="a").input_data == (
        r'{"server":{"args":["\"; id","--a=\"; id","out/a"],"n":1},"text":"\"; id"}'
    )
    for args, index in ((["-c", "echo {x}"], 1), (["out {x}"], 0)):
        assert refusal("tool", input_data={"server": {"args": args}}, x="a") == (
            f"'a/tool': config.input_data.server.args[{index}]: {{x}} {RUNS}; {OTHERS['value']}"
        )
    message = refusal("tool", input_data={"args": ["-e", "out/{x}"]}, x="a")
    assert AFTER_AN_OPTION in message


@pytest.mark.parametrize(
    ("script", "wanted"),
    [
        ("echo ${WORD}", "echo @"),
        ("echo 'a' \"$b\" ${WORD}; ls", "echo 'a' \"$b\" @; ls"),
        ("x=$(cat ${WORD}) && (ls ${WORD})", "x=$(cat @) && (ls @)"),
        ("ls > ${WORD} | cat < ${WORD}", "ls > @ | cat < @"),
        ("${WORD}", "it's $(id)"),
    ],
)
def test_a_variable_is_a_quoted_word_of_a_shell_script(script: str, wanted: str) -> None:
    assert line("/bin/bash", "-euc", script).args[1] == wanted.replace("@", """'it'"'"'s $(id)'""")


@pytest.mark.parametrize(
    "script",
    [
        'echo "${WORD}"', "echo '${WORD}'", 'echo "$(echo "${WORD}")"', "x=${WORD}", "a ${WORD}b",
        "echo $((${WORD} ))", "(( ${WORD} ))", "echo $[ ${WORD} ]", "[[ ${WORD} -eq 1 ]]",
        "# ${WORD}", "cat <<E\n ${WORD} \nE", "echo ` ${WORD} `", "echo \\ ${WORD}",
        "echo $' ${WORD} '",
        "echo ${a:-' ${WORD} '}", "echo it\\'s ${WORD}", "a ${WORD}>f", "${WORD}/run", "a/${WORD}",
    ],
)  # fmt: skip
def test_a_variable_elsewhere_in_a_script_is_refused(script: str) -> None:
    assert refusal("sh", "-c", script) == (
        "'a/tool': config.args[1]: ${WORD} is not a word of its own, outside of quotes, in a "
        f"script; {OTHERS['variable']}"
    )


@pytest.mark.parametrize(
    ("argv", "index"),
    [
        (["sh", "-s", "echo ${WORD}"], 1),
        (["perl", "-c", "echo ${WORD}"], 1),
        (["env", "sh", "-c", "echo ${WORD}"], 2),
        (["curl", "-H", "Authorization: Bearer ${WORD}"], 1),
    ],
)
def test_a_variable_in_other_text_is_refused(argv: list[str], index: int) -> None:
    assert (
        refusal(*argv)
        == f"'a/tool': config.args[{index}]: ${{WORD}} {RUNS}; " + (OTHERS["variable"])
    )


def test_a_variable_in_a_name_is_inert_like_a_callers_value() -> None:
    assert refusal("cat", "out/${WORD}.txt") == (
        f"'a/tool': config.args[0]: ${{WORD}}: expected {A_NAME}, because it is part of a longer "
        "text; change its value"
    )


def test_a_variable_in_a_name_after_an_option_is_refused_with_advice_for_variables() -> None:
    assert refusal("cat", "-o", "out/${WORD}") == (
        f"'a/tool': config.args[1]: ${{WORD}} {AFTER_AN_OPTION}; {OTHERS['variable']}"
    )


def test_the_advice_for_a_path_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "PROJECT", "/home/me/project")
    for args in (["-o", "out/{x}"], ["--out=out/{x}"], ["{x}.tgz"], ["./{x}a"]):
        message = refusal("tool", *args, x="word")
        (advice,) = re.findall(r"or write (\S+) if it is a path", message)
        assert (
            line("tool", *args[:-1], advice, x="word")
            .args[-1]
            .endswith(args[-1].rpartition("=")[2].removeprefix("./").replace("{x}", "word"))
        )


def test_an_authors_text_without_values_may_be_anything() -> None:
    script = "awk '{print}' <<E `x` $'y' ${lower:-'z'} \"{unknown}\"\nE"
    assert line("sh", "-c", script, "{unknown}x").args == ["-c", script, "{unknown}x"]
