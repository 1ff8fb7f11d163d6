"""The program that called is killed with SIGKILL: its jobs go, what it detached stays."""

from __future__ import annotations

import asyncio
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

from lilux.primitives.subprocess import SubprocessPrimitive
from processes import wait_until

from torture import children
from torture.leftovers import Mark, end_all
from torture.scenario import Outcome

SEED = 20261116
JOBS = 5
PROMISED_SECONDS = 1.0
MANY = 20


def killed(times: int, _folder: Path) -> Outcome:
    """At random moments, while jobs with daemons start and run."""
    numbers = random.Random(SEED)
    lost: list[str] = []
    took: list[float] = []
    for turn in range(times):
        jobs, detached = Mark(numbers), Mark(numbers)
        with subprocess.Popen(
            children.command("caller_death", jobs.text, detached.text),
            env=children.environment(),
            stdout=subprocess.PIPE,
        ) as caller:
            assert caller.stdout is not None
            caller.stdout.readline()
            if turn % 2:
                # Each job has four processes; else the moment is a random one of their start.
                wait_until(lambda mark=jobs: len(mark.alive()) >= 4 * JOBS, "all jobs run")  # type: ignore[misc] # bound now
            time.sleep(numbers.uniform(0, 0.02))
            caller.kill()
        began = time.monotonic()
        lost += jobs.left()
        took.append(time.monotonic() - began)
        if not detached.alive():
            lost.append("a detached process has ended with its caller")
        end_all(detached)
    # One slow moment of the machine is not ours; half of many would be.
    if times >= MANY and statistics.median(took) > PROMISED_SECONDS:
        lost.append(f"jobs outlived their caller by {statistics.median(took):.2f} s")
    note = f"gone after {statistics.median(took):.2f} s, at most {max(took):.2f} s"
    return Outcome(tried=times, lost=tuple(lost), note=note)


async def _call(jobs: Mark, detached: Mark) -> None:
    primitive = SubprocessPrimitive()
    await primitive.spawn("sleep", ["60", detached.text])
    config = {"command": "sh", "args": ["-c", jobs.tree()], "render": False}
    calls = [asyncio.create_task(primitive.execute(config)) for _ in range(JOBS)]
    await asyncio.sleep(0)
    sys.stdout.write("called\n")
    sys.stdout.flush()
    await asyncio.gather(*calls)


if __name__ == "__main__":
    asyncio.run(_call(*(Mark.named(text) for text in sys.argv[1:])))
