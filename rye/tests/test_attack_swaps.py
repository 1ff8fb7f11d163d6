"""Attacks that change files during a call."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rye.errors import RyeError
from rye.items.reader import read_item
from rye.spaces.resolver import Resolver
from rye.trust.signature import split_signature
from rye_project import SUBPROCESS, Project

ROUNDS = 150
TOOL = 'version: "1.0.0"\nexecutor_id: {executor}\nconfig: {{command: echo, args: [{word}]}}\n'
REFUSALS = {
    "UnsafePathError", "UnsignedError", "ChangedError", "ItemNotFoundError", "AmbiguousIdError",
}  # fmt: skip


PYTHON = """{line}__version__ = "1.0.0"
__executor_id__ = "rye/core/runtimes/python_runtime"


def main(**params):
    return "{word}"
"""


@contextlib.contextmanager
def swapping(*states: Callable[[], None]) -> Iterator[None]:
    """Create one state after the other in a thread, as fast as possible, until the block ends."""
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            for state in states:
                state()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def put(path: Path, content: bytes) -> Callable[[], None]:
    """A state in which the file has this content; it is replaced atomically."""

    def state() -> None:
        new = path.with_name(f".{path.name}.new")
        new.write_bytes(content)
        new.replace(path)

    return state


def link(path: Path, target: Path) -> Callable[[], None]:
    """A state in which the path is a link to the target."""

    def state() -> None:
        new = path.with_name(f".{path.name}.new")
        new.symlink_to(target)
        new.replace(path)

    return state


def outcomes(project: Project, item_id: str, rounds: int = ROUNDS) -> set[str]:
    """Return the different outcomes of the calls: the output, or the type of the error."""

    async def calls() -> set[str]:
        seen: set[str] = set()
        async with project.executor() as executor:
            for _ in range(rounds):
                result = await executor.execute(item_id, use_lockfile=False)
                seen.add(result.data["stdout"] if result.success else result.metadata["error_type"])
        return seen

    return asyncio.run(calls())


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_swapping_a_tool_for_a_link_never_runs_the_target(project: Project, tmp_path: Path) -> None:
    tool = project.tool("t.yaml", TOOL.format(executor=SUBPROCESS, word="good"))
    outside = tmp_path / "evil.yaml"
    outside.write_text(TOOL.format(executor=SUBPROCESS, word="evil"))
    with swapping(link(tool, outside), put(tool, tool.read_bytes())):
        seen = outcomes(project, "t")
    assert seen <= {"good\n", *REFUSALS}


def test_swapping_the_content_of_a_tool_never_runs_the_change(project: Project) -> None:
    tool = project.tool("t.yaml", TOOL.format(executor=SUBPROCESS, word="good"))
    good = tool.read_bytes()
    with swapping(put(tool, good.replace(b"good", b"evil")), put(tool, good)):
        seen = outcomes(project, "t")
    assert seen <= {"good\n", *REFUSALS}


def test_swapping_the_content_of_a_runtime_never_runs_the_change(project: Project) -> None:
    runtime = project.yaml("runtimes/echo", executor_id=SUBPROCESS, config={"command": "echo"})
    project.yaml("t", executor_id="runtimes/echo", config={"args": ["good"]})
    good = runtime.read_bytes()
    with swapping(put(runtime, good.replace(b"echo", b"true")), put(runtime, good)):
        seen = outcomes(project, "t")
    assert seen <= {"good\n", *REFUSALS}


def test_swapping_a_folder_for_a_link_never_runs_a_tool_outside_the_space(
    project: Project, tmp_path: Path
) -> None:
    """Even a signed tool does not run if its file is outside the space."""
    inside = project.tool("folder/t.yaml", TOOL.format(executor=SUBPROCESS, word="good")).parent
    outside = tmp_path / "outside"
    outside.mkdir()
    away = inside.with_name("away")
    moved = TOOL.format(executor=SUBPROCESS, word="elsewhere")
    (outside / "t.yaml").write_bytes(project.tool("moved.yaml", moved).read_bytes())

    def exchange() -> None:
        inside.rename(away)
        inside.symlink_to(outside)

    def restore() -> None:
        inside.unlink()
        away.rename(inside)

    with swapping(exchange, restore):
        seen = outcomes(project, "folder/t")
    assert seen <= {"good\n", *REFUSALS}


def test_swapping_a_tool_for_a_link_never_reads_the_target(
    project: Project, tmp_path: Path
) -> None:
    """The reader alone, without the signature check that follows it in a call."""
    tool = project.tool("t.yaml", TOOL.format(executor=SUBPROCESS, word="good"))
    good = tool.read_bytes()
    outside = tmp_path / "evil.yaml"
    outside.write_bytes(b"evil")
    resolver = Resolver(project.context)
    with swapping(link(tool, outside), put(tool, good)):
        for _ in range(ROUNDS * 5):
            with contextlib.suppress(RyeError):
                found = resolver.resolve("t")
                assert found.path is not None
                assert read_item(found.path, found.space.root).content == good


def test_swapping_a_lockfile_for_a_link_never_writes_to_the_target(
    project: Project, tmp_path: Path
) -> None:
    project.tool("t.yaml", TOOL.format(executor=SUBPROCESS, word="good"))
    lockfile = project.lockfile("t")
    lockfile.parent.mkdir()
    precious = tmp_path / "precious"
    precious.write_text("precious")

    def unlink() -> None:
        with contextlib.suppress(FileNotFoundError):
            lockfile.unlink()

    async def calls() -> None:
        async with project.executor() as executor:
            for _ in range(30):
                await executor.execute("t")

    with swapping(link(lockfile, precious), unlink):
        asyncio.run(calls())
    assert precious.read_text() == "precious"


@pytest.mark.parametrize("line", ["", "#!/usr/bin/env python3\n"])
def test_a_python_tool_replaced_while_its_interpreter_starts_does_not_run(
    tmp_path: Path, line: str
) -> None:
    """The worst case: the interpreter itself replaces the tool just before opening it."""
    project = Project(tmp_path, shipped_system=True)
    tool = project.tool("t.py", PYTHON.format(line=line, word="good"))
    assert project.run("t").data == "good"
    evil = tmp_path / "evil.py"
    evil.write_bytes(tool.read_bytes().replace(b"good", b"evil"))
    interpreter = project.path / ".venv/bin/python"
    interpreter.parent.mkdir(parents=True)
    interpreter.write_text(f'#!/bin/sh\nln -sf {evil} {tool}\nexec {sys.executable} "$@"\n')
    interpreter.chmod(0o755)
    # The caller cannot supply the hash of the replaced file either.
    changed = split_signature(evil.read_bytes(), "#").content_hash
    result = project.run("t", {"tool_integrity": changed})
    assert not result.success
    assert f"{tool} changed after it was verified and was not run; run it again" in str(
        result.error
    )
