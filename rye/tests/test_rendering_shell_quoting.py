"""Values inside the script of a shell, judged by real shells."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from lilux.primitives.templating import Placeholder
from rye.errors import ConfigTemplateError
from rye.executor.quoting import HINT, fill_script, quote

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
    "an assignment": ('x={v}; show "$x"', "%"),
    "a quoted assignment": ('x="{v}"; show "$x"', "%"),
    "before a redirection": ("show {v}>&1", "%"),
    "a loop": ('for i in {v}; do show "$i"; done', "%"),
    "a pattern": ("case {v} in {v}) show yes;; *) show no;; esac", "yes"),
    "a test": ('if [ {v} = "{v}" ]; then show yes; fi', "yes"),
    "a substitution": ("""show "$(printf '%s.' {v})" """, "%."),
    "a substitution, quoted": ("""show "$(printf '%s.' "{v}")" """, "%."),
    "a substitution in a substitution": (
        """show "$(printf '%s.' "$(printf '%s.' '{v}')")" """,
        "%..",
    ),
    "a subshell": ("(show {v})", "%"),
    "behind a comment": ("# it's \"fine\n show {v}", "%"),
    "behind arithmetic": ("n=$((1 + 2)); show {v}$n", "%3"),
    "behind an expansion": ('y=path/name; show {v}"${y#path/}"${#y}', "%name9"),
    "behind backquotes": ('z=`printf "it\'s"`; show {v}$z', "%it's"),
    "behind an escape": ("show \\'{v}\\\"", "'%\""),
    "behind an escaped blank": ("show \\ {v}", " %"),
    "behind a count": ("show $#{v}", "0%"),
    "in braces": ("{ show {v}; }", "%"),
    "over two lines": ("show \\\n  {v}", "%"),
    "after a line": ("show 'x\n{v}\ny'", "x\n%\ny"),
    "a function's argument": ('f() { show "$1"; }; f {v}', "%"),
    "braces that are not ours": ("show '{print}'{v}{other}", "{print}%{other}"),
}
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


# Parts of scripts in which a careless reading could go wrong. An opening parenthesis by itself is
# not among them: it could define functions that call themselves.
PARTS = st.sampled_from([
    "'", '"', "\\", "`", "$(", ")", "#", "\n", " ", ";", "$'", "<<E\n", "\nE\n", "${x", "${x}",
    "}", "$((", "))", "echo ", "case a in", " esac", "eval ", "[[ ", " ]]", "$", "|", "{", '$"',
    "<<<", "x=", "[", "]", "\\\n", "if ", "then ", "fi", "trap ", "sh -c ", " -eq ", "EXIT", "a",
])  # fmt: skip
ATTACKS = st.sampled_from([
    "$(: >C)", "`: >C`", "';: >C;'", '";: >C;"', "\n: >C\n", "'\n: >C\n'", "a[$(: >C)]",
    "\\';: >C #", ";: >C;", "$'\\';: >C;'", "\nE\n: >C\n", "):>C;", "};:>C;", "';:>C;\"",
])  # fmt: skip


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(before=st.lists(PARTS, max_size=6), after=st.lists(PARTS, max_size=4), value=ATTACKS)
def test_no_script_that_is_accepted_lets_a_value_run(
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
        ("cat <<EOF\n{v}\nEOF", "stands in or behind a here-document"),
        ("cat <<'EOF'\n{v}\nEOF", "stands in or behind a here-document"),
        ("echo `echo {v}`", "stands in backquotes"),
        ('echo "`echo {v}`"', "stands in backquotes"),
        ("echo hi # for {v}", "stands in a comment"),
        ("echo $(( {v} + 1 ))", "stands in or behind arithmetic"),
        ("echo $[ {v} ]", "stands in or behind arithmetic"),
        ("(( {v} > 1 ))", "stands in or behind arithmetic"),
        ("[[ {v} -eq 1 ]]", "stands in or behind arithmetic"),
        ("a[{v}]=1", "stands in a subscript, which a shell may evaluate"),
        ("echo ${x:-{v}}", "stands in or behind an expansion that holds quotes or others"),
        ("echo ${x:-'}'}{v}", "stands in or behind an expansion that holds quotes or others"),
        ("echo $'a\\'{v}'", "stands in or behind $'…', which not every shell knows"),
        ("echo \\{v}", "stands behind a backslash"),
        ('echo "\\{v}"', "stands behind a backslash"),
        ("x=$(case a in a) echo {v};; esac)", "stands behind a 'case' inside $(…)"),
        ("echo $(x)#'\n{v}'", "stands behind a '#' that may be a comment or not"),
        ("echo a\\\n#'\n{v}'", "stands behind a '#' that may be a comment or not"),
        ('eval "echo {v}"', "is parsed a second time by eval"),
        ("\\eval {v}", "is parsed a second time by eval"),
        ("true && eval 'echo {v}'", "is parsed a second time by eval"),
        ("trap 'echo {v}' EXIT", "is parsed a second time by trap"),
        ("sudo /bin/bash -e -c 'echo {v}'", "is parsed a second time by /bin/bash"),
        ("sh \\\n -c {v}", "is parsed a second time by sh"),
        ("let n={v}", "is parsed a second time by let"),
    ],
)
def test_a_place_where_no_quoting_is_safe_is_refused(script: str, why: str) -> None:
    with pytest.raises(ConfigTemplateError) as caught:
        filled(script, "value")
    assert str(caught.value) == f"here: {{v}} {why}, where no quoting is safe; {HINT}"


def test_a_variable_behind_a_dollar_sign_is_refused() -> None:
    with pytest.raises(ConfigTemplateError) as caught:
        filled("echo $${VAR}", "\\x41")
    assert str(caught.value) == (
        f"here: ${{VAR}} stands behind a dollar sign, where no quoting is safe; {HINT}"
    )


@pytest.mark.parametrize(
    "script",
    ["cat {v} <<EOF\nx\nEOF", "eval x; echo {v}", "bash script.sh {v}", "echo {v} # fine"],
)
def test_what_comes_later_or_belongs_to_another_command_does_no_harm(script: str) -> None:
    assert filled(script, "a b") == script.replace("{v}", "'a b'")


def test_a_default_with_a_quote_in_it_is_part_of_the_placeholder() -> None:
    script = """printf %s '${VAR:-it's}' {v}"""
    assert output("sh", filled(script, "x")) == "xx"


def test_a_script_without_values_stays_as_it_is() -> None:
    script = "awk '{print}' <<EOF `x` $'y' ${lower:-'z'}\nEOF"
    assert filled(script, "unused") == script


@pytest.mark.parametrize("word", ["plain", "2", "if", "A=b", "=ls", "", "it's"])
def test_a_value_is_always_in_quotes(word: str) -> None:
    assert quote(word) == "'" + word.replace("'", "'\"'\"'") + "'"
