"""SubprocessPrimitive against the subprocesses of asyncio, and the cost of `import lilux`."""

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable

from lilux.primitives.subprocess import SubprocessPrimitive

from bench.programs import TRUE, asyncio_call
from bench.table import Report, Row, alternating_async, alternating_medians

ROUNDS = 400
IN_FLIGHT = 64


async def one_at_a_time(primitive: SubprocessPrimitive) -> Row:
    async def ours() -> None:
        assert (await primitive.execute({"command": TRUE}, {})).success

    taken, theirs = await alternating_async(ROUNDS, ours, lambda: asyncio_call(TRUE))
    detail = f"{taken:.0f} / {theirs:.0f} µs"
    what = "execute ÷ asyncio.create_subprocess_exec"
    return Row(what, taken / theirs, 0.85, aim=0.75, detail=detail)


async def rate_and_lag(call: Callable[[], Awaitable[object]], total: int) -> tuple[float, float]:
    """Return calls per second with 64 in flight, and the 99th percentile of the loop lag in ms."""
    lags: list[float] = []

    async def watch() -> None:
        while True:
            started = time.perf_counter()
            await asyncio.sleep(0.001)
            lags.append((time.perf_counter() - started - 0.001) * 1000)

    async def lane() -> None:
        for _ in range(total // IN_FLIGHT):
            await call()

    watcher = asyncio.create_task(watch())
    started = time.perf_counter()
    await asyncio.gather(*(lane() for _ in range(IN_FLIGHT)))
    seconds = time.perf_counter() - started
    watcher.cancel()
    return total // IN_FLIGHT * IN_FLIGHT / seconds, statistics.quantiles(lags, n=100)[98]


async def many_at_once(primitive: SubprocessPrimitive) -> list[Row]:
    ours = [(0.0, 0.0)]
    theirs = [(0.0, 0.0)]
    for _ in range(3):
        ours.append(await rate_and_lag(lambda: primitive.execute({"command": TRUE}, {}), 1920))
        theirs.append(await rate_and_lag(lambda: asyncio_call(TRUE), 640))
    rates = [max(rate for rate, _ in side) for side in (ours, theirs)]
    lags = [statistics.median(lag for _, lag in side[1:]) for side in (ours, theirs)]
    return [
        Row(
            "throughput, 64 in flight ÷ asyncio",
            rates[0] / rates[1],
            1.7,
            at_least=True,
            detail=f"{rates[0]:.0f} / {rates[1]:.0f} per second",
        ),
        Row(
            "loop lag p99, 64 in flight ÷ asyncio",
            lags[0] / lags[1],
            0.1,
            detail=f"{lags[0]:.2f} / {lags[1]:.1f} ms",
        ),
    ]


def import_cost() -> Row:
    def python(code: str) -> Callable[[], object]:
        return lambda: subprocess.run([sys.executable, "-c", code], check=True)

    ours, nothing = alternating_medians(40, python("import lilux"), python("pass"))
    return Row("import lilux, over `python -c pass`", (ours - nothing) / 1000, 10, unit=" ms")


async def compare() -> list[Row]:
    primitive = SubprocessPrimitive()
    return [await one_at_a_time(primitive), *await many_at_once(primitive)]


def measure() -> Report:
    return Report([*asyncio.run(compare()), import_cost()])
