"""The calling program dies by SIGKILL: its jobs end, detached processes survive."""

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
from torture.leftovers import Mark, kill_all
from torture.scenario import Outcome

SEED = 20261116
JOBS = 5
LIMIT_SECONDS = 1.0
MIN_SAMPLES = 20


def killed(times: int, _folder: Path) -> Outcome:
    """Kill the caller at random moments, while jobs with daemons start and run."""
    numbers = random.Random(SEED)
    failures: list[str] = []
    took: list[float] = []
    for turn in range(times):
        jobs, detached = Mark(), Mark()
        with subprocess.Popen(
            children.command("caller_death", jobs.text, detached.text),
            env=children.environment(),
            stdout=subprocess.PIPE,
        ) as caller:
            assert caller.stdout is not None
            caller.stdout.readline()
            if turn % 2:
                # Each job has four processes. In the other rounds, the jobs are still starting.
                wait_until(lambda mark=jobs: len(mark.alive()) >= 4 * JOBS, "all jobs run")  # type: ignore[misc] # a default binds it now
            time.sleep(numbers.uniform(0, 0.02))
            caller.kill()
        started = time.monotonic()
        failures += jobs.leftovers()
        took.append(time.monotonic() - started)
        if not detached.alive():
            failures.append("a detached process ended with its caller")
        kill_all(detached)
    # The median: a single slow moment may be caused by the machine.
    if times >= MIN_SAMPLES and statistics.median(took) > LIMIT_SECONDS:
        failures.append(f"jobs outlived their caller by {statistics.median(took):.2f} s")
    note = f"ended after {statistics.median(took):.2f} s, at most {max(took):.2f} s"
    return Outcome(tried=times, failures=tuple(failures), note=note)


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
