"""``rye check``: tools that would be refused, and advice about what they read by themselves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rye_console import Console

TOOL = "build/all"


@pytest.fixture
def console(tmp_path: Path) -> Console:
    return Console(tmp_path)


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (("make", "all"), "Makefile"),
        (("/usr/bin/make",), "Makefile"),
        (("sh", "-c", "cd . && make all"), "Makefile"),
        (("npm", "run", "build"), "package.json"),
        (("just",), "justfile"),
    ],
)
def test_make_and_its_kin_get_a_warning_with_the_pin(
    console: Console, argv: tuple[str, ...], name: str
) -> None:
    (console.path / name).write_text("all:\n")
    tool = console.project.command(TOOL, *argv, permissions={}, description="x")
    done = console("check")
    program = "make" if name == "Makefile" else argv[0]
    (advice,) = [line for line in done.stderr.splitlines(keepends=True) if "by itself" in line]
    assert advice == (
        f"rye: '{TOOL}' runs {program}, which reads {name} by itself, and nothing pins that; "
        f"review it, add the line `pins: [{name}]` to {tool.relative_to(console.path)}, then run: "
        f"rye sign {TOOL} && rye lock --update {TOOL}\n"
    )
    console.project.command(TOOL, *argv, pins=[name], permissions={}, description="x")
    assert console("lock", "--update", TOOL).code == 0
    assert json.loads(console("check", "--json").stdout)[0]["warnings"] == []


def test_a_file_that_does_not_exist_needs_no_pin(console: Console) -> None:
    console.project.command(TOOL, "sh", "-c", "make", permissions={}, description="x")
    assert console("check", TOOL).stdout == f"ok  {TOOL}\n"


def test_a_tool_with_pins_needs_a_lockfile(console: Console) -> None:
    (console.path / "run").write_text("")
    console.project.command(TOOL, "sh", "run", pins=["run"], permissions={}, description="x")
    done = console("check")
    assert (done.code, done.stdout) == (1, f"error  {TOOL}\n")
    assert done.stderr == (
        f"rye: '{TOOL}' 1.0.0 runs files of the project that are not signed (run), and no "
        f"lockfile pins them; review them, then run: rye lock {TOOL}\n"
    )
    assert console("lock", TOOL).code == 0
    assert console("check").stdout == f"ok  {TOOL}\n"


def test_a_tool_without_permissions_gets_a_warning(console: Console) -> None:
    console.project.command(TOOL, "true", description="x")
    done = console("check", TOOL)
    assert (done.code, done.stdout) == (0, f"warning  {TOOL}\n")
    assert done.stderr == (
        f"rye: '{TOOL}' is unconfined: it can do everything that its user can do; declare what it "
        "needs as permissions in .ai/tools/build/all.yaml\n"
    )


def test_a_tool_that_would_be_refused_is_an_error(console: Console) -> None:
    (console.path / "run").write_text("")
    console.project.command("a/bad", "sh", "run", description="x")
    console.project.command("a/good", "true", permissions={}, description="x")
    console.project.tool("a/unsigned.yaml", "executor_id: null\n", signed=False)
    console.project.tool("a/helper.py", "x = 1\n")
    done = console("check")
    assert done.code == 1
    assert done.stdout == "error  a/bad\nok     a/good\nerror  a/unsigned\n"
    assert "'a/bad': config.args names run, a file in " in done.stderr
    assert "a/unsigned is not signed" in done.stderr


def test_a_tool_that_does_not_exist_exits_with_3(console: Console) -> None:
    assert console("check", "nowhere/x").code == 3
