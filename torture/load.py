"""Load: thousands of calls with different inputs; no answer may be lost or swapped."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import psutil
from lilux.primitives.subprocess import SubprocessPrimitive
from processes import helper_processes
from rye_project import Project

from torture.leftovers import MIB, Baseline
from torture.scenario import Outcome

AT_ONCE = 200
LOOPS = 8
# Without a limit, a lost call would wait forever.
TIMEOUT_SECONDS = 30
MAX_FAILURES = 50
# Allowed growth after the warm-up: caches of the caller, stacks and arenas of the helper's 200
# threads. In the long version, a leak of 1 KiB per call exceeds both.
CALLER_BYTES = 8 * MIB
HELPER_BYTES = 24 * MIB

Call = Callable[[str], Awaitable[str]]


async def _call_many(call: Call, first: int, count: int) -> list[str]:
    """Make ``count`` calls, at most ``AT_ONCE`` at a time. Returns a sentence per wrong answer."""
    numbers = iter(range(first, first + count))
    wrong: list[str] = []

    async def work() -> None:
        for number in numbers:
            if len(wrong) >= MAX_FAILURES:
                return
            word = f"{number}-{number * 2654435761 % 2**32:08x}"
            try:
                async with asyncio.timeout(TIMEOUT_SECONDS):
                    answer = await call(word)
            except Exception as error:  # noqa: BLE001 - any exception is a failure
                wrong.append(f"call {number} raised {type(error).__name__}: {error}")
                continue
            if answer != word:
                wrong.append(f"call {number} was answered with {answer[:60]!r}")

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    return wrong


async def _process(word: str) -> str:
    """Echo the word: even numbers through stdin, odd ones through an argument."""
    if int(word.partition("-")[0]) % 2:
        config = {"command": "printf", "args": ["%s", "{word}"]}
    else:
        config = {"command": "cat", "input_data": "{word}"}
    result = await SubprocessPrimitive().execute(config, {"word": word})
    return result.stdout if result.success else result.stderr


def _memory() -> dict[str, int]:
    """Return the resident bytes of this program and of each process of its helpers."""
    gc.collect()
    own = psutil.Process()
    helpers = [child for child in own.children() if child.name() == "lilux-proc"]
    below = [process for helper in helpers for process in helper_processes(helper.pid)]
    names = ["the caller", *("keeper", "guardian", "worker")[: len(below)]]
    return {
        name: process.memory_info().rss for name, process in zip(names, [own, *below], strict=False)
    }


async def _flood(call: Call, count: int) -> tuple[list[str], str]:
    warm_up = max(count // 5, AT_ONCE)
    failures = await _call_many(call, 0, warm_up)
    before = _memory()
    failures += await _call_many(call, warm_up, count - warm_up)
    grown = {name: size - before[name] for name, size in _memory().items() if name in before}
    failures += [
        f"{name} grew by {size / MIB:.1f} MiB"
        for name, size in grown.items()
        if size > (CALLER_BYTES if name == "the caller" else HELPER_BYTES)
    ]
    growth = ", ".join(f"{name} {size / MIB:+.1f}" for name, size in grown.items() if size)
    return failures, f"memory after the warm-up, MiB: {growth or 'no change'}"


def processes(times: int, _folder: Path) -> Outcome:
    """Call the subprocess primitive."""
    before = Baseline()
    failures, note = asyncio.run(_flood(_process, times))
    return Outcome(tried=times, failures=(*failures, *before.leftovers()), note=note)


def tools(times: int, folder: Path) -> Outcome:
    """Call a signed and locked tool through Rye."""
    before = Baseline()
    project = Project(folder)
    project.command("echo", "/bin/echo", "-n", "{word}")

    async def main() -> tuple[list[str], str]:
        async with project.executor() as executor:

            async def call(word: str) -> str:
                result = await executor.execute("echo", {"word": word})
                return result.data["stdout"] if result.success else str(result.error)

            return await _flood(call, times)

    failures, note = asyncio.run(main())
    return Outcome(tried=times, failures=(*failures, *before.leftovers()), note=note)


def loops(times: int, _folder: Path) -> Outcome:
    """Call from eight event loops in eight threads, each with its own helper."""
    before = Baseline()
    failures: list[str] = []

    def one(number: int) -> None:
        share = times // LOOPS
        failures.extend(asyncio.run(_call_many(_process, number * share, share)))

    threads = [threading.Thread(target=one, args=(number,)) for number in range(LOOPS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Outcome(tried=times // LOOPS * LOOPS, failures=(*failures, *before.leftovers()))
