"""Growth with the number of tools, the length of the chain and the size of the output.

1. With 10 to 10,000 tools in a project: `rye list` as a whole process, a search, and the
   resolution of an id, each with an index on disk or in memory, as in daily use.
2. With 3 to 10 files in the chain of a tool: a warm call of `/bin/true`, and the checks alone.
3. With 1 kB to 100 MB of output: Lilux, which keeps all of it or, by default, the first and last
   5 MiB, against asyncio.

The sizes alternate, and the figures are medians.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path

from lilux.primitives.subprocess import SubprocessPrimitive
from rye.catalogue.catalogue import Catalogue
from rye.catalogue.search import search
from rye.executor.run.execute import PrimitiveExecutor
from rye.executor.run.prepare import CallOptions, Preparation
from rye.spaces.resolver import Resolver
from rye_project import Project

from bench import catalogue
from bench.execute import make_chain
from bench.programs import asyncio_call
from bench.table import Report, Row, Samples, alternating_async, alternating_medians

TOOLS = (10, 100, 1_000, 10_000)
CHAINS = (3, 5, 7, 10)
OUTPUTS = (1_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
LIST_LIMIT, RESOLVE_LIMIT, CHAIN_LIMIT = 6.0, 1.5, 2.0
WHOLE_LIMIT, BOUNDED_LIMIT = 2.0, 1.0
ROUNDS = 100
SLOW_ROUNDS = 10

Series = dict[str, dict[int, float]]


def by_tools(root: Path) -> Series:
    contexts = {count: catalogue.project(root / str(count), count) for count in TOOLS}
    for context in contexts.values():
        catalogue.listed(context)
    time.sleep(0.5)  # what depends on a file that was just written is not cached
    lists: dict[int, list[float]] = {count: [] for count in TOOLS}
    for turn in range(SLOW_ROUNDS + 1):
        for count, context in contexts.items():
            taken = catalogue.listed(context)
            if turn:
                lists[count].append(taken)
    searches, resolutions = [], []
    for context in contexts.values():
        listing = Catalogue(context)
        listing.summaries()
        searches.append(partial(search, listing._fresh(), "read invoice", 10))
        resolutions.append(partial(Resolver(context).resolve, "shop_0/write_file_1"))
    return {
        "rye list": {count: statistics.median(taken) for count, taken in lists.items()},
        "search": in_ms(TOOLS, alternating_medians(SLOW_ROUNDS, *searches)),
        "resolve an id": in_ms(TOOLS, alternating_medians(ROUNDS, *resolutions)),
    }


async def by_chain(project: Project) -> Series:
    tools = [make_chain(project, f"of{length}x", length) for length in CHAINS]
    time.sleep(0.1)  # noqa: ASYNC251 - folders that just changed are not cached
    async with PrimitiveExecutor(context=project.context) as executor:

        async def run(tool: str) -> None:
            result = await executor.execute(tool, {"word": "hi"})
            assert result.success, result.error

        async def check(tool: str) -> None:
            verified = Preparation(executor._preparer, tool, CallOptions(frozen=True)).verify()
            assert verified.lock is not None

        calls = await alternating_async(ROUNDS, *(partial(run, tool) for tool in tools))
        checks = await alternating_async(ROUNDS, *(partial(check, tool) for tool in tools))
    return {"warm call": in_ms(CHAINS, calls), "its checks": in_ms(CHAINS, checks)}


async def by_output() -> Series:
    primitive = SubprocessPrimitive()

    async def with_lilux(size: int, **limit: int) -> None:
        config = {"command": "head", "args": ["-c", str(size), "/dev/zero"], **limit}
        result = await primitive.execute(config, {})
        assert len(result.stdout) == size or not limit

    async def with_asyncio(size: int) -> None:
        output = await asyncio_call("head", "-c", str(size), "/dev/zero")
        assert len(output.decode()) == size

    found: Series = {"Lilux, kept whole": {}, "Lilux, as by default": {}, "asyncio": {}}
    for size in OUTPUTS:
        taken = await alternating_async(
            SLOW_ROUNDS if size >= OUTPUTS[-2] else ROUNDS,
            partial(with_lilux, size, output_limit=size),
            partial(with_lilux, size),
            partial(with_asyncio, size),
        )
        for series, each in zip(found.values(), taken, strict=True):
            series[size] = each / 1000
    return found


def in_ms(sizes: tuple[int, ...], taken: list[float]) -> dict[int, float]:
    return {size: each / 1000 for size, each in zip(sizes, taken, strict=True)}


def measure() -> Report:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve()
        tools = by_tools(root / "tools")
        chain = asyncio.run(by_chain(Project(root / "chain", shipped_system=True)))
    output = asyncio.run(by_output())
    whole, bounded, peer = (series[OUTPUTS[-1]] for series in output.values())
    rows = [
        growth("rye list, 10,000 tools ÷ 10", tools["rye list"], LIST_LIMIT),
        growth("resolve an id, 10,000 tools ÷ 10", tools["resolve an id"], RESOLVE_LIMIT),
        growth("warm call, chain of 10 ÷ of 3", chain["warm call"], CHAIN_LIMIT),
        Row(
            "100 MB of output, kept whole ÷ asyncio",
            whole / peer,
            WHOLE_LIMIT,
            detail=f"{whole:.0f} / {peer:.0f} ms",
        ),
        Row(
            "100 MB of output, as by default ÷ asyncio",
            bounded / peer,
            BOUNDED_LIMIT,
            detail=f"{bounded:.0f} / {peer:.0f} ms",
        ),
    ]
    samples = {"tools": tools, "chain": chain, "output": output}
    return Report(rows, {name: Samples("ms", series) for name, series in samples.items()})


def growth(what: str, series: dict[int, float], limit: float) -> Row:
    few, *_, many = series.values()
    return Row(what, many / few, limit, detail=f"{many:.3g} / {few:.3g} ms")
