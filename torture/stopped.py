"""Jobs and helpers that were stopped by SIGSTOP are ended."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

from lilux.primitives.errors import HelperError
from lilux.primitives.subprocess import SubprocessPrimitive, session
from processes import wait_until

from torture.helper_death import CALLS_IN_FLIGHT, PATIENCE_SECONDS, only_helper
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
    """Stop groups, children and jobs that ignore SIGTERM; end them by timeout, cancel and close."""
    before = Before()
    numbers = random.Random(SEED)
    lost: list[str] = []
    for turn in range(times):
        kind, end = KINDS[turn % len(KINDS)], ENDS[turn // len(KINDS) % len(ENDS)]
        mark = Mark(numbers)
        fault = asyncio.run(_end(kind(mark), mark, end))
        if fault is not None:
            lost.append(f"{kind.__name__.strip('_')} by {end}: {fault}")
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
    # The loop ends during the call, as at the exit of a program.
    return None


SILENT = (
    "lilux-proc did not answer during a call; its processes are being ended; "
    "try again: the next call starts a new helper"
)
PARTS = ("keeper", "guardian", "worker")


def helper_stopped(times: int, _folder: Path) -> Outcome:
    """Stop one part of the helper while process trees start and run; then end the loop.

    The guardian acts only at the end, so calls continue while it is stopped.
    """
    before = Before()
    numbers = random.Random(SEED)
    lost: list[str] = []
    # Shorter than usual, so that more can be tried.
    with patch.object(session, "SILENCE_SECONDS", 0.9), patch.object(session, "END_SECONDS", 1):
        for turn in range(times):
            mark, part = Mark(numbers), PARTS[turn % len(PARTS)]
            faults = asyncio.run(_stop_part(part, mark, numbers))
            lost += [f"a stopped {part}: {fault}" for fault in (*faults, *mark.left())]
    return Outcome(tried=times, lost=(*lost, *before.left()))


async def _stop_part(part: str, mark: Mark, numbers: random.Random) -> list[str]:
    primitive = SubprocessPrimitive()
    await primitive.execute({"command": "true"})
    own = await asyncio.to_thread(only_helper)
    config = {"command": "sh", "args": ["-c", mark.tree()], "render": False}
    calls = [asyncio.create_task(primitive.execute(config)) for _ in range(CALLS_IN_FLIGHT)]
    await asyncio.sleep(numbers.uniform(0, 0.03))
    own[PARTS.index(part)].suspend()
    if part == "guardian":
        return [f"a call ended: {call.result()}" for call in calls if call.done()]
    _, waiting = await asyncio.wait(calls, timeout=PATIENCE_SECONDS)
    errors = [call.exception() for call in calls if call not in waiting]
    return ["a call never ended"] * len(waiting) + [
        f"a call raised {error!r}"
        for error in errors
        if not (isinstance(error, HelperError) and str(error) == SILENT)
    ]
