"""script_runtime: a script in any language, with the interpreter of its first line."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from item_metadata import parse, refusal
from rye_project import Project

BLOCK = '# /// rye\n# executor_id = "script_runtime"\n# ///\n'
RELATIVE = "which is a relative path; write an absolute one, or #!/usr/bin/env NAME"
PERL = shutil.which("perl")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, shipped_system=True)


def test_the_interpreter_of_the_first_line_runs_the_script(project: Project) -> None:
    project.tool("up.awk", f"#!/usr/bin/env -S awk -f\n{BLOCK}{{ print toupper($0) }}\n")
    assert project.run("up", {"a": "b"}).data == {"A": "B"}


def test_parameters_are_variables_and_json_on_stdin(project: Project) -> None:
    body = 'printf "<%s>" "$RYE_PARAM_FILE_NAME" "$RYE_PARAM_N" "${RYE_PARAM_NO-unset}"; cat\n'
    project.tool("show", f"#!/bin/sh\n{BLOCK}{body}")
    result = project.run("show", {"file-name": "$(id) 'é", "n": [1, {"a": None}], "no": None})
    assert result.data["stdout"].startswith('<$(id) \'é><[1,{"a":null}]><unset>{')
    assert result.data["stdout"].endswith("}")


def test_a_long_value_is_only_on_stdin(project: Project) -> None:
    project.tool("count", f'#!/bin/sh\n{BLOCK}echo "${{RYE_PARAM_A-unset}} $(wc -c)"\n')
    stdout = project.run("count", {"a": "x" * 200_000}).data["stdout"]
    assert stdout.split() == ["unset", str(len('{"a":""}') + 200_000)]


def test_two_parameters_with_one_variable_are_refused(project: Project) -> None:
    project.tool("same", f"#!/bin/sh\n{BLOCK}")
    assert project.run("same", {"a-b": 1, "a_b": 2}).data["stderr"] == (
        "two parameters have the same variable RYE_PARAM_A_B; rename one of them\n"
    )


def test_a_python_script_does_not_import_an_unsigned_neighbour(project: Project) -> None:
    project.tool("tool.py", '#!/usr/bin/env python3\n__executor_id__ = "script_runtime"\n'
                 "import this_neighbour\n")  # fmt: skip
    project.tool("this_neighbour.py", "print('pwned')\n", signed=False)
    result = project.run("tool")
    assert "No module named 'this_neighbour'" in result.data["stderr"]


@pytest.mark.skipif(PERL is None, reason="perl is not installed")
def test_a_confined_script_may_start_its_interpreter(project: Project) -> None:
    block = BLOCK.replace('script_runtime"\n', 'script_runtime"\n# permissions = {}\n')
    text = f"#!/usr/bin/perl -w\n{block}print 'from perl';\n"
    project.tool("p.pl", text)
    result = project.run("p")
    assert (result.error, result.data["stdout"]) == (None, "from perl")


def test_a_missing_interpreter_is_reported_with_the_fix(project: Project) -> None:
    path = project.tool("x.nope", f"#!/usr/bin/env no-such-language\n{BLOCK}")
    assert project.run("x").error == (
        f"the interpreter of 'x' ({path}) is missing: 'no-such-language' is not an executable on "
        "this machine; install it, or set RYE_INTERPRETER in the env_config of the tool"
    )


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("#!./bin/x", f"names './bin/x', {RELATIVE}"),
        ("#!/usr/bin/env ./x", f"names './x', {RELATIVE}"),
        ("#!", "names no interpreter; write #!/usr/bin/env NAME"),
        ("#!/usr/bin/env -i x", "names no interpreter; write #!/usr/bin/env NAME"),
        ("#!/usr/bin/env A=1 x", "names no interpreter; write #!/usr/bin/env NAME"),
    ],
)
def test_a_first_line_that_depends_on_the_place_is_refused(line: str, reason: str) -> None:
    assert refusal("a", f"{line}\n{BLOCK}") == (
        f"a:1: the first line {reason}; correct it and sign again"
    )


def test_a_script_without_a_shebang_is_refused() -> None:
    assert refusal("a", BLOCK) == (
        "a:1: has no shebang, but runs on script_runtime; write #!/usr/bin/env NAME; "
        "correct it and sign again"
    )


def test_the_interpreter_is_part_of_the_metadata() -> None:
    rule = {"type": "system_binary", "binary": "lua", "var": "RYE_INTERPRETER", "fallback": "lua"}
    block = BLOCK.replace("#", "--")
    assert parse("a.lua", f"#!/usr/bin/env lua\n{block}").env_config == {"interpreter": rule}


def test_parameters_become_arguments_as_the_config_says(project: Project) -> None:
    arguments = (
        '[{ name = "n", option = "-n" }, { name = "tag", option = "--tag", each = true }, '
        '{ name = "loud", flag = "--loud" }, "--", { name = "first" }, { name = "second" }, '
        '{ name = "rest" }]'
    )
    executor = '# executor_id = "script_runtime"\n'
    block = BLOCK.replace(executor, f"{executor}# [config]\n# arguments = {arguments}\n")
    project.tool("args", f"#!/bin/sh\n{block}printf '<%s>' \"$@\"; cat\n")
    given = {"n": -5, "tag": ["a b", "--x"], "loud": True, "second": "-z", "rest": ["$(id)", ""]}
    assert project.run("args", given).data["stdout"] == (
        "<-n-5><--tag=a b><--tag=--x><--loud><--><><-z><$(id)><>"
    )
    assert project.run("args", {"loud": False}).data["stdout"] == "<-->"
