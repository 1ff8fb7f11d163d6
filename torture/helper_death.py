"""The helper is killed at random moments: during calls, and while it starts."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
from lilux.primitives.errors import HelperError
from lilux.primitives.subprocess import SubprocessPrimitive
from proc_client import ProcClient
from processes import is_alive, lineage, wait_until

from torture.leftovers import Before, Mark
from torture.scenario import Outcome

SEED = 20261116
CALLS_IN_FLIGHT = 6
HELPER_DIED = (
    "lilux-proc ended unexpectedly during a call; its processes are being ended; "
    "try again: the next call starts a new helper"
)
# A call that misses the death of the helper would wait for ever.
PATIENCE_SECONDS = 30


def in_flight(times: int, _folder: Path) -> Outcome:
    """Kill the keeper, guardian or worker while process trees start, run and end."""
    before = Before()
    lost, reported = asyncio.run(_kill_repeatedly(times, random.Random(SEED)))
    calls = times * CALLS_IN_FLIGHT
    return Outcome(
        tried=times,
        lost=(*lost, *before.left()),
        note=f"{reported} of {calls} calls reported the death, the others had ended",
    )


async def _kill_repeatedly(times: int, numbers: random.Random) -> tuple[list[str], int]:
    primitive = SubprocessPrimitive()
    lost: list[str] = []
    reported = 0
    for turn in range(times):
        lost += await _works(primitive, f"after {turn} deaths")
        own = await asyncio.to_thread(only_helper)
        mark = Mark(numbers)
        calls = [
            asyncio.create_task(primitive.execute(_job(mark, numbers)))
            for _ in range(CALLS_IN_FLIGHT)
        ]
        await asyncio.sleep(numbers.uniform(0, 0.03))
        numbers.choice(own).kill()
        _, waiting = await asyncio.wait(calls, timeout=PATIENCE_SECONDS)
        for call in waiting:
            call.cancel()
            lost.append(f"death {turn}: a call never ended")
        errors = [error for call in calls if call not in waiting and (error := call.exception())]
        reported += len(errors)
        lost += [
            f"death {turn}: a call raised {type(error).__name__}: {error}"
            for error in errors
            if not (isinstance(error, HelperError) and str(error) == HELPER_DIED)
        ]
        lost += await asyncio.to_thread(mark.left)
    lost += await _works(primitive, "at the end")
    return lost, reported


def _job(mark: Mark, numbers: random.Random) -> dict[str, object]:
    """A tree that sleeps, or one whose root process ends around the time of the kill."""
    then = f"sleep {numbers.uniform(0, 0.03):.4f}" if numbers.random() < 0.5 else None
    return {"command": "sh", "args": ["-c", mark.tree(then)], "render": False}


async def _works(primitive: SubprocessPrimitive, when: str) -> list[str]:
    """Check that the next call works. The first one may still report the death of the helper."""
    for _ in range(2):
        with contextlib.suppress(HelperError):
            result = await primitive.execute({"command": "echo", "args": [when]})
            return [] if result.stdout == f"{when}\n" else [f"{when}: no echo"]
    return [f"{when}: the next call does not work"]


def only_helper() -> list[psutil.Process]:
    """Return keeper, guardian and worker of this loop, when all earlier helpers have ended."""

    def helpers() -> list[psutil.Process]:
        return [p for p in psutil.Process().children() if p.name() == "lilux-proc" and is_alive(p)]

    wait_until(lambda: len(helpers()) == 1, "there is one helper")
    return lineage(helpers()[0].pid)


def starting(times: int, _folder: Path) -> Outcome:
    """Kill the keeper, guardian or worker as soon as it exists, milliseconds after the start.

    Some die before their child process has begun; the child has to detect that.
    """
    numbers = random.Random(SEED)
    before = Before()
    lost: list[str] = []
    for turn in range(times):
        mark = Mark(numbers)
        with _quietly(), ProcClient(timeout=PATIENCE_SECONDS) as client:
            with contextlib.suppress(OSError):
                client.send("exec", command="sh", args=["-c", mark.tree()])
            killed = _kill_when_it_appears(client.process.pid, numbers.randrange(3))
            try:
                client.receive()
                lost.append(f"start {turn}: an answer, although the {killed} was killed")
            except TimeoutError:
                lost.append(f"start {turn}: the death of the {killed} was not detected")
            except (EOFError, OSError):
                pass
        lost += mark.left()
    return Outcome(tried=times, lost=(*lost, *before.left()))


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Hide stderr: a helper whose guardian dies before it begins reports that there."""
    own = os.dup(2)
    with open(os.devnull, "wb") as nothing:  # noqa: PTH123 - not a Path
        os.dup2(nothing.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(own, 2)
        os.close(own)


def _kill_when_it_appears(keeper: int, which: int) -> str:
    """Look without a pause, so that the process is killed just after its start."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        pids = [keeper, *_line_below(keeper)]
        if len(pids) > which:
            psutil.Process(pids[which]).kill()
            return ("keeper", "guardian", "worker")[which]
    return "missing process"


def _line_below(pid: int) -> list[int]:
    below: list[int] = []
    with contextlib.suppress(OSError, IndexError):
        while len(below) < 2:  # guardian and worker
            pid = int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
            below.append(pid)
    return below
