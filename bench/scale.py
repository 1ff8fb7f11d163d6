"""A batch beyond this machine: the driver on a simulated cluster, and the parts of a forecast.

1. The real driver with 1,000 simulated workers and half a million calls: nothing goes wrong; with
   failures, stragglers and dying workers; and with a driver that is killed. Every rule is checked.
2. What one call costs the driver, on disk and in memory, with the real folder of a batch and a
   backend that answers at once; what Ray adds, if it is installed. docs/scale.md is made of these.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import tempfile
import time
import tracemalloc
from pathlib import Path
from typing import Any

from lilux.schemas.schema_validator import compile_once
from rye.batches.api import batch
from rye.batches.backends.slots import Slots
from rye.batches.calls import survey
from rye.batches.driver import Driver, Options, Summary
from rye.batches.folder import BatchFolder
from rye.batches.plan import remaining
from rye.batches.records import OK, BatchResult, Call
from rye.executor.run.prepare import VerifiedChain
from rye.recording.mover import move_spool
from rye.recording.run_ids import new_run_id
from rye.recording.settings import Retention
from rye.recording.spool import Spool
from rye_project import SUBPROCESS, Project

from bench.scale_model import SLOTS, driver_rate, parts_of
from bench.simulation import Scenario, simulate
from bench.table import Report, Row, Samples

CALLS = 100_000
LANES = 1_000 * SLOTS
LOCAL_CALLS = 400
ROUNDS = 10
MESSAGES = 300
CARRIED = 500
SIMULATED = 500_000
BUSY_LIMIT = 97.0
SCHEMA = {"type": "object", "properties": {"file": {"type": "string"}}, "required": ["file"]}
SCENARIOS = {
    "plain": Scenario(calls=SIMULATED),
    "failures, stragglers, deaths": Scenario(
        calls=SIMULATED, failing=0.05, retries=2, repeats=True, long_calls=0.01,
        slow_workers=0.02, dying_workers=0.3, journal_seconds=0.005,
    ),
    "the driver is killed": Scenario(calls=SIMULATED, killed_at=250, dying_workers=0.1),
}  # fmt: skip


class Instant:
    """A backend whose calls take no time, on many nodes."""

    def __init__(self, lanes: int) -> None:
        self._slots = Slots(dict.fromkeys(range(lanes // SLOTS), SLOTS))
        self.verified: VerifiedChain | None = None

    @property
    def lanes(self) -> int:
        """All slots."""
        return self._slots.living

    async def open(self) -> None:
        """Nothing to do."""

    async def run(self, call: Call) -> BatchResult:
        """Answer in the next round of the loop."""
        node = await self._slots.take()
        await asyncio.sleep(0)
        self._slots.give_back(node)
        return BatchResult(call.line, call.id, OK, None, None, 1, 1.234, "01m7p5egdt4qtekj5pmt")

    async def close(self) -> None:
        """Nothing to do."""


def driver_parts(root: Path, calls: int) -> dict[str, float]:
    """The driver's cost of a call, with the real files."""
    folder = BatchFolder(root / "batch")
    folder.create()
    validate = compile_once(SCHEMA).validate
    lines = [json.dumps({"file": f"src/some/folder/{n}.py"}).encode() for n in range(calls)]
    with folder.calls.open("wb") as target:
        started = time.process_time()
        survey(lines, target, lambda one: list(validate(dict(one)).errors), skip_bad=False)
        checked = time.process_time() - started
    folder.open()

    async def drive() -> None:
        before = folder.progress(calls)
        calls_left = remaining(folder, before, rerun_unknown=False)
        await Driver(Instant(LANES), calls_left, folder, Summary(calls), Options()).run()

    started = time.process_time()
    asyncio.run(drive())
    driven = time.process_time() - started
    folder.close()
    started = time.process_time()
    progress = folder.progress(calls)
    assert next(remaining(folder, progress, rerun_unknown=False), None) is None
    read = time.process_time() - started
    each = 1e6 / calls
    return {
        "check_us": checked * each,
        "driver_us": driven * each,
        "read_us": read * each,
        "result_bytes": (folder.path / "results.jsonl").stat().st_size / calls,
    }


def lane_bytes() -> float:
    """The driver's memory for one more call at once."""

    class Held(Instant):
        async def run(self, call: Call) -> BatchResult:
            await asyncio.Event().wait()
            return await super().run(call)

    class Forgetful:
        async def starting(self, line: int) -> None:
            """Nothing to do."""

        def ended(self, result: BatchResult) -> None:
            """Nothing to do."""

    async def held(lanes: int) -> int:
        calls = iter([Call(n, str(n), {"file": f"{n}.py"}) for n in range(1, lanes + 1)])
        driver = Driver(Held(lanes), calls, Forgetful(), Summary(lanes), Options())
        tracemalloc.start()
        running = asyncio.create_task(driver.run())
        for _ in range(10):
            await asyncio.sleep(0)
        used = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return used

    return (asyncio.run(held(2_000)) - asyncio.run(held(1_000))) / 1_000


