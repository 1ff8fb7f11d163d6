"""What Rye adds to a process: every check on, side by side with the bare process, in one run.

1. A warm ``execute()`` of a tool whose chain of three ends in ``/bin/true``, alternating with
   ``asyncio.create_subprocess_exec("/bin/true")`` and ``communicate``; ratio of the medians.
2. A cold resolve, parse and verify of a chain of three by a new executor, in milliseconds.
3. A warm ``execute()`` of a chain of ten ÷ that of a chain of three, without the process, and a
   cold build of ten ÷ one of three.

Usage: python bench/rye_execute.py [rounds]
"""

import asyncio
import gc
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "testing"))

from rye.executor.primitive_executor import PrimitiveExecutor
from rye_project import SUBPROCESS, Project

WARM_LIMIT = 1.0
COLD_LIMIT_MS = 5.0
GROWTH_LIMIT = 4.0
WARM_UP = 50


def make_chain(project: Project, name: str, elements: int) -> str:
    """A tool whose chain has that many elements, the primitive (which has a file) included."""
    last = elements - 2
    for step in range(last):
        project.yaml(
            f"bench/{name}{step}",
            executor_id=f"bench/{name}{step + 1}",
            config_schema={"type": "object", "properties": {"word": {"type": "string"}}},
        )
    project.yaml(f"bench/{name}{last}", executor_id=SUBPROCESS, config={"command": "/bin/true"})
    return f"bench/{name}0"


async def seconds(call: Callable[[], Awaitable[object]]) -> float:
    started = time.perf_counter()
    await call()
    return time.perf_counter() - started


async def medians(rounds: int, *calls: Callable[[], Awaitable[object]]) -> list[float]:
    """The median of each in ms, alternating; the early rounds only warm up."""
    samples: list[list[float]] = [[] for _ in calls]
    gc.collect()
    for turn in range(rounds + WARM_UP):
        for call, taken in zip(calls, samples, strict=True):
            duration = await seconds(call)
            if turn >= WARM_UP:
                taken.append(duration * 1000)
    return [statistics.median(taken) for taken in samples]


async def bare() -> None:
    process = await asyncio.create_subprocess_exec(
        "/bin/true", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    await process.communicate()
    assert process.returncode == 0


async def compare(project: Project, rounds: int) -> bool:
    three = make_chain(project, "three", 3)
    ten = make_chain(project, "ten", 10)
    time.sleep(0.1)  # noqa: ASYNC251 - young folders are not remembered, on purpose

    async def cold(item_id: str) -> None:
        PrimitiveExecutor(context=project.context)._build_chain(item_id)

    async with PrimitiveExecutor(context=project.context) as executor:

        async def run(item_id: str) -> None:
            result = await executor.execute(item_id, {"word": "hi"})
            assert result.success, result.error

        async def plan(item_id: str) -> None:
            snapshot = executor._library.snapshot()
            tool = executor._resolve_tool_path(item_id, snapshot)
            lock = executor._locks.verify(tool, snapshot, frozen=True)
            chain = executor._build_chain(item_id, snapshot)
            assert lock is not None
            executor._locks.confirm_chain(lock, chain)

        await run(three)
        await run(ten)
        ours, theirs = await medians(rounds, lambda: run(three), bare)
        checks_3, checks_10 = await medians(rounds, lambda: plan(three), lambda: plan(ten))
        run_3, run_10 = await medians(rounds // 2, lambda: run(three), lambda: run(ten))
    cold_3, cold_10 = await medians(max(rounds // 10, 20), lambda: cold(three), lambda: cold(ten))

    rows = [
        ("warm execute ÷ bare process", ours / theirs, WARM_LIMIT, f"{ours:.3f} / {theirs:.3f} ms"),
        ("cold chain of three, ms", cold_3, COLD_LIMIT_MS, ""),
        ("cold chain of 10 ÷ of 3", cold_10 / cold_3, GROWTH_LIMIT, f"{cold_10:.2f} ms"),
        (
            "warm checks of 10 ÷ of 3",
            checks_10 / checks_3,
            GROWTH_LIMIT,
            f"{checks_3:.3f} ms for 3",
        ),
        ("warm execute of 10 ÷ of 3", run_10 / run_3, GROWTH_LIMIT, f"{run_10:.3f} ms"),
    ]
    for name, value, limit, note in rows:
        print(f"{name:30} {value:6.3f}  (limit {limit})  {note}")
    return all(value <= limit for _, value, limit, _ in rows)


def main() -> int:
    """Run all; the exit code says whether the limits were kept."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder), shipped_system=True)
        return 0 if asyncio.run(compare(project, rounds)) else 1


if __name__ == "__main__":
    sys.exit(main())
