"""Prepared processes die by SIGKILL at random moments while many calls use them."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path

import psutil
from processes import is_alive, wait_until
from rye.executor.run.execute import PrimitiveExecutor
from rye_project import Project

from torture.leftovers import Baseline
from torture.scenario import Outcome

SEED = 20261118
CALLS_IN_FLIGHT = 12
TIMEOUT_SECONDS = 60

# Each call leaves one line, so that a call that runs twice is seen.
TOOL = """
__version__ = "1.0.0"
__executor_id__ = "python_runtime"
import os, time

def main(number=0, path="", seconds=0.0):
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, f"{number}\\n".encode())
    os.close(fd)
    time.sleep(seconds)
    return {"number": number}
"""


def killed(times: int, folder: Path) -> Outcome:
    """Kill the prepared process while calls start, run and end."""
    before = Baseline()
    failures, warm, calls = asyncio.run(_kill_repeatedly(times, folder, random.Random(SEED)))
    note = f"{warm} of {calls} calls were copies, the others ran cold"
    return Outcome(tried=times, failures=(*failures, *before.leftovers()), note=note)


async def _kill_repeatedly(
    times: int, folder: Path, numbers: random.Random
) -> tuple[list[str], int, int]:
    project = Project(folder, shipped_system=True)
    project.tool("count.py", TOOL)
    lines = folder / "lines"
    failures: list[str] = []
    warm = calls = 0
    async with PrimitiveExecutor(context=project.context, warm=lambda _: True) as executor:
        pool = executor._warmth.pool
        for turn in range(times):
            lines.write_text("")
            await _prepared(executor, str(folder / "ignored"))
            processes = [
                psutil.Process(json.loads(entry.process.report)["pid"])
                for entry in pool._entries.values()
                if entry.process is not None
            ]
            if not processes:
                failures.append(f"death {turn}: no process was prepared")
                break
            tasks = [
                asyncio.create_task(
                    executor.execute(
                        "count",
                        {
                            "number": number,
                            "path": str(lines),
                            "seconds": numbers.choice((0.0, 0.0, 0.02)),
                        },
                    )
                )
                for number in range(CALLS_IN_FLIGHT)
            ]
            await asyncio.sleep(numbers.uniform(0, 0.03))
            processes[0].kill()
            _, waiting = await asyncio.wait(tasks, timeout=TIMEOUT_SECONDS)
            for task in waiting:
                task.cancel()
                failures.append(f"death {turn}: a call got no answer")
            results = [task.result() for task in tasks if task not in waiting]
            calls += len(results)
            warm += sum(bool(one.metadata.get("warm")) for one in results)
            failures += [
                f"death {turn}: call {number} got {one.data!r}, {one.error}"
                for number, one in enumerate(results)
                if one.data != {"number": number}
            ]
            ran = sorted(map(int, lines.read_text().split()))
            if ran != list(range(CALLS_IN_FLIGHT)):
                failures.append(f"death {turn}: the calls that ran are {ran}")
            if not await asyncio.to_thread(_ends, processes[0]):
                failures.append(f"death {turn}: the prepared process survived")
    return failures, warm, calls


def _ends(process: psutil.Process) -> bool:
    try:
        wait_until(lambda: not is_alive(process), "the process ended")
    except AssertionError:
        return False
    return True


async def _prepared(executor: PrimitiveExecutor, path: str) -> None:
    """Call the tool until a process is prepared, which may take some calls."""
    for _ in range(8):
        result = await executor.execute("count", {"path": path})
        await executor._warmth.pool.settled()
        if result.metadata.get("warm"):
            return
