"""Load: thousands of calls, each with its own input, and none may lose or swap it."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import psutil
from lilux.primitives.subprocess import SubprocessPrimitive
from processes import lineage
from rye_project import Project

from torture.leftovers import MIB, Before
from torture.scenario import Outcome

AT_ONCE = 200
LOOPS = 8
# A call that was lost would wait for ever.
PATIENCE_SECONDS = 30
ENOUGH_LOST = 50
# What caches of the caller, and stacks and arenas of the helper's 200 threads, may still take after
# the warm-up. In the long version a leak of 1 KiB a call is more than either.
CALLER_BYTES = 8 * MIB
HELPER_BYTES = 24 * MIB

Call = Callable[[str], Awaitable[str]]


async def _each_its_own(call: Call, first: int, count: int) -> list[str]:
    """Makes ``count`` calls, at most ``AT_ONCE`` at a time; a sentence for each wrong answer."""
    numbers = iter(range(first, first + count))
    wrong: list[str] = []

    async def work() -> None:
        for number in numbers:
            if len(wrong) >= ENOUGH_LOST:
                return
            word = f"{number}-{number * 2654435761 % 2**32:08x}"
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    said = await call(word)
            except Exception as error:  # noqa: BLE001 - whatever it is, the call was lost
                wrong.append(f"call {number} raised {type(error).__name__}: {error}")
                continue
            if said != word:
                wrong.append(f"call {number} was answered with {said[:60]!r}")

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    return wrong


async def _process(word: str) -> str:
    """Even numbers go in by stdin, odd ones by an argument."""
    if int(word.partition("-")[0]) % 2:
        config = {"command": "printf", "args": ["%s", "{word}"]}
    else:
        config = {"command": "cat", "input_data": "{word}"}
    result = await SubprocessPrimitive().execute(config, {"word": word})
    return result.stdout if result.success else result.stderr


def _memory() -> dict[str, int]:
    """Resident bytes of this program and of each process of its helpers."""
    gc.collect()
    own = psutil.Process()
    helpers = [child for child in own.children() if child.name() == "lilux-proc"]
    below = [process for helper in helpers for process in lineage(helper.pid)]
    names = ["the caller", *("keeper", "guardian", "worker")[: len(below)]]
    return {
        name: process.memory_info().rss for name, process in zip(names, [own, *below], strict=False)
    }


async def _flood(call: Call, count: int) -> tuple[list[str], str]:
    warm_up = max(count // 5, AT_ONCE)
    lost = await _each_its_own(call, 0, warm_up)
    before = _memory()
    lost += await _each_its_own(call, warm_up, count - warm_up)
    grown = {name: size - before[name] for name, size in _memory().items() if name in before}
    lost += [
        f"{name} grew by {size / MIB:.1f} MiB"
        for name, size in grown.items()
        if size > (CALLER_BYTES if name == "the caller" else HELPER_BYTES)
    ]
    told = ", ".join(f"{name} {size / MIB:+.1f}" for name, size in grown.items() if size)
    return lost, f"memory after the warm-up, MiB: {told or 'no change'}"


def processes(times: int, _folder: Path) -> Outcome:
    """Calls of the subprocess primitive."""
    before = Before()
    lost, note = asyncio.run(_flood(_process, times))
    return Outcome(tried=times, lost=(*lost, *before.left()), note=note)


def tools(times: int, folder: Path) -> Outcome:
    """Calls of a signed and locked tool, through the whole of Rye."""
    before = Before()
    project = Project(folder)
    project.command("echo", "/bin/echo", "-n", "{word}")

    async def main() -> tuple[list[str], str]:
        async with project.executor() as executor:

            async def call(word: str) -> str:
                result = await executor.execute("echo", {"word": word})
                return result.data["stdout"] if result.success else str(result.error)

            return await _flood(call, times)

    lost, note = asyncio.run(main())
    return Outcome(tried=times, lost=(*lost, *before.left()), note=note)


def loops(times: int, _folder: Path) -> Outcome:
    """Eight event loops in eight threads, each with its own helper."""
    before = Before()
    lost: list[str] = []

    def one(number: int) -> None:
        share = times // LOOPS
        lost.extend(asyncio.run(_each_its_own(_process, number * share, share)))

    threads = [threading.Thread(target=one, args=(number,)) for number in range(LOOPS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Outcome(tried=times // LOOPS * LOOPS, lost=(*lost, *before.left()))
