"""Attack: a signed tool runs a program of the checkout, which nobody signed or pinned."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from project_program import TOOL, pinned, program
from rye.executor.run.result import ExecutionResult
from rye.spaces.model import SpaceName
from rye.trust.project_approval import ProjectApproval
from rye_console import Console
from rye_project import SUBPROCESS, Project, refused


@pytest.fixture
def console(tmp_path: Path) -> Console:
    """A project with the program ``bin/gotool``."""
    console = Console(tmp_path)
    program(console.project, "good")
    return console


@pytest.fixture
def project(console: Console) -> Project:
    return console.project


@pytest.mark.parametrize(
    "argv",
    [
        ("bin/gotool",),
        ("./bin/gotool",),
        ("{project_path}/bin/gotool",),
        ("sh", "bin/gotool"),
        ("env", "bin/gotool"),
        ("env", "A=b", "sh", "{project_path}/bin/gotool"),
        ("sh", "{tool_dir}/../../../bin/gotool"),
        ("bash", "--rcfile=bin/gotool", "-i", "-c", "true"),
        ("sh", "-c", 'exec bin/gotool "$1"', "sh", "{word}"),
        ("sh", "-c", "cd .; bin/gotool {word}"),
        ("${GOTOOL:-bin/gotool}",),
        ("env", "-C", "bin", "./gotool"),
        ("env", "--chdir=bin", "./gotool"),
        ("env", "PATH=bin:/usr/bin:/bin", "gotool"),
        ("sh", "-c", "cd bin && ./gotool"),
        ("sh", "-c", 'exec "$PWD/bin/gotool"'),
        ("sh", "-c", 'exec "$(pwd)"/bin/gotool'),
        ("sh", "-c", "PATH=bin:$PATH; gotool"),
        ("git", "-c", "alias.z=!./bin/gotool", "z"),
        ("gcc", "@bin/gotool"),
    ],
)
def test_a_program_of_the_project_does_not_run_unpinned(
    project: Project, argv: tuple[str, ...]
) -> None:
    tool = project.command(TOOL, *argv)
    key = "command" if "gotool" in argv[0] else "args"
    assert refused(project.run(TOOL, {"word": "x"}), "UnpinnedError") == (
        f"'{TOOL}': config.{key} names bin/gotool, a file in {project.path} that is neither "
        f"signed nor pinned; review it, add the line `pins: [bin/gotool]` to {tool}, then run: "
        f"rye sign {TOOL} && rye lock --update {TOOL} (a file that is only data can be a "
        "parameter with a default instead)"
    )


@pytest.mark.parametrize(
    "config",
    [
        {"command": "{bin}/gotool", "bin": "bin"},
        {"command": "sh", "args": ["{files}"], "files": ["bin/gotool"]},
        {"command": "sh", "args": ["gotool"], "cwd": "bin"},
        {"command": "sh", "input_data": "bin/gotool\n"},
        {"command": "cat", "input_data": {"server": {"command": "bin/gotool"}}},
    ],
)
def test_a_program_that_other_settings_name_does_not_run_unpinned(
    project: Project, config: dict[str, Any]
) -> None:
    project.yaml(TOOL, executor_id=SUBPROCESS, config=config)
    assert "names bin/gotool" in refused(project.run(TOOL), "UnpinnedError")


@pytest.mark.parametrize("script", [". bin/gotool", "sh bin/gotool", 'exec sh < "bin/gotool"'])
def test_a_script_of_the_project_does_not_run_because_its_mode_is_that_of_data(
    project: Project, script: str
) -> None:
    program(project, "evil", mode=0o644)
    project.command(TOOL, "sh", "-c", script)
    assert "config.args names bin/gotool" in refused(project.run(TOOL), "UnpinnedError")


@pytest.mark.parametrize("folder", ["bin", "{project_path}/bin"])
@pytest.mark.parametrize("key", ["config", "env_config"])
def test_a_program_in_a_folder_that_the_author_searches_does_not_run_unpinned(
    project: Project, folder: str, key: str
) -> None:
    fields: dict[str, Any] = {"config": {"command": "gotool"}}
    fields.setdefault(key, {})["env"] = {"PATH": f"{folder}:/usr/bin"}
    project.yaml(TOOL, executor_id=SUBPROCESS, **fields)
    assert "config.command names bin/gotool" in refused(project.run(TOOL), "UnpinnedError")


def test_a_log_that_a_script_writes_needs_no_pin(project: Project) -> None:
    project.command(TOOL, "sh", "-c", "echo x >> out.log; echo y > 'last.log'")
    assert project.run(TOOL).success
    assert project.run(TOOL).success


def test_a_file_named_like_a_word_of_a_runtime_of_rye_stops_no_tool(tmp_path: Path) -> None:
    project = Project(tmp_path, shipped_system=True)
    (project.path / "utf8").write_text("")
    text = '__version__ = "1.0.0"\n__executor_id__ = "python_runtime"\ndef main(): return 1\n'
    project.tool("one.py", text)
    assert project.run("one").error is None


@pytest.mark.parametrize(
    "env_config",
    [
        {"env": {"GOTOOL": "bin/gotool"}},
        {"interpreter": {"type": "system_binary", "binary": "bin/gotool", "var": "GOTOOL"}},
    ],
)
def test_a_program_that_a_variable_names_does_not_run_unpinned(
    project: Project, env_config: dict[str, Any]
) -> None:
    config = {"command": "${GOTOOL}"}
    project.yaml(TOOL, executor_id=SUBPROCESS, config=config, env_config=env_config)
    assert "names bin/gotool" in refused(project.run(TOOL), "UnpinnedError")


@pytest.mark.parametrize(
    "server", [{"args": ["bin/gotool"]}, {"args": ["gotool"], "cwd": "{project_path}/bin"}]
)
def test_a_server_of_the_project_does_not_run_unpinned(
    console: Console, server: dict[str, Any]
) -> None:
    console.project.yaml(
        TOOL,
        executor_id="rye/core/runtimes/mcp_stdio_runtime",
        config={"mcp_server": {"command": "python3", "tool": "x", **server}},
    )
    message = refused(console.project.run(TOOL), "UnpinnedError")
    assert "config.mcp_server names bin/gotool" in message


@pytest.mark.parametrize("argv", [("./gotool",), ("sh", "gotool"), ("sh", "-c", "./gotool")])
def test_a_caller_cannot_choose_an_unpinned_program_by_its_folder(
    project: Project, argv: tuple[str, ...]
) -> None:
    config = {"command": argv[0], "args": list(argv[1:]), "cwd": "{folder}"}
    project.yaml(TOOL, executor_id=SUBPROCESS, config=config)
    for folder in ("bin", str(project.path / "bin"), "bin/../bin/"):
        message = refused(project.run(TOOL, {"folder": folder}), "UnpinnedError")
        assert "names bin/gotool" in message


@pytest.mark.parametrize("space", ["user", "system"])
def test_a_tool_of_another_space_does_not_run_a_program_of_the_checkout(
    tmp_path: Path, space: Any
) -> None:
    project = Project(tmp_path)
    program(project, "evil")
    project.command(TOOL, "sh", "bin/gotool", space=space)
    refused(project.run(TOOL), "UnpinnedError")


def test_a_program_that_appears_later_is_noticed(project: Project) -> None:
    """In a warm executor too: the argument named nothing when the tool was first called."""
    project.command(TOOL, "echo", "bin/hook")

    async def call() -> list[ExecutionResult]:
        async with project.executor() as executor:
            results = [await executor.execute(TOOL)]
            await asyncio.sleep(0.3)  # until the folders may be remembered
            results += [await executor.execute(TOOL) for _ in range(2)]
            program(project, "evil", "bin/hook")
            return [*results, await executor.execute(TOOL)]

    *before, after = asyncio.run(call())
    assert [one.error for one in before] == [None] * 3
    refused(after, "UnpinnedError")


def test_a_pinned_program_does_not_run_without_a_lockfile(project: Project) -> None:
    """Nobody signed it, so the first call must not trust it: `rye lock` is the review."""
    project.command(TOOL, "bin/gotool", pins=["bin/gotool"])
    for use in (True, False):
        assert refused(project.run(TOOL, use_lockfile=use), "LockMissingError") == (
            f"'{TOOL}' 1.0.0 runs files of the project that are not signed (bin/gotool), and no "
            f"lockfile pins them; review them, then run: rye lock {TOOL}"
        )
    assert not project.lockfile(TOOL).exists()


@pytest.mark.parametrize("space", ["project", "user"])
@pytest.mark.parametrize("frozen", [False, True])
def test_a_program_and_a_lockfile_that_came_with_a_checkout_do_not_run_unapproved(
    console: Console, space: SpaceName, frozen: bool
) -> None:
    """Whoever made the checkout made both, and the lockfile is not signed."""
    project = console.project
    project.command(TOOL, "bin/gotool", pins=["bin/gotool"], space=space)
    assert console("lock", TOOL).code == 0
    project.fresh_clone = True
    ProjectApproval(project.context).withdraw()

    message = refused(project.run(TOOL, frozen=frozen), "UnapprovedProjectError")

    assert message == (
        f"'{TOOL}' would run code of {project.path}/bin/gotool, but you have not approved the "
        "unsigned parts of this project; review and approve them with: rye trust project"
    )
    shown = console("trust", "project", "--show")
    assert f"pins    {TOOL} runs bin/gotool" in shown.stdout
    assert console("trust", "project", "--yes").code == 0
    assert project.run(TOOL, frozen=frozen).data["stdout"] == "good\n"


@pytest.mark.parametrize(
    "argv", [("bin/gotool",), ("sh", "bin/gotool"), ("env", "bin/gotool"), ("true",)]
)
@pytest.mark.parametrize("frozen", [False, True])
def test_a_program_changed_after_the_lock_does_not_run(
    console: Console, argv: tuple[str, ...], frozen: bool
) -> None:
    """Whether it is in the command or, like a Makefile, only in the pins."""
    project = console.project
    pinned(console, *argv)
    first = project.run(TOOL, frozen=frozen)
    assert first.success, first.error
    program(project, "evil")
    message = refused(project.run(TOOL, frozen=frozen), "LockTamperedError")
    assert message.startswith(
        f"lockfile {project.lockfile(TOOL)}: the file of the project bin/gotool is pinned as "
    )
    assert message.endswith(f"; review the change, then accept it with: rye lock --update {TOOL}")
    assert console("lock", "--check").code == 5
    assert console("lock", "--update", TOOL).code == 0
    assert project.run(TOOL, frozen=True).success


def test_a_warm_executor_notices_a_changed_program(console: Console) -> None:
    pinned(console)
    path = console.path / "bin" / "gotool"
    before = path.stat()

    async def call() -> list[ExecutionResult]:
        async with console.project.executor() as executor:
            results = [await executor.execute(TOOL)]
            await asyncio.sleep(0.3)  # until the hash may be remembered
            results += [await executor.execute(TOOL) for _ in range(2)]
            program(console.project, "evil")
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
            return [*results, await executor.execute(TOOL)]

    *good, last = asyncio.run(call())
    assert [one.data["stdout"] for one in good] == ["good\n"] * 3
    refused(last, "LockTamperedError")


def test_a_new_file_that_a_glob_matches_does_not_run_unpinned(console: Console) -> None:
    pinned(console, "sh", "-c", "for f in bin/*; do sh $f; done", pins=("bin/*",))
    assert console.project.run(TOOL).success
    program(console.project, "evil", "bin/.hidden")
    message = refused(console.project.run(TOOL), "LockTamperedError")
    assert "the file of the project bin/.hidden is not pinned" in message


@pytest.mark.parametrize("pattern", ["bin/out", "bin/*", "**/out"])
def test_a_pin_cannot_leave_the_project_through_a_link(console: Console, pattern: str) -> None:
    outside = console.path.parent / "outside"
    outside.write_text("#!/bin/sh\necho evil\n")
    (console.path / "bin" / "out").symlink_to(outside)
    console.project.command(TOOL, "sh", "bin/out", pins=[pattern])
    done = console("lock", TOOL)
    assert done.code == 1
    assert "bin/out leads out of the project; put the file itself there, not a link" in done.stderr
