"""After any change to the files, a warm executor returns the same results as a new one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from approved_project import approve
from rye.errors import RyeError
from rye.executor.run.result import ExecutionResult
from rye.spaces.model import SpaceName
from rye_project import SUBPROCESS, Project

STEPS = 60
STEPS_TO_REPAIR = 6
TOOLS = ("kit/deep/tool", "tool", "plain")
SPACES: tuple[SpaceName, ...] = ("project", "user", "system")
RUNTIME: dict[str, Any] = {"tool_type": "runtime", "executor_id": SUBPROCESS}


class World:
    """Tools with full and short ids, and random changes to them."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root = root
        self.project = Project(root)
        self.random = random.Random(seed)  # noqa: S311 - repeatable steps
        self.number = 0

    def build(self) -> None:
        for space in SPACES:
            tools = self.project.folder(space) / "tools"
            tools.unlink() if tools.is_symlink() else shutil.rmtree(tools, ignore_errors=True)
            for number in range(3):
                (tools / f"f{number}").mkdir(parents=True)
        shutil.rmtree(self.project.path / ".ai" / "lockfiles", ignore_errors=True)
        (self.project.user / ".ai" / "keys").chmod(0o700)
        (self.project.user / ".ai").chmod(0o755)
        self.define("system")
        for item_id, runtime in (("kit/deep/tool", "echo_runtime"), ("plain", "runtimes/other")):
            self.project.yaml(
                item_id, executor_id=runtime, verify_deps={"scope": "tool_dir", "recursive": True}
            )
        self.project.tool("kit/deep/module.py", "x = 1\n")

    def define(self, space: SpaceName) -> None:
        """Write runtimes whose output identifies this definition."""
        for name in ("runtimes/echo_runtime", "runtimes/other"):
            if space == "system" or self.random.random() < 0.5:
                args = [str(self.number), "${WORD:-none}"]
                config = {"command": "/bin/echo", "args": args}
                self.project.yaml(name, space=space, **RUNTIME, config=config)

    def one_file(self) -> Path:
        files = [
            Path(folder, name)
            for space in SPACES
            for folder, _, names in os.walk(self.project.folder(space) / "tools")
            for name in names
        ]
        return self.random.choice(sorted(files))

    def shadow(self) -> None:
        self.define(self.random.choice(SPACES))

    def shadow_a_short_id(self) -> None:
        config = {"command": "/bin/echo", "args": [str(self.number)]}
        self.project.yaml("f1/echo_runtime", **RUNTIME, config=config)

    def flip_a_bit(self) -> None:
        path = self.one_file()
        status, content = path.stat(), bytearray(path.read_bytes())
        content[self.random.randrange(len(content))] ^= 1
        path.write_bytes(content)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    def sign(self) -> None:
        self.project.sign(self.one_file())

    def remove(self) -> None:
        self.one_file().unlink()

    def replace_a_file_by_a_link(self) -> None:
        self._move_and_link(self.one_file())

    def replace_a_folder_by_a_link(self) -> None:
        path = self.one_file()
        self._move_and_link(self.random.choice(path.parents[: path.parts[::-1].index("tools")]))

    def rename_a_folder(self) -> None:
        folder = self.one_file().parent
        if folder.name != "tools":
            folder.rename(folder.with_name(f"renamed{self.number}"))

    def open_to_others(self) -> None:
        name = self.random.choice(["keys", "."])
        (self.project.user / ".ai" / name).chmod(self.random.choice([0o700, 0o777]))

    def write_dotenv(self) -> None:
        (self.project.path / ".env").write_text(f"WORD=w{self.number}\n")
        approve(self.project.context)

    def unlock(self) -> None:
        shutil.rmtree(self.project.path / ".ai" / "lockfiles", ignore_errors=True)

    def _move_and_link(self, path: Path) -> None:
        elsewhere = self.root / f"elsewhere{self.number}"
        path.rename(elsewhere)
        path.symlink_to(elsewhere)

    def step(self) -> str:
        """Make one random change; return its name."""
        self.number += 1
        if self.number % STEPS_TO_REPAIR == 1:
            self.build()
            return "build"
        changes: list[Callable[[], None]] = [
            self.shadow, self.shadow_a_short_id, self.flip_a_bit, self.sign, self.remove,
            self.replace_a_file_by_a_link, self.replace_a_folder_by_a_link, self.rename_a_folder,
            self.open_to_others, self.write_dotenv, self.unlock,
        ]  # fmt: skip
        change = self.random.choice(changes)
        # Signing fails while others can read the keys, and for a file behind a link.
        with contextlib.suppress(OSError, RyeError):
            change()
        return change.__name__


def comparable(result: ExecutionResult) -> object:
    """Return the part of a result on which two executors must agree.

    If a tool has several faults, they may report different ones.
    """
    if not result.success:
        return False
    return result.data, result.chain, result.metadata


@pytest.mark.parametrize("seed", range(2))
def test_a_warm_executor_agrees_with_a_new_one(tmp_path: Path, seed: int) -> None:
    world = World(tmp_path, seed)
    succeeded = 0

    async def compare() -> None:
        nonlocal succeeded
        async with world.project.executor() as warm:
            for _ in range(STEPS):
                change_name = world.step()
                for tool in TOOLS:
                    if change_name == "build":
                        await warm.execute(tool)
                    remembered = await warm.execute(tool, dry_run=True)
                    async with world.project.executor() as new:
                        fresh = await new.execute(tool, dry_run=True)
                    assert comparable(remembered) == comparable(fresh), (
                        f"step {world.number} ({change_name}), {tool}: "
                        f"warm executor: {remembered.error or 'runs'}; "
                        f"new executor: {fresh.error or 'runs'}"
                    )
                    succeeded += fresh.success

    asyncio.run(compare())
    # After each build all tools run; if none did, the comparison would prove nothing.
    assert succeeded >= STEPS // STEPS_TO_REPAIR * len(TOOLS)
