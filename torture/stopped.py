"""SIGSTOP: stopped jobs can still be ended, and so can a stopped helper."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

from lilux.primitives.errors import HelperError
from lilux.primitives.subprocess import SubprocessPrimitive, session
from processes import wait_until

from torture.helper_death import CALLS_IN_FLIGHT, TIMEOUT_SECONDS, only_helper
from torture.leftovers import Baseline, Mark
from torture.scenario import Outcome

SEED = 20261116


def _whole_group(mark: Mark) -> str:
    return mark.tree(f"sleep 60 {mark.text} & kill -STOP 0")


def _children_only(mark: Mark) -> str:
    stop = "for pid in $(jobs -p); do kill -STOP $pid; done"
    return f"sleep 60 {mark.text} & sleep 60 {mark.text} & {stop}\nwait"


def _ignoring_sigterm(mark: Mark) -> str:
    return f"trap '' TERM\n{mark.tree('kill -STOP $$')}"


KINDS: tuple[Callable[[Mark], str], ...] = (_whole_group, _children_only, _ignoring_sigterm)
ENDS = ("timeout", "cancel", "close")


def ended(times: int, _folder: Path) -> Outcome:
    """End stopped groups, children and jobs that ignore SIGTERM, by timeout, cancel and close."""
    before = Baseline()
    failures: list[str] = []
    for turn in range(times):
        kind, end = KINDS[turn % len(KINDS)], ENDS[turn // len(KINDS) % len(ENDS)]
        mark = Mark()
        failure = asyncio.run(_end(kind(mark), mark, end))
        if failure is not None:
            failures.append(f"{kind.__name__.strip('_')} by {end}: {failure}")
        failures += mark.leftovers()
    return Outcome(tried=times, failures=(*failures, *before.leftovers()))


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
    await asyncio.to_thread(wait_until, lambda: len(mark.alive()) >= 3, "the job runs")
    if end == "cancel":
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        return None if call.cancelled() else "not cancelled"
    # The loop ends while the call is in flight, as in a program that exits.
    return None


SILENT = (
    "lilux-proc did not answer during a call; its processes are being ended; "
    "try again: the next call starts a new helper"
)
PARTS = ("keeper", "guardian", "worker")


def helper_stopped(times: int, _folder: Path) -> Outcome:
    """Stop one process of the helper while trees of processes start and run; then end the loop.

    The helper continues its guardian and its worker, so calls go on if one of these is stopped.
    """
    before = Baseline()
    numbers = random.Random(SEED)
    failures: list[str] = []
    # A tenth of the usual timeouts, so that more rounds fit.
    with patch.object(session, "SILENCE_SECONDS", 0.9), patch.object(session, "END_SECONDS", 1):
        for turn in range(times):
            mark, part = Mark(), PARTS[turn % len(PARTS)]
            found = asyncio.run(_stop_part(part, mark, numbers))
            failures += [
                f"a stopped {part}: {sentence}" for sentence in (*found, *mark.leftovers())
            ]
    return Outcome(tried=times, failures=(*failures, *before.leftovers()))


async def _stop_part(part: str, mark: Mark, numbers: random.Random) -> list[str]:
    primitive = SubprocessPrimitive()
    await primitive.execute({"command": "true"})
    parts = await asyncio.to_thread(only_helper)
    config = {"command": "sh", "args": ["-c", mark.tree()], "render": False}
    calls = [asyncio.create_task(primitive.execute(config)) for _ in range(CALLS_IN_FLIGHT)]
    await asyncio.sleep(numbers.uniform(0, 0.03))
    parts[PARTS.index(part)].suspend()
    if part != "keeper":
        return [f"a call ended: {call.result()}" for call in calls if call.done()]
    _, waiting = await asyncio.wait(calls, timeout=TIMEOUT_SECONDS)
    errors = [call.exception() for call in calls if call not in waiting]
    return ["a call got no answer"] * len(waiting) + [
        f"a call got {error!r}"
        for error in errors
        if not (isinstance(error, HelperError) and str(error) == SILENT)
    ]
