"""Jobs that were stopped with SIGSTOP are ended all the same."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path

from lilux.primitives.subprocess import SubprocessPrimitive
from processes import wait_until

from torture.leftovers import Before, Mark
from torture.scenario import Outcome

SEED = 20261116


def _whole_group(mark: Mark) -> str:
    return mark.tree(f"sleep 60 {mark.text} & kill -STOP 0")


def _children_only(mark: Mark) -> str:
    stop = "for pid in $(jobs -p); do kill -STOP $pid; done"
    return f"sleep 60 {mark.text} & sleep 60 {mark.text} & {stop}\nwait"


def _deaf_and_stopped(mark: Mark) -> str:
    return f"trap '' TERM\n{mark.tree('kill -STOP $$')}"


KINDS: tuple[Callable[[Mark], str], ...] = (_whole_group, _children_only, _deaf_and_stopped)
ENDS = ("timeout", "cancel", "close")


def ended(times: int, _folder: Path) -> Outcome:
    """Stopped groups, children and jobs that ignore SIGTERM; by timeout, cancel and close."""
    before = Before()
    numbers = random.Random(SEED)
    lost: list[str] = []
    for turn in range(times):
        kind, end = KINDS[turn % len(KINDS)], ENDS[turn // len(KINDS) % len(ENDS)]
        mark = Mark(numbers)
        told = asyncio.run(_end(kind(mark), mark, end))
        if told is not None:
            lost.append(f"{kind.__name__.strip('_')} by {end}: {told}")
        lost += mark.left()
    return Outcome(tried=times, lost=(*lost, *before.left()))


async def _end(script: str, mark: Mark, end: str) -> str | None:
    config = {
        "command": "sh",
        "args": ["-c", script],
        "render": False,
        "timeout": 0.3 if end == "timeout" else 60,
        "grace": 0.1,
    }
    call = asyncio.create_task(SubprocessPrimitive().execute(config))
    if end == "timeout":
        result = await call
        return None if result.timed_out else f"ended with {result.return_code}"
    await asyncio.to_thread(wait_until, lambda: len(mark.alive()) >= 3, "the job is up")
    if end == "cancel":
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        return None if call.cancelled() else "not cancelled"
    # The loop ends while the call is in flight, as that of a program that leaves does.
    return None
