"""Faults while calls are recorded: killed writers and movers, a full disk, a clock that goes back.

An acknowledged run is one whose line was appended before the call returned. None may be lost.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

from rye.executor.run.blocking import BlockingExecutor
from rye.recording.mover import move_spool
from rye.recording.record import fragment_of, line_of
from rye.recording.run_ids import LENGTH, new_run_id
from rye.recording.settings import Retention
from rye.recording.spool import Spool
from rye_project import Project

from torture import children
from torture.full_disk import filled
from torture.scenario import Outcome, ScenarioSkippedError

SEED = 20261118
WRITERS = 50
MOVERS = 2
LINES = 10
ROUNDS = 20
CALLS = 8
"""Several records fit on one page of a disk."""
YEAR = 365 * 24 * 3600


def killed(times: int, folder: Path) -> Outcome:
    """Fifty processes append and two move; some of each are killed at a random moment."""
    outcomes = []
    for start in range(0, times, ROUNDS):
        part = folder / str(start)
        part.mkdir()
        rounds = min(ROUNDS, times - start)
        outcomes.append(children.run("history_faults", "killed", part, rounds))
    return Outcome(
        tried=sum(one.tried for one in outcomes),
        failures=tuple(fault for one in outcomes for fault in one.failures),
        note=f"{times * 6} processes killed",
    )


def full_disk(times: int, folder: Path) -> Outcome:
    """Calls on a disk that is full, or has some pages left."""
    unshare, mount = shutil.which("unshare"), shutil.which("mount")
    if not (unshare and mount):
        raise ScenarioSkippedError("unshare and mount are not installed")
    in_namespace = [unshare, "--user", "--map-root-user", "--mount"]
    if subprocess.run([*in_namespace, "true"], capture_output=True, check=False).returncode:
        raise ScenarioSkippedError("this user may not create a mount namespace")
    return children.run("history_faults", "full_disk", folder, times, through=in_namespace)


def clock(times: int, folder: Path) -> Outcome:
    """The wall clock jumps back by years between calls."""
    return children.run("history_faults", "clock", folder, times)


def _killed(folder: Path, times: int) -> Outcome:
    chance = random.Random(SEED)
    history = folder / "history"
    history.mkdir(mode=0o700)
    acknowledged: set[str] = set()
    failures: list[str] = []
    for turn in range(times):
        notes = folder / f"acknowledged-{turn}"
        start, go = os.pipe()
        pids = [_fork(partial(_append, history, notes), start, go) for _ in range(WRITERS)]
        pids += [_fork(partial(_move, history), start, go) for _ in range(MOVERS)]
        os.close(start)
        os.close(go)
        doomed = [*chance.sample(pids[:WRITERS], 5), pids[-1]]
        time.sleep(chance.uniform(0, 0.05))  # a random moment is the point
        for pid in doomed:
            os.kill(pid, signal.SIGKILL)
        codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
        failures += [f"a process ended with {code}" for code in codes if code not in {0, -9}]
        data = notes.read_text() if notes.exists() else ""
        acknowledged |= {data[at : at + LENGTH] for at in range(0, len(data), LENGTH + 1)}
        notes.unlink(missing_ok=True)
    failures += _check(history, acknowledged)
    return Outcome(
        tried=len(acknowledged), failures=tuple(failures), note=f"{times * 6} processes killed"
    )


def _fork(work: Callable[[], None], start: int, go: int) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.close(go)
        os.read(start, 1)  # returns when the parent closes the pipe
        work()
        code = 0
    finally:
        os._exit(code)


def _append(history: Path, notes: Path) -> None:
    spool = Spool(str(history))
    note = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for _ in range(LINES):
        run_id = new_run_id(time.time_ns() // 1_000_000)
        spool.append(run_id, line_of(fragment_of(_record(run_id))), max_bytes=2**40)
        os.write(note, run_id.encode() + b"\n")


def _move(history: Path) -> None:
    for _ in range(3):
        move_spool(str(history), Retention(), wait=True)


def _record(run_id: str) -> dict[str, object]:
    return {
        "id": run_id,
        "time": "",
        "by": "python",
        "item": "torture/tool",
        "project": "",
        "outcome": "ok",
        "ms": {"total": 1.0},
        "parameters": {},
        "filler": "x" * random.randrange(2000),
    }


def _check(history: Path, acknowledged: set[str]) -> list[str]:
    """Move the rest; return what is lost or broken."""
    move_spool(str(history), Retention())
    with closing(sqlite3.connect(history / "history.db")) as connection:
        state = connection.execute("PRAGMA integrity_check").fetchone()[0]
        found = {row[0] for row in connection.execute("SELECT id FROM runs")}
        whole = {row[0] for row in connection.execute("SELECT run_id FROM details")}
    failures = [] if state == "ok" else [f"the database is corrupt: {state}"]
    if lost := acknowledged - found:
        failures.append(f"{len(lost)} of {len(acknowledged)} acknowledged runs are lost")
    if found != whole:
        failures.append(f"{len(found ^ whole)} runs have no details, or the reverse")
    if leftover := [one.name for one in history.glob("spool-*")]:
        failures.append(f"left in the spool: {leftover}")
    if damaged := [one.name for one in history.glob("*.damaged-*")]:
        failures.append(f"set aside as damaged: {damaged}")
    return failures


def _on_full_disk(folder: Path, times: int) -> Outcome:
    disk = folder / "disk"
    disk.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=4m,nr_inodes=512", "tmpfs", str(disk)]
    if subprocess.run(mounting, capture_output=True, check=False).returncode:
        sys.stdout.write(json.dumps({"skipped": "this user may not mount a tmpfs"}))
        sys.exit(0)
    project = Project(disk)
    project.command("torture/tool", "/bin/echo", "hi")
    project.run("torture/tool")
    acknowledged: set[str] = set()
    failures: list[str] = []
    unrecorded = 0
    for turn in range(times):
        with BlockingExecutor(project.context) as executor, filled(disk, turn % 4 - 1):
            told = False
            for _ in range(CALLS):
                result = executor.execute("torture/tool")
                if not result.success:
                    failures.append(f"a call failed: {result.error}")
                if "run_id" in result.metadata:
                    acknowledged.add(result.metadata["run_id"])
                    continue
                unrecorded += 1
                told = told or "history_error" in result.metadata
                if not told:
                    failures.append("a missing record was not reported")
        result = project.run("torture/tool")
        if "run_id" not in result.metadata:
            failures.append("nothing is recorded after space was freed")
            break
        acknowledged.add(result.metadata["run_id"])
    failures += _check(project.user / ".ai" / "history", acknowledged)
    if times > 3 and not unrecorded:
        failures.append("the disk was never full: it has the wrong size")
    return Outcome(
        tried=times * (CALLS + 1),
        failures=tuple(failures),
        note=f"{unrecorded} calls ran without a record",
    )


def _with_clock(folder: Path, times: int) -> Outcome:
    chance = random.Random(SEED)
    project = Project(folder)
    project.command("torture/tool", "/bin/true")
    real, offset = time.time_ns, 0
    time.time_ns = lambda: real() + offset * 10**9
    time.time = lambda: time.time_ns() / 1e9
    acknowledged: set[str] = set()
    failures: list[str] = []
    with BlockingExecutor(project.context) as executor:
        for turn in range(times):
            result = executor.execute("torture/tool")
            acknowledged.add(result.metadata.get("run_id", f"call {turn} was not recorded"))
            if turn % 5 == 4:
                move_spool(str(project.user / ".ai" / "history"), Retention())
            offset -= chance.randrange(YEAR // 2)
    time.time_ns = real
    failures += _check(project.user / ".ai" / "history", acknowledged)
    return Outcome(tried=times, failures=tuple(failures), note=f"back by {-offset // YEAR} years")


if __name__ == "__main__":
    scenario, where, repetitions = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    runner = {"killed": _killed, "full_disk": _on_full_disk, "clock": _with_clock}[scenario]
    children.print_outcome(runner(where, repetitions))
