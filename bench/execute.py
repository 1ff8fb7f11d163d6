"""The overhead of Rye over a bare process, with all checks enabled.

1. A warm ``execute()`` of a tool whose chain of three ends in ``/bin/true``, alternating with
   ``asyncio.create_subprocess_exec("/bin/true")`` and ``communicate``; ratio of the medians.
2. A cold resolve, parse and verify of a chain of three by a new executor, in milliseconds.
3. A warm ``execute()`` of a chain of ten ÷ that of a chain of three, without the process, and a
   cold build of ten ÷ one of three.

Everything is measured in several runs. The median of the runs is compared with the limit, so that a
single noisy run does not matter; the smallest and the largest value are printed as well.
"""

import asyncio
import gc
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from rye.executor.run.execute import PrimitiveExecutor
from rye.executor.run.prepare import CallOptions, Preparation
from rye_project import SUBPROCESS, Project

from bench.programs import TRUE, asyncio_call
from bench.table import Report, Row, alternating_async

WARM_LIMIT = 1.0
COLD_LIMIT_MS = 5.0
GROWTH_LIMIT = 4.0
RUNS = 5
ROUNDS = 150


def make_chain(project: Project, name: str, elements: int) -> str:
    """Create a tool whose chain has that many elements, including the primitive (with a file)."""
    last = elements - 2
    for step in range(last):
        project.yaml(
            f"bench/{name}{step}",
            executor_id=f"bench/{name}{step + 1}",
            config_schema={"type": "object", "properties": {"word": {"type": "string"}}},
        )
    project.yaml(f"bench/{name}{last}", executor_id=SUBPROCESS, config={"command": TRUE})
    return f"bench/{name}0"


async def medians(rounds: int, *calls: Callable[[], Awaitable[object]]) -> list[float]:
    """Return the median of each in ms."""
    gc.collect()
    return [taken / 1000 for taken in await alternating_async(rounds, *calls)]


async def compare(project: Project, rounds: int) -> list[Row]:
    three = make_chain(project, "three", 3)
    ten = make_chain(project, "ten", 10)
    time.sleep(0.1)  # noqa: ASYNC251 - folders that just changed are not cached

    async def cold(item_id: str) -> None:
        PrimitiveExecutor(context=project.context)._build_chain(item_id)

    async with PrimitiveExecutor(context=project.context) as executor:

        async def run(item_id: str) -> None:
            result = await executor.execute(item_id, {"word": "hi"})
            assert result.success, result.error

        async def plan(item_id: str) -> None:
            verified = Preparation(executor._preparer, item_id, CallOptions(frozen=True)).verify()
            assert verified.lock is not None

        await run(three)
        await run(ten)
        few = max(rounds // 5, 20)
        samples: list[list[float]] = [[] for _ in range(5)]
        for _ in range(RUNS):
            ours, theirs = await medians(rounds, lambda: run(three), lambda: asyncio_call(TRUE))
            cold_3, cold_10 = await medians(few, lambda: cold(three), lambda: cold(ten))
            checks_3, checks_10 = await medians(rounds, lambda: plan(three), lambda: plan(ten))
            run_3, run_10 = await medians(rounds // 2, lambda: run(three), lambda: run(ten))
            figures = (
                ours / theirs,
                cold_3,
                cold_10 / cold_3,
                checks_10 / checks_3,
                run_10 / run_3,
            )
            for values, figure in zip(samples, figures, strict=True):
                values.append(figure)
    warm, cold_build, cold_growth, check_growth, run_growth = samples
    return [
        row(
            "warm execute ÷ bare process",
            warm,
            WARM_LIMIT,
            f"last {ours:.3f} / {theirs:.3f} ms",
            aim=0.9,
        ),
        row("cold chain of three", cold_build, COLD_LIMIT_MS, unit=" ms"),
        row("cold chain of 10 ÷ of 3", cold_growth, GROWTH_LIMIT, f"last {cold_10:.2f} ms"),
        row(
            "warm checks of 10 ÷ of 3", check_growth, GROWTH_LIMIT, f"last {checks_3:.3f} ms for 3"
        ),
        row("warm execute of 10 ÷ of 3", run_growth, GROWTH_LIMIT, f"last {run_10:.3f} ms"),
    ]


def row(
    what: str,
    runs: list[float],
    limit: float,
    note: str = "",
    *,
    unit: str = "",
    aim: float | None = None,
) -> Row:
    """Return a row with the median of the runs."""
    spread = f"{min(runs):.2f} to {max(runs):.2f} in {len(runs)} runs"
    detail = f"{spread}; {note}" if note else spread
    return Row(what, statistics.median(runs), limit, unit=unit, detail=detail, aim=aim)


def measure() -> Report:
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder), shipped_system=True)
        return Report(asyncio.run(compare(project, ROUNDS)))
