"""The helper dies by SIGKILL at random moments: in the middle of calls, and while it starts."""

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

from torture.leftovers import Baseline, Mark
from torture.scenario import Outcome

SEED = 20261116
CALLS_IN_FLIGHT = 6
BROKEN_OFF = (
    "lilux-proc ended unexpectedly while a request was in flight; whatever it had started is being "
    "ended, and the next call starts a new helper: try again"
)
# A call that the helper's end never reaches would wait for ever.
PATIENCE_SECONDS = 30


def in_flight(times: int, _folder: Path) -> Outcome:
    """One of keeper, guardian and worker is killed while trees of processes start, run and end."""
    before = Baseline()
    failures, broken_off = asyncio.run(_kill_again_and_again(times, random.Random(SEED)))
    calls = times * CALLS_IN_FLIGHT
    return Outcome(
        tried=times,
        failures=(*failures, *before.leftovers()),
        note=f"{broken_off} of {calls} calls were told of the death, the others had ended",
    )


async def _kill_again_and_again(times: int, numbers: random.Random) -> tuple[list[str], int]:
    primitive = SubprocessPrimitive()
    failures: list[str] = []
    broken_off = 0
    for turn in range(times):
        failures += await _works(primitive, f"after {turn} deaths")
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
            failures.append(f"death {turn}: a call in flight was never told")
        told = [error for call in calls if call not in waiting and (error := call.exception())]
        broken_off += len(told)
        failures += [
            f"death {turn}: a call in flight got {type(error).__name__}: {error}"
            for error in told
            if not (isinstance(error, HelperError) and str(error) == BROKEN_OFF)
        ]
        failures += await asyncio.to_thread(mark.leftovers)
    failures += await _works(primitive, "in the end")
    return failures, broken_off


def _job(mark: Mark, numbers: random.Random) -> dict[str, object]:
    """A tree that sleeps, or one whose own process ends within the time of the kill."""
    then = f"sleep {numbers.uniform(0, 0.03):.4f}" if numbers.random() < 0.5 else None
    return {"command": "sh", "args": ["-c", mark.tree(then)], "render": False}


async def _works(primitive: SubprocessPrimitive, when: str) -> list[str]:
    """The next call works; one that was sent before the end could be seen may be told of it."""
    for _ in range(2):
        with contextlib.suppress(HelperError):
            result = await primitive.execute({"command": "echo", "args": [when]})
            return [] if result.stdout == f"{when}\n" else [f"{when}: no echo"]
    return [f"{when}: the next call does not work"]


def only_helper() -> list[psutil.Process]:
    """Keeper, guardian and worker of this loop, once the last of those before them has gone."""

    def helpers() -> list[psutil.Process]:
        return [p for p in psutil.Process().children() if p.name() == "lilux-proc" and is_alive(p)]

    wait_until(lambda: len(helpers()) == 1, "one helper is there")
    return lineage(helpers()[0].pid)


def starting(times: int, _folder: Path) -> Outcome:
    """One of the three is killed within milliseconds of the helper's start, as soon as it is there.

    Some die before the one below them has begun, which has to notice by itself.
    """
    numbers = random.Random(SEED)
    before = Baseline()
    failures: list[str] = []
    for turn in range(times):
        mark = Mark(numbers)
        with _quietly(), ProcClient(timeout=PATIENCE_SECONDS) as client:
            with contextlib.suppress(OSError):
                client.send("exec", command="sh", args=["-c", mark.tree()])
            killed = _kill_when_it_appears(client.process.pid, numbers.randrange(3))
            try:
                client.receive()
                failures.append(f"start {turn}: an answer, though {killed} was killed")
            except TimeoutError:
                failures.append(f"start {turn}: {killed} was killed, and nobody noticed")
            except (EOFError, OSError):
                pass
        failures += mark.leftovers()
    return Outcome(tried=times, failures=(*failures, *before.leftovers()))


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """A helper whose guardian dies before it begins says so on stderr, as it should."""
    own = os.dup(2)
    with open(os.devnull, "wb") as nothing:  # noqa: PTH123 - there is no Path of it
        os.dup2(nothing.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(own, 2)
        os.close(own)


def _kill_when_it_appears(keeper: int, which: int) -> str:
    """Looks without a pause, so that the process has hardly run when it is killed."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        pids = [keeper, *_line_below(keeper)]
        if len(pids) > which:
            psutil.Process(pids[which]).kill()
            return ("keeper", "guardian", "worker")[which]
    return "nobody"


def _line_below(pid: int) -> list[int]:
    below: list[int] = []
    with contextlib.suppress(OSError, IndexError):
        while len(below) < 2:  # guardian and worker
            pid = int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
            below.append(pid)
    return below
