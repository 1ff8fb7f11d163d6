"""The cost of the history: of recording a call, and of reading a million of them.

1. A warm call of ``/bin/true`` with history on ÷ off, in one executor each.
2. ``rye run`` of a tool on the bash runtime, with ÷ without.
3. With 1,000,000 runs: the first page of ``rye history`` beyond ``rye --version``, and
   ``rye history stats``, in milliseconds.
4. Signing and verifying a receipt, for information.

Calls alternate, and medians are compared.
"""

import asyncio
import json
import statistics
import tempfile
import time
from contextlib import closing
from pathlib import Path

from rye.executor.run.execute import PrimitiveExecutor
from rye.history.envelope import opened, sealed
from rye.history.statement import statement_of
from rye.recording.database import open_database
from rye.recording.rows import insert
from rye.recording.run_ids import new_run_id
from rye.trust.signer import Signer
from rye_project import SUBPROCESS, Project

from bench.programs import HELLO, RYE, caller
from bench.table import Report, Row, alternating_medians

ROUNDS = 40
RUNS = 1_000_000
WARM_LIMIT = 1.05
RUN_LIMIT = 1.03
PAGE_LIMIT_MS = 100.0
STATS_LIMIT_MS = 1000.0
TOOLS = 40


def project_with(folder: Path, *, history: bool) -> Project:
    project = Project(folder, shipped_system=True)
    project.settings(history={"enabled": history}, permissions={"unenforced": "allow"})
    project.tool("bench/hello.sh", HELLO)
    project.yaml("bench/true", executor_id=SUBPROCESS, config={"command": "/bin/true"})
    return project


async def warm(on: Project, off: Project, rounds: int) -> tuple[float, float]:
    """Return the median duration of a warm call without history, and what history adds, in µs.

    What it adds is the median of the differences of neighbouring calls, whose order alternates: the
    load of the machine is the same for both.
    """
    executors = [PrimitiveExecutor(context=project.context) for project in (on, off)]
    taken: list[tuple[float, float]] = []
    for turn in range(rounds + 50):
        durations = [0.0, 0.0]
        for which in (0, 1) if turn % 2 else (1, 0):
            started = time.perf_counter_ns()
            result = await executors[which].execute("bench/true")
            durations[which] = (time.perf_counter_ns() - started) / 1000
            assert result.success, result.error
        taken.append((durations[0], durations[1]))
    for executor in executors:
        await executor.aclose()
    measured = taken[50:]
    without = statistics.median([off for _, off in measured])
    return without, statistics.median([on - off for on, off in measured])


def fill(project: Project, runs: int) -> int:
    """Put that many runs of the last weeks into the history; return the bytes of the database."""
    folder = project.user / ".ai" / "history"
    folder.mkdir(mode=0o700, exist_ok=True)
    now = time.time_ns() // 1_000_000
    example = {
        "by": "mcp",
        "client": "agent 1.0",
        "project": "/srv/notes",
        "version": "1.0.0",
        "space": "project",
        "signers": ["397d23cf17675624"],
        "closure": "ab" * 32,
        "chain": {"bench/tool": "cd" * 32, "rye/core/runtimes/bash_runtime": "ef" * 32},
        "environment": ["HOME", "LANG", "PATH"],
        "interpreter": {"path": "/usr/bin/bash", "sha256": "12" * 32, "version": "5.2.15"},
        "parameters": {"sha256": "34" * 32},
        "output": {
            "stdout": {"bytes": 120, "sha256": "56" * 32},
            "stderr": {"bytes": 0, "sha256": "78" * 32},
        },
    }
    with closing(open_database(str(folder))) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        for start in range(0, runs, 10_000):
            connection.execute("BEGIN")
            insert(
                connection,
                [
                    {
                        **example,
                        "id": new_run_id(now - (runs - number) * 1000),
                        "time": "2026-01-01T00:00:00.000Z",
                        "item": f"bench/tool{number * 7919 % TOOLS}",
                        "outcome": "failed" if number % 20 == 0 else "ok",
                        "exit": 0,
                        "ms": {"prepare": 1, "run": 5, "total": 5 + number * 37 % 1000},
                    }
                    for number in range(start, min(start + 10_000, runs))
                ],
            )
            connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return (folder / "history.db").stat().st_size


def receipts(rounds: int) -> str:
    record = json.loads(
        '{"id": "01m7p5egdt4qtekj5pmt", "time": "", "item": "x", "by": "cli", "outcome": "ok", '
        '"ms": {}, "parameters": {}}'
    )
    signer = Signer.fresh()
    line = sealed(statement_of(record, 1, None), signer)
    sign, verify = alternating_medians(
        rounds,
        lambda: sealed(statement_of(record, 1, None), signer),
        lambda: opened(line).is_signed_by(signer.public_key),
    )
    return f"sign a receipt {sign:.0f} µs, verify {verify:.0f} µs"


def compare(folder: Path, rounds: int, runs: int) -> list[Row]:
    on, off = project_with(folder / "on", history=True), project_with(folder / "off", history=False)
    without, added = asyncio.run(warm(on, off, rounds * 50))
    run_on, run_off = alternating_medians(
        rounds,
        caller(on, RYE, "run", "bench/hello"),
        caller(off, RYE, "run", "bench/hello"),
    )
    many = project_with(folder / "many", history=True)
    size = fill(many, runs)
    version, page, stats = alternating_medians(
        max(10, rounds // 3),
        caller(many, RYE, "--version"),
        caller(many, RYE, "history"),
        caller(many, RYE, "history", "stats"),
    )
    ms = 1000
    about = f"{runs:,} runs, {size / 1e6:.0f} MB"
    return [
        Row(
            "warm call, history on ÷ off",
            1 + added / without,
            WARM_LIMIT,
            detail=f"{added:.0f} µs more than {without:.0f} µs; {receipts(200)}",
        ),
        Row(
            "rye run, history on ÷ off",
            run_on / run_off,
            RUN_LIMIT,
            detail=f"{run_on / ms:.1f} / {run_off / ms:.1f} ms",
        ),
        Row(
            "rye history beyond rye --version",
            (page - version) / ms,
            PAGE_LIMIT_MS,
            unit=" ms",
            detail=about,
        ),
        Row("rye history stats", stats / ms, STATS_LIMIT_MS, unit=" ms", detail=about),
    ]


def measure() -> Report:
    with tempfile.TemporaryDirectory() as folder:
        return Report(compare(Path(folder), ROUNDS, RUNS))