def record_us(root: Path, calls: int) -> float:
    """The history of a call from another machine: change it, append it, move it to the database."""
    record = {
        "time": "2026-01-01T00:00:00.000Z", "item": "bench/true", "by": "batch", "outcome": "ok",
        "version": "1.0.0", "space": "project", "signers": ["397d23cf17675624"], "exit": 0,
        "closure": "ab" * 32, "chain": {"bench/true": "cd" * 32}, "environment": ["PATH"],
        "ms": {"prepare": 1, "run": 5, "total": 6}, "parameters": {"sha256": "34" * 32},
    }  # fmt: skip
    folder = str(root / "history")
    Path(folder).mkdir(mode=0o700)
    spool, retention = Spool(folder), Retention()
    started = time.process_time()
    for _ in range(calls):
        line = json.dumps({**record, "id": new_run_id(time.time_ns() // 1_000_000)})
        changed = json.dumps({**json.loads(line), "worker": "node"}).encode()
        spool.append(str(json.loads(line)["id"]), changed, max_bytes=retention.size)
    move_spool(folder, retention)
    spool.close()
    return (time.process_time() - started) * 1e6 / calls


async def node_us(project: Project, calls: int) -> float:
    """One call of a trivial tool, in microseconds of one core: the fastest of some rounds."""
    given: list[dict[str, Any]] = [{} for _ in range(calls)]
    taken = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        async for result in batch("bench/true", given, project_path=project.path):
            assert result.outcome == OK, result.error
        taken.append(time.perf_counter() - started)
    return min(taken) * 1e6 / calls * (os.cpu_count() or 1)


def ray_parts(messages: int) -> tuple[dict[str, float], str]:
    """What a message of Ray costs the driver, and what each call in it adds."""
    # Workers use this interpreter, and not a new environment of `uv run`.
    os.environ |= {"RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    ray: Any = importlib.import_module("ray")
    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
    ray.init("local", num_cpus=2, **quiet)
    try:

        class Echo:
            async def exchange(self, calls: list[Any]) -> list[Any]:
                return calls

        actor: Any = ray.remote(Echo).remote()

        async def costs(*kinds: list[Any]) -> list[float]:
            spent = [0.0] * len(kinds)
            for turn in range(messages + 50):
                for which, calls in enumerate(kinds):
                    started = time.process_time()
                    await actor.exchange.remote(calls)
                    if turn >= 50:
                        spent[which] += time.process_time() - started
            return [each * 1e6 / messages for each in spent]

        call = (1, "1", {"file": "src/some/folder/1.py"}, 1)
        one, many = asyncio.run(costs([call], [call] * CARRIED))
        each = (many - one) / (CARRIED - 1)
        return {"message_us": one - each, "carried_us": each}, str(ray.__version__)
    finally:
        ray.shutdown()


def simulated() -> list[Row]:
    rows = []
    for name, scenario in SCENARIOS.items():
        found = simulate(scenario)
        rows.append(
            Row(
                f"1,000 workers, {name}: busy",
                found.busy * 100,
                BUSY_LIMIT,
                at_least=True,
                unit="%",
                detail=f"{found.makespan:.0f} s, of which the last {found.tail:.0f} s had no call "
                f"left to start; at best {found.ideal:.0f} s; unknown {found.outcomes['unknown']}; "
                f"{found.cpu_us:.0f} µs of CPU for each call",
            )
        )
    return rows


def measure() -> Report:
    """Run the simulations, and measure the parts."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve()
        parts = driver_parts(root, CALLS)
        parts["lane_bytes"] = lane_bytes()
        parts["record_us"] = record_us(root, CALLS // 5)
        project = Project(root / "project", shipped_system=True)
        project.yaml("bench/true", executor_id=SUBPROCESS, config={"command": "/bin/true"})
        os.environ["USER_SPACE"] = str(project.user)
        parts["node_us"] = asyncio.run(node_us(project, LOCAL_CALLS))
    missing, peers = {}, {}
    try:
        added, peers["Ray"] = ray_parts(MESSAGES)
        parts |= added
    except ImportError:
        missing["Ray"] = "not installed"
    rows = simulated()
    if not missing:
        rate = driver_rate(parts_of(parts))
        rows.append(Row("calls a second that one driver can handle", rate, unit="/s"))
    return Report(rows, {"parts": Samples("", parts)}, missing, peers=peers)
