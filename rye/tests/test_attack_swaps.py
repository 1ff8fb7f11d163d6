"""Attacks by somebody who changes files while a call is under way."""

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
    """Puts one state after the other in place, as fast as it can, until the end."""
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            for state in states:
                state()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def put(path: Path, content: bytes) -> Callable[[], None]:
    """A state: the file in one step, as an attacker would."""

    def state() -> None:
        new = path.with_name(f".{path.name}.new")
        new.write_bytes(content)
        new.replace(path)

    return state


def link(path: Path, target: Path) -> Callable[[], None]:
    """A state: a link in the place of the path."""

    def state() -> None:
        new = path.with_name(f".{path.name}.new")
        new.symlink_to(target)
        new.replace(path)

    return state


def outcomes(project: Project, item_id: str, rounds: int = ROUNDS) -> set[str]:
    """What came of the calls: what was printed, or the type of the error."""

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


def test_a_link_to_a_file_outside_swapped_in_never_runs(project: Project, tmp_path: Path) -> None:
    tool = project.tool("t.yaml", TOOL.format(executor=SUBPROCESS, word="good"))
    outside = tmp_path / "evil.yaml"
    outside.write_text(TOOL.format(executor=SUBPROCESS, word="evil"))
    with swapping(link(tool, outside), put(tool, tool.read_bytes())):
        seen = outcomes(project, "t")
    assert seen <= {"good\n", *REFUSALS}


def test_changed_content_swapped_in_never_runs(project: Project) -> None:
    tool = project.tool("t.yaml", TOOL.format(executor=SUBPROCESS, word="good"))
    good = tool.read_bytes()
    with swapping(put(tool, good.replace(b"good", b"evil")), put(tool, good)):
        seen = outcomes(project, "t")
    assert seen <= {"good\n", *REFUSALS}


def test_a_changed_runtime_swapped_in_below_a_tool_never_runs(project: Project) -> None:
    runtime = project.yaml("runtimes/echo", executor_id=SUBPROCESS, config={"command": "echo"})
    project.yaml("t", executor_id="runtimes/echo", config={"args": ["good"]})
    good = runtime.read_bytes()
    with swapping(put(runtime, good.replace(b"echo", b"true")), put(runtime, good)):
        seen = outcomes(project, "t")
    assert seen <= {"good\n", *REFUSALS}


def test_a_folder_swapped_for_a_link_to_another_never_leads_out(
    project: Project, tmp_path: Path
) -> None:
    """Signed content that lies outside of the space is not of the space, however it is reached."""
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


def test_what_is_read_is_where_it_was_found_or_refused(project: Project, tmp_path: Path) -> None:
    """The reader by itself, which has no signature to fall back on."""
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


def test_a_lockfile_swapped_for_a_link_is_not_written_through(
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
def test_a_python_tool_exchanged_when_its_interpreter_starts_does_not_run(
    tmp_path: Path, line: str
) -> None:
    """The worst moment there is: an interpreter that does it, before it opens the file."""
    project = Project(tmp_path, shipped_system=True)
    tool = project.tool("t.py", PYTHON.format(line=line, word="good"))
    assert project.run("t").data == "good"
    evil = tmp_path / "evil.py"
    evil.write_bytes(tool.read_bytes().replace(b"good", b"evil"))
    interpreter = project.path / ".venv/bin/python"
    interpreter.parent.mkdir(parents=True)
    interpreter.write_text(f'#!/bin/sh\nln -sf {evil} {tool}\nexec {sys.executable} "$@"\n')
    interpreter.chmod(0o755)
    # Nor can a caller say which hash is the right one.
    changed = split_signature(evil.read_bytes(), "#").content_hash
    result = project.run("t", {"tool_integrity": changed})
    assert not result.success
    assert f"{tool} changed after it was verified and was not run; run it again" in str(
        result.error
    )
