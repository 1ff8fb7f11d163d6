"""The driver of batches on simulated clusters: one result for each call, and nobody waits."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from rye.batches.backends import WorkerLost
from rye.batches.backends.slots import Slots

from bench.report import drawing, results
from bench.scale_model import Parts, forecast, parts_of, tables
from bench.simulation import NEVER, Scenario, simulate

ROOT = Path(__file__).parents[1]
SMALL = Scenario(workers=100, calls=4_000)
TROUBLE = replace(SMALL, long_calls=0.01, slow_workers=0.05, failing=0.1, dying_workers=0.4)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(
    "scenario",
    [
        SMALL,
        replace(SMALL, calls=150),
        replace(SMALL, journal_seconds=0.05),
        TROUBLE,
        replace(TROUBLE, retries=2, repeats=True),
        replace(TROUBLE, killed_at=20),
        replace(TROUBLE, killed_at=20, retries=2, repeats=True, journal_seconds=0.05),
    ],
    ids=["plain", "few", "slow-disk", "trouble", "repeats", "killed", "killed-repeats"],
)
def test_every_call_gets_one_result_and_no_worker_waits(scenario: Scenario, seed: int) -> None:
    found = simulate(replace(scenario, seed=seed))
    in_doubt = scenario.workers * scenario.dying_workers * 2
    if scenario.killed_at < NEVER:
        in_doubt += scenario.workers
    assert found.outcomes["unknown"] <= in_doubt
    assert found.makespan <= found.ideal * 1.05 + found.longest + 1


def test_one_wait_for_the_disk_serves_all_calls_that_wait() -> None:
    waits = simulate(replace(SMALL, journal_seconds=0.05, call_seconds=0.1))
    # One after the other, the waits alone would take 200 s.
    assert waits.makespan < 10


def test_a_batch_ends_when_every_worker_is_lost() -> None:
    found = simulate(replace(SMALL, dying_workers=1.0, call_seconds=5))
    assert found.stopped == "every worker was lost"
    assert found.outcomes["unknown"] == SMALL.workers
    assert found.outcomes.total() < SMALL.calls


def test_the_first_calls_go_to_different_nodes_and_a_lost_one_gets_none() -> None:
    async def body() -> None:
        slots = Slots({"a": 2, "b": 1, "c": 2})
        assert [await slots.take() for _ in range(4)] == ["a", "b", "c", "a"]
        slots.lose("c")
        slots.lose("c")
        assert slots.living == 3
        slots.give_back("c")
        slots.give_back("b")
        assert await slots.take() == "b"
        slots.lose("a")
        waiting = asyncio.create_task(slots.take())
        await asyncio.sleep(0)
        slots.lose("b")
        with pytest.raises(WorkerLost):
            await waiting

    asyncio.run(body())


def test_a_slot_is_not_lost_with_a_call_that_was_cancelled_while_it_waited() -> None:
    async def body() -> None:
        slots = Slots({"a": 1})
        await slots.take()
        first, second = (asyncio.create_task(slots.take()) for _ in range(2))
        await asyncio.sleep(0)
        slots.give_back("a")
        first.cancel()
        assert await asyncio.wait_for(second, 5) == "a"

    asyncio.run(body())


PARTS = Parts(
    check_us=5, driver_us=20, record_us=40, message_us=640, carried_us=20, node_us=2_000,
    read_us=1, result_bytes=132, lane_bytes=3_000,
)  # fmt: skip


@pytest.mark.parametrize(
    ("nodes", "seconds", "rate", "limit"),
    [
        (1, 1.0, 64, "the calls themselves"),
        (1, 0.001, 4_000, "the nodes' processors"),
        (1_000, 1.0, 11_111, "the driver"),
    ],
)
def test_the_slowest_part_limits_a_forecast(
    nodes: int, seconds: float, rate: float, limit: str
) -> None:
    found = forecast(PARTS, nodes, seconds)
    assert (round(found.rate), found.limit) == (rate, limit)


def test_the_page_has_the_tables_that_the_measured_parts_give() -> None:
    values = results.read(ROOT / drawing.RESULTS)["scale"]["samples"]["parts"]["values"]
    parts = parts_of(values)
    assert all(value > 0 for value in values.values())
    assert tables(parts) in (ROOT / drawing.SCALE).read_text()
    assert tables(replace(parts, driver_us=parts.driver_us * 2)) != tables(parts)
