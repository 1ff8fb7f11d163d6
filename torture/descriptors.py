"""The caller is out of file descriptors: calls fail with a clear error, later ones work."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from lilux.primitives.errors import LiluxError
from lilux.primitives.subprocess import SubprocessPrimitive
from lilux.runtime.auth import AuthStore
from rye_project import Project
from scarce_descriptors import descriptors_left

from torture import children
from torture.leftovers import Baseline
from torture.scenario import Outcome

MAX_FREE = 6
ENOUGH = 24
SHORTAGE = "too many open files"

Call = Callable[[int], Awaitable[str | None]]
"""Takes the number of free descriptors; returns ``None`` on success, else the error message."""


def run_out(times: int, folder: Path) -> Outcome:
    """Call with no free descriptor, one, two …; each call works or reports the shortage."""
    return children.run("descriptors", folder, times)


async def _try_all(folder: Path, times: int) -> Outcome:
    failures: list[str] = []
    tried = short = 0
    calls = _calls(folder)
    # Triggers lazy imports, which need descriptors too.
    for call in calls.values():
        await call(ENOUGH)
    before = Baseline()
    for turn in range(times):
        free = turn % MAX_FREE
        for name, call in calls.items():
            error = await call(free)
            tried += 1
            short += error is not None
            if error is not None and SHORTAGE not in error.lower():
                failures.append(f"{name} with {free} descriptors free: {error}")
            if (error_afterwards := await call(ENOUGH)) is not None:
                failures.append(f"{name} afterwards: {error_afterwards}")
    return Outcome(
        tried=tried,
        failures=(*failures, *before.leftovers()),
        note=f"{short} refused, the others worked",
    )


def _calls(folder: Path) -> dict[str, Call]:
    project = Project(folder)
    project.command("hello", "/bin/echo", "hi")
    store = AuthStore("torture", folder / "tokens", keychain=None)

    async def new_helper(free: int) -> str | None:
        def in_new_loop() -> str | None:
            with asyncio.Runner() as runner:
                runner.get_loop()
                with descriptors_left(free):
                    return runner.run(_outcome(_echo()))

        return await asyncio.to_thread(in_new_loop)

    async def warm_helper(free: int) -> str | None:
        with descriptors_left(free):
            return await _outcome(_echo())

    async def tool(free: int) -> str | None:
        async with project.executor() as executor:
            with descriptors_left(free):
                return (await executor.execute("hello")).error

    async def keep_token() -> str | None:
        store.set_token("service", "kept")
        return None if await store.get_token("service") == "kept" else "another token"

    async def token(free: int) -> str | None:
        with descriptors_left(free):
            return await _outcome(keep_token())

    return {"a new helper": new_helper, "a process": warm_helper, "a tool": tool, "a token": token}


async def _echo() -> str | None:
    result = await SubprocessPrimitive().execute({"command": "echo", "args": ["hi"]})
    return None if result.stdout == "hi\n" else result.stderr


async def _outcome(call: Awaitable[str | None]) -> str | None:
    """Return the message of a typed error; any other exception is a defect and is raised."""
    try:
        return await call
    except LiluxError as error:
        return str(error)


if __name__ == "__main__":
    children.print_outcome(asyncio.run(_try_all(Path(sys.argv[1]), int(sys.argv[2]))))
