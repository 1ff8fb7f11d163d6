"""The helper dies by SIGKILL at random moments: during calls, and while it starts."""

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
from processes import helper_processes, is_alive, wait_until

from torture.leftovers import Baseline, Mark
from torture.scenario import Outcome

SEED = 20261116
CALLS_IN_FLIGHT = 6
HELPER_ENDED = (
    "lilux-proc ended unexpectedly during a call; its processes are being ended; "
    "try again: the next call starts a new helper"
)
# Without a limit, a call that does not notice the end of the helper would wait forever.
TIMEOUT_SECONDS = 30


def in_flight(times: int, _folder: Path) -> Outcome:
    """Kill keeper, guardian or worker while trees of processes start, run and end."""
    before = Baseline()
    failures, interrupted = asyncio.run(_kill_repeatedly(times, random.Random(SEED)))
    calls = times * CALLS_IN_FLIGHT
    return Outcome(
        tried=times,
        failures=(*failures, *before.leftovers()),
        note=f"{interrupted} of {calls} calls got an error, the others had ended",
    )


async def _kill_repeatedly(times: int, numbers: random.Random) -> tuple[list[str], int]:
    primitive = SubprocessPrimitive()
    failures: list[str] = []
    interrupted = 0
    for turn in range(times):
        failures += await _works(primitive, f"after {turn} deaths")
        parts = await asyncio.to_thread(only_helper)
        mark = Mark(numbers)
        calls = [
            asyncio.create_task(primitive.execute(_job(mark, numbers)))
            for _ in range(CALLS_IN_FLIGHT)
        ]
        await asyncio.sleep(numbers.uniform(0, 0.03))
        numbers.choice(parts).kill()
        _, waiting = await asyncio.wait(calls, timeout=TIMEOUT_SECONDS)
        for call in waiting:
            call.cancel()
            failures.append(f"death {turn}: a call in flight got no answer")
        errors = [error for call in calls if call not in waiting and (error := call.exception())]
        interrupted += len(errors)
        failures += [
            f"death {turn}: a call in flight got {type(error).__name__}: {error}"
            for error in errors
            if not (isinstance(error, HelperError) and str(error) == HELPER_ENDED)
        ]
        failures += await asyncio.to_thread(mark.leftovers)
    failures += await _works(primitive, "at the end")
    return failures, interrupted


def _job(mark: Mark, numbers: random.Random) -> dict[str, object]:
    """Return a tree that sleeps, or one whose first process may end before the kill."""
    then = f"sleep {numbers.uniform(0, 0.03):.4f}" if numbers.random() < 0.5 else None
    return {"command": "sh", "args": ["-c", mark.tree(then)], "render": False}


async def _works(primitive: SubprocessPrimitive, when: str) -> list[str]:
    """The next call works, or the one after it if the end was not noticed yet."""
    for _ in range(2):
        with contextlib.suppress(HelperError):
            result = await primitive.execute({"command": "echo", "args": [when]})
            return [] if result.stdout == f"{when}\n" else [f"{when}: no echo"]
    return [f"{when}: the next call does not work"]


def only_helper() -> list[psutil.Process]:
    """Return keeper, guardian and worker of this loop, after all earlier helpers have ended."""

    def helpers() -> list[psutil.Process]:
        return [p for p in psutil.Process().children() if p.name() == "lilux-proc" and is_alive(p)]

    wait_until(lambda: len(helpers()) == 1, "exactly one helper runs")
    return helper_processes(helpers()[0].pid)


def starting(times: int, _folder: Path) -> Outcome:
    """Kill one of the three processes within milliseconds of its start.

    Some die before their child process runs, which must notice that.
    """
    numbers = random.Random(SEED)
    before = Baseline()
    failures: list[str] = []
    for turn in range(times):
        mark = Mark(numbers)
        with _without_stderr(), ProcClient(timeout=TIMEOUT_SECONDS) as client:
            with contextlib.suppress(OSError):
                client.send("exec", command="sh", args=["-c", mark.tree()])
            killed = _kill_when_it_appears(client.process.pid, numbers.randrange(3))
            try:
                client.receive()
                failures.append(f"start {turn}: an answer, though {killed} was killed")
            except TimeoutError:
                failures.append(f"start {turn}: {killed} was killed, and no process noticed")
            except (EOFError, OSError):
                pass
        failures += mark.leftovers()
    return Outcome(tried=times, failures=(*failures, *before.leftovers()))


@contextlib.contextmanager
def _without_stderr() -> Iterator[None]:
    """Discard stderr, on which a helper reports that its guardian died at the start."""
    stderr = os.dup(2)
    with open(os.devnull, "wb") as nothing:  # noqa: PTH123 - a device, not a Path
        os.dup2(nothing.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


def _kill_when_it_appears(keeper: int, which: int) -> str:
    """Poll without a pause, to kill the process as early as possible."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        pids = [keeper, *_descendants(keeper)]
        if len(pids) > which:
            psutil.Process(pids[which]).kill()
            return ("keeper", "guardian", "worker")[which]
    return "no process"


def _descendants(pid: int) -> list[int]:
    below: list[int] = []
    with contextlib.suppress(OSError, IndexError):
        while len(below) < 2:  # guardian and worker
            pid = int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
            below.append(pid)
    return below
