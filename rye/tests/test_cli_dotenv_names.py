"""What an author reads after a tool failed for want of a variable in .env."""

from __future__ import annotations

from pathlib import Path

import pytest
from rye_console import Console
from rye_project import Project

YAML = """\
executor_id: rye/core/primitives/subprocess
description: x
permissions: {env: [A]}
config: {command: sh, args: ['-c', 'set -u; echo $TOKEN']}
"""


@pytest.mark.parametrize(
    ("name", "text", "advice"),
    [
        (
            "t.sh",
            '# /// rye\n# executor_id = "bash_runtime"\n# ///\nset -u\necho "$TOKEN"\n',
            'add the line `# permissions.env = ["TOKEN"]` below executor_id in ',
        ),
        (
            "t.yaml",
            YAML,
            "change permissions.env to `permissions: {env: [A, TOKEN]}` in ",
        ),
    ],
)
def test_the_command_line_says_which_name_to_declare(
    tmp_path: Path, name: str, text: str, advice: str
) -> None:
    console = Console(tmp_path)
    path = console.project.tool(name, text)
    (console.path / ".env").write_text("TOKEN=hunter2\n")

    done = console("run", "t")

    assert done.stderr.splitlines()[-1].endswith(
        f"; the project's .env sets TOKEN, which 't' does not ask for: {advice}"
        f"{path.relative_to(console.path)}, then run: rye sign t && rye lock --update t"
    )


def test_nobody_is_told_to_change_a_tool_that_ships_with_rye(tmp_path: Path) -> None:
    project = Project(tmp_path, shipped_system=True)
    (project.path / ".env").write_text("TOKEN=hunter2\n")
    result = project.run("rye/bash/bash", {"command": "set -u; echo $TOKEN"})
    assert result.metadata["hint"] == (
        "the project's .env sets TOKEN, which 'rye/bash/bash' does not ask for: "
        "export it in your shell, or ask for it in a tool of your own"
    )


def test_check_warns_of_a_variable_that_a_tool_reads_without_asking_for_it(tmp_path: Path) -> None:
    console = Console(tmp_path)
    path = console.project.tool("t.yaml", YAML.replace("set -u; ", ""))
    console.project.tool("other.yaml", YAML.replace("$TOKEN", "$TOKENS"))
    (console.path / ".env").write_text("TOKEN=hunter2\n")
    assert console.project.run("t").data["stdout"] == "\n"

    done = console("check")

    assert (done.code, done.stdout) == (0, "ok       other\nwarning  t\n")
    assert done.stderr == (
        "rye: 't' mentions TOKEN, which the project's .env sets and the tool does not ask for; if "
        "it reads the variable, change permissions.env to `permissions: {env: [A, TOKEN]}` in "
        f"{path.relative_to(console.path)}, then run: rye sign t && rye lock --update t\n"
    )
    console.project.tool("t.yaml", YAML.replace("[A]", "[A, TOKEN]"))
    assert console("check").stdout == "ok  other\nok  t\n"
