"""Values inside shell scripts, checked with real shells."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from lilux.templating import Placeholder
from rye.errors import ConfigTemplateError
from rye.executor.config.quoting import HINT, fill_script, quote

SHELLS = [name for name in ("sh", "bash", "dash", "zsh", "ksh", "mksh") if shutil.which(name)]

# What a script prints for a value, in every kind of place where one is accepted.
ACCEPTED = {
    "bare": ("show {v}", "%"),
    "double": ('show "{v}"', "%"),
    "single": ("show '{v}'", "%"),
    "glued": ("show a{v}b", "a%b"),
    "inside double": ('show "a {v} b"', "a % b"),
    "inside single": ("show 'a {v} b'", "a % b"),
    "three in a word": ("""show "{v}"'{v}'{v}""", "%%%"),
    "an option": ("show --name={v}", "--name=%"),
    "before a redirection": ("show {v}>&1", "%"),
    "a substitution": ("""show "$(printf '%s.' {v})" """, "%."),
    "a substitution, quoted": ("""show "$(printf '%s.' "{v}")" """, "%."),
    "a substitution in a substitution": (
        """show "$(printf '%s.' "$(printf '%s.' '{v}')")" """,
        "%..",
    ),
    "a subshell": ("(show {v})", "%"),
    "after a comment": ("# it's \"fine\n show {v}", "%"),
    "after arithmetic": ("n=$((1 + 2)); show {v}$n", "%3"),
    "after an expansion": ('y=path/name; show {v}"${y#path/}"${#y}', "%name9"),
    "after an escape": ("show \\'{v}\\\"", "'%\""),
    "after an escaped blank": ("show \\ {v}", " %"),
    "after a count": ("show $#{v}", "0%"),
    "in braces": ("{ show {v}; }", "%"),
    "in a loop": ("for i in 1; do show {v}; done", "%"),
    "in a condition": ("if show {v}; then true; fi", "%"),
    "after a loop": ("while false; do :; done; show {v}", "%"),
    "after a literal assignment": ("x=1 y=; show {v}", "%"),
    "after a redirection": ("show {v} 2>&1 | cat", "%"),
    "after a subshell": ("(true) && show {v}", "%"),
    "after a careful set": ("set -e; set -u ; show {v}", "%"),
    "printf": ("printf '%s\\0' {v}", "%"),
    "over two lines": ("show \\\n  {v}", "%"),
    "after a line": ("show 'x\n{v}\ny'", "x\n%\ny"),
    "braces that are not ours": ("show '{print}'{v}{other}", "{print}%{other}"),
}
PARENTHESES = "is in or after parentheses that are not a subshell"
PROLOGUE = "show() { printf '%s\\0' \"$1\"; }\n"


def filled(script: str, value: str) -> str:
    def fill(placeholder: Placeholder) -> str | None:
        return value if placeholder.name in ("v", "VAR") else None

    return fill_script(script, fill, "here")


def output(shell: str, script: str) -> str:
    done = subprocess.run(
        [shell, "-c", script],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
        timeout=30,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
    )
    assert done.stderr == b""
    return done.stdout.decode()


@pytest.mark.parametrize("shell", SHELLS)
@settings(max_examples=60, deadline=None)
@given(value=st.text(st.characters(codec="utf-8", exclude_characters="\0")))
@example(value="${SECRET} {v} {env} {params_json} $(rm -rf x) `rm` $((1/0))")
@example(value="'")
@example(value="'\"'\"'")
@example(value="\\")
@example(value="\\'; exit 9; '")
@example(value='"; exit 9; "')
@example(value="\n exit 9\n")
@example(value="--")
@example(value="-n")
@example(value="2")
@example(value="if")
@example(value="A=b")
@example(value="=ls")
@example(value="~")
@example(value="*")
@example(value="# not a comment")
@example(value="!!")
@example(value="\r\x1b\x7f\ufeff")
@example(value="")
def test_a_value_arrives_unchanged_wherever_it_is_accepted(shell: str, value: str) -> None:
    scripts = [filled(script, value) for script, _ in ACCEPTED.values()]
    printed = output(shell, PROLOGUE + "\n".join(scripts)).split("\0")[:-1]
    wanted = [expected.replace("%", value) for _, expected in ACCEPTED.values()]
    assert dict(zip(ACCEPTED, printed, strict=True)) == dict(zip(ACCEPTED, wanted, strict=True))


# Parts of scripts in which a careless reading could go wrong. A function that calls itself cannot
# come about: behind parentheses of a definition no value is accepted.
PARTS = st.sampled_from([
    "'", '"', "\\", "`", "$(", ")", "#", "\n", " ", ";", "$'", "<<E\n", "\nE\n", "${x", "${x}",
    "}", "$((", "))", "echo ", "case a in", " esac", "eval ", "[[ ", " ]]", "$", "|", "{", '$"',
    "<<<", "x=", "[", "]", "\\\n", "if ", "then ", "fi", "trap ", "sh -c ", " -eq ", "EXIT", "a",
    "'eval' ", "e\"v\"al ", "builtin ", "E=eval;", "$E ", "printf -v ", "read ", "test -v ", "-v ",
    "local -i ", "declare -i n;", "n=", "a=( [ ", "2>&1 ", ">f ", "PS4=", "set -x;", "{ ", "time ",
    "&> f ", "<(true) ", "compgen -W ", "f() ", "echo {v} ", "printf %s ", "true && ", "(",
])  # fmt: skip
ATTACKS = st.sampled_from([
    "$(: >C)", "`: >C`", "';: >C;'", '";: >C;"', "\n: >C\n", "'\n: >C\n'", "a[$(: >C)]",
    "\\';: >C #", ";: >C;", "$'\\';: >C;'", "\nE\n: >C\n", "):>C;", "};:>C;", "';:>C;\"",
])  # fmt: skip


@settings(
    max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(before=st.lists(PARTS, max_size=6), after=st.lists(PARTS, max_size=4), value=ATTACKS)
def test_no_accepted_script_runs_a_value_as_code(
    tmp_path: Path, before: list[str], after: list[str], value: str
) -> None:
    template = "".join([*before, "{v}", *after])
    try:
        script = filled(template, value)
    except ConfigTemplateError:
        return
    for shell in ("sh", "bash"):
        if shell not in SHELLS:
            continue
        subprocess.run(
            [shell, "-c", script],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=30,
            env={"PATH": "/usr/bin:/bin"},
        )
        assert not (tmp_path / "C").exists(), (shell, script)


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("cat <<EOF\n{v}\nEOF", "is in or after a here-document"),
        ("cat <<'EOF'\n{v}\nEOF", "is in or after a here-document"),
        ("echo `echo {v}`", "is in or after backquotes"),
        ('echo "`echo {v}`"', "is in or after backquotes"),
        ("echo hi # for {v}", "is in a comment"),
        ("echo $(( {v} + 1 ))", "is in or after arithmetic"),
        ("echo $[ {v} ]", "is in or after a subscript"),
        ("echo $a[{v}]", "is in or after a subscript"),
        ("(( {v} > 1 ))", "is in or after arithmetic"),
        ("[[ {v} -eq 1 ]]", "is in or after a test"),
        ("[[ 1 && a -eq {v} ]]", "is in or after a test"),
        ("echo ${x:-{v}}", "is in or after an expansion that contains quotes or other expansions"),
        (
            "echo ${x:-'}'}{v}",
            "is in or after an expansion that contains quotes or other expansions",
        ),
        ("echo $'a\\'{v}'", "is in or after $'…', which not every shell supports"),
        ("echo \\{v}", "follows a backslash"),
        ('echo "\\{v}"', "follows a backslash"),
        ("x=$(case a in a) echo {v};; esac)", "is in or after 'case'"),
        ("case {v} in *) echo;; esac", "is in or after 'case'"),
        ("echo a\\\n#'\n{v}'", "follows a '#' that may or may not begin a comment"),
        ("{v}", "is where a command begins"),
        ("A=b {v}", "is where a command begins"),
        ("printf {v}", "is in a format"),
        ("printf '%d' {v}", "is in a format"),
        ("echo hi > {v}", "is in a redirection"),
        ('cat < "$(echo {v})"', "is in a redirection"),
        ("while true; do echo; done < {v}", "follows 'done'"),
        ("eval 2>&1 {v}", "is an argument of 'eval', which may evaluate it"),
        ("eval x &> f; echo {v}", "follows '&>', which not every shell supports"),
        ("alias e=eval; e {v}", "is in or after 'alias'"),
        ("f() { eval $1; }; f {v}", PARENTHESES),
        ("eval <(true) echo {v}", PARENTHESES),
        ("a=( [ {v} ]=1 )", PARENTHESES),
    ],
)
def test_a_value_where_no_quoting_is_safe_is_refused(script: str, why: str) -> None:
    with pytest.raises(ConfigTemplateError) as caught:
        filled(script, "value")
    assert str(caught.value) == f"here: {{v}} {why}, where no quoting is safe; {HINT}"


UNNAMED = "is in an assignment, or after a command that is not a plain name"


@pytest.mark.parametrize(
    "script",
    [
        "x={v}", 'x="{v}"', "declare -i n; n={v}", "declare -n r; r={v}", "PS4={v}; set -x; true",
        "BASH_ENV={v} bash -c true", "a[{v}]=1", "x=$(echo {v})", "'eval' echo {v}",
        'e"v"al echo {v}', "\\eval {v}", "E=eval; $E echo {v}", "{eval,echo} {v}", "ev?l {v}",
        "2>&1 eval {v}", "x=$y eval {v}", "test{v}",
    ],
)  # fmt: skip
def test_a_value_cannot_be_assigned_or_given_to_a_command_without_a_plain_name(script: str) -> None:
    with pytest.raises(ConfigTemplateError) as caught:
        filled(script, "value")
    assert str(caught.value) == f"here: {{v}} {UNNAMED}, where no quoting is safe; {HINT}"


@pytest.mark.parametrize(
    ("command", "script"),
    [
        ("eval", 'eval "echo {v}"'),
        ("eval", "true && eval 'echo {v}'"),
        ("eval", 'eval "$(echo {v})"'),
        ("builtin", "builtin 'eval' echo {v}"),
        ("command", "command eval echo {v}"),
        ("trap", "trap 'echo {v}' EXIT"),
        ("sudo", "sudo /bin/bash -e -c 'echo {v}'"),
        ("/bin/bash", "/bin/bash -c {v}"),
        ("sh", "sh \\\n -c {v}"),
        ("python3.12", "python3.12 -c {v}"),
        ("let", "let n={v}"),
        ("read", "read {v} <<< hi"),
        ("test", "test -v {v}"),
        ("local", "local -i n={v}"),
        ("compgen", "compgen -W {v}"),
        ("timeout", "timeout 1 watch -g {v}"),
        ("watch", "watch {v}"),
        ("ssh", "ssh host echo {v}"),
        ("xargs", "echo | xargs -I@ sh -c 'echo {v}'"),
        ("for", "for {v} in 1; do echo; done"),
    ],
)
def test_a_value_cannot_be_given_to_what_evaluates_its_arguments(command: str, script: str) -> None:
    with pytest.raises(ConfigTemplateError) as caught:
        filled(script, "value")
    assert str(caught.value) == (
        f"here: {{v}} is an argument of '{command}', which may evaluate it, "
        f"where no quoting is safe; {HINT}"
    )


def test_a_variable_behind_a_dollar_sign_is_refused() -> None:
    with pytest.raises(ConfigTemplateError) as caught:
        filled("echo $${VAR}", "\\x41")
    assert str(caught.value) == (
        f"here: ${{VAR}} follows a dollar sign, where no quoting is safe; {HINT}"
    )


@pytest.mark.parametrize(
    "script",
    ["cat {v} <<EOF\nx\nEOF", "eval x; echo {v}", "echo {v} # fine"],
)
def test_unsafe_syntax_after_a_value_or_in_another_command_is_accepted(script: str) -> None:
    assert filled(script, "a b") == script.replace("{v}", "'a b'")


def test_a_default_with_a_quote_in_it_is_part_of_the_placeholder() -> None:
    script = """printf %s '${VAR:-it's}' {v}"""
    assert output("sh", filled(script, "x")) == "xx"


def test_a_script_without_values_is_unchanged() -> None:
    script = "awk '{print}' <<EOF `x` $'y' ${lower:-'z'}\nEOF"
    assert filled(script, "unused") == script


@pytest.mark.parametrize("word", ["plain", "2", "if", "A=b", "=ls", "", "it's"])
def test_a_value_is_always_in_quotes(word: str) -> None:
    assert quote(word) == "'" + word.replace("'", "'\"'\"'") + "'"
