"""From the spool to the database: nothing is lost, and no fault makes a call fail."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from histories import database, folder, moved, records, spooled
from rye.errors import HistoryError
from rye.executor.run.blocking import BlockingExecutor
from rye.recording import spool, writer
from rye.recording.database import VERSION
from rye.recording.run_ids import new_run_id as id_of_time
from rye_project import Project, says

ROOT = os.geteuid() == 0
DAY = 24 * 3600 * 1000
NOW = time.time_ns() // 1_000_000


def new_run_id(milliseconds: int) -> str:
    """An id of this time after the tests began."""
    return id_of_time(NOW + milliseconds)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def line(run_id: str, **fields: object) -> bytes:
    record = {
        "id": run_id,
        "time": "2026-01-01T00:00:00.000Z",
        "by": "cli",
        "item": "tools/x",
        "project": "/p",
        "outcome": "ok",
        "ms": {"total": 1.5},
        "parameters": {},
        **fields,
    }
    return json.dumps(record).encode()


def add(project: Project, *lines: bytes) -> None:
    writing = spool.Spool(str(folder(project)))
    for one in lines:
        writing.append(new_run_id(0), one, max_bytes=2**30)


def ids(project: Project) -> list[str]:
    return [record["id"] for record in records(project)]


def test_the_rows_of_a_run_can_be_read_with_plain_sqlite(project: Project) -> None:
    project.settings(history={"keep": {"output": ["*"]}}, permissions={"unenforced": "allow"})
    result = project.run(says(project, "echo out; exit 4"))
    assert moved(project).runs == 1
    with database(project) as connection:
        row = dict(connection.execute("SELECT * FROM runs").fetchone())
        kept = connection.execute("SELECT stream, content FROM outputs").fetchall()
        details = connection.execute("SELECT record FROM details").fetchone()[0]
    assert row["id"] == result.metadata["run_id"]
    assert (row["item"], row["outcome"], row["exit_code"]) == ("tools/says", "failed", 4)
    assert (row["stdout_bytes"], row["stderr_bytes"]) == (4, 0)
    assert [tuple(one) for one in kept] == [("stdout", b"out\n"), ("stderr", b"")]
    assert '"text"' not in details
    assert spooled(project) == []


def test_moving_again_adds_nothing(project: Project) -> None:
    one = new_run_id(1)
    add(project, line(one))
    copy = (folder(project) / "spool.jsonl").read_bytes()
    assert moved(project).runs == 1
    (folder(project) / "spool.jsonl").write_bytes(copy)
    assert moved(project).runs == 0
    assert ids(project) == [one]


def test_a_line_that_was_cut_off_does_not_spoil_the_next_one(project: Project) -> None:
    first, last = new_run_id(1), new_run_id(2)
    add(project, line(first))
    with (folder(project) / "spool.jsonl").open("ab") as file:
        file.write(b'\n{"id": "0123')
    add(project, line(last), b'{"id": "not a record"}', b"[]")
    assert moved(project).notes == ["3 incomplete lines in the spool"]
    assert ids(project) == [first, last]


def test_a_line_is_not_appended_to_a_spool_that_was_read(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that opened the spool before a mover renamed it."""
    first, late = new_run_id(1), new_run_id(2)
    add(project, line(first))
    original = spool._open
    opened = [original(str(folder(project)))]

    def open_late(path: str) -> int:
        if not opened:
            return original(path)
        moved(project)  # between open and lock
        return opened.pop()

    monkeypatch.setattr(spool, "_open", open_late)
    add(project, line(late))
    monkeypatch.undo()
    assert ids(project) == [first, late]


def test_a_writer_notices_that_its_spool_was_moved(project: Project) -> None:
    writing = spool.Spool(str(folder(project)))
    made = [new_run_id(number) for number in range(4)]
    for one in made:
        writing.append(one, line(one), max_bytes=2**30)
        moved(project)
    assert ids(project) == made


def test_a_forked_child_opens_the_spool_for_itself(project: Project) -> None:
    writing = spool.Spool(str(folder(project)))
    first, second = new_run_id(0), new_run_id(1)
    writing.append(first, line(first), max_bytes=2**30)
    before = writing._fd
    child = os.fork()
    if child == 0:
        fresh = writing._opened()
        other = os.fstat(fresh).st_ino == (folder(project) / "spool.jsonl").stat().st_ino
        os._exit(0 if other and writing._pid == os.getpid() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert writing._fd == before
    writing.append(second, line(second), max_bytes=2**30)
    assert ids(project) == [first, second]


def test_a_spool_that_is_being_moved_is_not_waited_for(project: Project) -> None:
    one, other = new_run_id(1), new_run_id(2)
    add(project, line(one))
    spool.set_aside(str(folder(project)), one)
    (segment,) = spool.segments(str(folder(project)))
    with Path(segment).open("rb+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        add(project, line(other))
    assert ids(project) == [one, other]


def test_a_spool_that_nothing_moves_is_bounded(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "_SEGMENT_BYTES", 1000)
    made = [new_run_id(number) for number in range(40)]
    writing = spool.Spool(str(folder(project)))
    for one in made:
        writing.append(one, line(one), max_bytes=3000)
    kept = ids(project)
    assert kept == made[-len(kept) :]
    assert 10 < len(kept) < 30


def test_many_threads_lose_nothing(project: Project) -> None:
    made = [new_run_id(number) for number in range(200)]
    stop = threading.Event()

    def move() -> None:
        while not stop.is_set():
            moved(project)

    movers = [threading.Thread(target=move) for _ in range(2)]
    add(project, line(made[0]))
    for one in movers:
        one.start()
    writers = [
        threading.Thread(target=lambda part=part: add(project, *map(line, part)))
        for part in (made[1:100], made[100:])
    ]
    for one in writers:
        one.start()
    for one in writers:
        one.join()
    stop.set()
    for one in movers:
        one.join()
    assert ids(project) == sorted(made)


# Retention


def test_old_runs_are_removed(project: Project) -> None:
    old, new = new_run_id(-91 * DAY), new_run_id(-89 * DAY)
    add(project, line(old), line(new))
    moved(project, days=90)
    with database(project) as connection:
        for table, column in (("runs", "id"), ("details", "run_id")):
            assert [row[0] for row in connection.execute(f"SELECT {column} FROM {table}")] == [new]  # noqa: S608 - constants


def test_a_run_is_kept_if_the_clock_went_back(project: Project) -> None:
    before, after = new_run_id(0), new_run_id(-400 * DAY)
    add(project, line(before))
    moved(project)
    add(project, line(after))
    assert moved(project, days=90).runs == 1
    assert ids(project) == [after, before]


def test_the_oldest_runs_are_removed_if_there_are_too_many(project: Project) -> None:
    made = [new_run_id(number) for number in range(10)]
    add(project, *map(line, made))
    moved(project, runs=3)
    assert ids(project) == made[-3:]


def test_the_oldest_runs_are_removed_if_the_database_is_too_large(project: Project) -> None:
    made = [new_run_id(number) for number in range(4000)]
    filler = "x" * 500
    (folder(project)).mkdir(parents=True)
    lines = b"\n".join([line(one, filler=filler) for one in made])
    (folder(project) / "spool.jsonl").write_bytes(lines)
    moved(project, size=2**20 * 2)
    with database(project) as connection:
        kept = [row[0] for row in connection.execute("SELECT id FROM runs ORDER BY id")]
    assert kept == made[-len(kept) :]
    assert 0 < len(kept) < 4000
    assert (folder(project) / "history.db").stat().st_size < 2**20 * 2.5


# Faults


def test_a_full_disk_does_not_fail_the_call_and_is_reported_once(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = says(project, "echo works")
    write = os.write

    def full(fd: int, data: bytes) -> int:
        return write(fd, data[:5] if bytes(data[:6]) == b'\n{"id"' else data)

    monkeypatch.setattr(os, "write", full)
    with BlockingExecutor(project.context) as executor:
        first, second = executor.execute(tool), executor.execute(tool)
    assert first.data["stdout"] == second.data["stdout"] == "works\n"
    assert first.metadata["history_error"] == (
        f"{folder(project)}: no space left on device; make it writable, or turn history off in "
        "~/.ai/config.yaml: history: {enabled: false}"
    )
    assert "run_id" not in first.metadata
    assert "history_error" not in second.metadata
    monkeypatch.undo()
    assert project.run(tool).metadata["run_id"] == ids(project)[0]


def test_a_home_that_cannot_be_written_does_not_fail_the_call(project: Project) -> None:
    tool = says(project, "echo works")
    folder(project).write_text("in the way")
    result = project.run(tool)
    assert result.success
    assert result.metadata["history_error"].startswith(f"{folder(project)}: not a directory;")


@pytest.mark.skipif(not ROOT, reason="only root can give files away")
def test_nothing_is_written_into_the_home_of_another_user(project: Project) -> None:
    tool = says(project, "echo works")
    os.chown(project.user / ".ai", 12345, 12345)
    result = project.run(tool)
    assert "another user (uid 12345)" in result.metadata["history_error"]
    assert not folder(project).exists()


def test_a_damaged_database_is_set_aside_and_a_new_one_begins(project: Project) -> None:
    first, second = new_run_id(1), new_run_id(2)
    add(project, line(first))
    moved(project)
    path = folder(project) / "history.db"
    path.write_bytes(b"this is not a database" * 1000)
    for rest in ("-wal", "-shm"):
        Path(f"{path}{rest}").unlink(missing_ok=True)
    add(project, line(second))
    (note,) = moved(project).notes
    assert note.startswith("the history was damaged and begins anew; the old database is ")
    kept = Path(note.rpartition(" ")[2])
    assert kept.read_bytes().startswith(b"this is not")
    assert ids(project) == [second]


def test_a_locked_database_keeps_the_lines_in_the_spool(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rye.recording.database._WAIT_SECONDS", 0.05)
    one, other = new_run_id(1), new_run_id(2)
    add(project, line(one))
    moved(project)
    add(project, line(other))
    with database(project) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(HistoryError, match=r"history\.db: database is locked; free it, or"):
            moved(project)
    assert ids(project) == [one, other]


def test_a_database_of_a_newer_rye_is_left_alone(project: Project) -> None:
    add(project, line(new_run_id(1)))
    moved(project)
    with database(project) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(HistoryError, match="was written by a newer version of rye; update rye"):
        moved(project)


def test_a_program_that_makes_many_calls_moves_its_lines(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_LINES", 3)
    started: list[object] = []

    def at_once(run: Callable[..., None], args: tuple[object, ...]) -> None:
        started.append(args)
        run(*args)

    monkeypatch.setattr(writer, "start_new_thread", at_once)
    tool = says(project, "true")

    async def calls() -> None:
        async with project.executor() as executor:
            for _ in range(4):
                assert "history_error" not in (await executor.execute(tool)).metadata

    asyncio.run(calls())
    assert len(started) == 1
    assert len(spooled(project)) == 1
    assert len(records(project)) == 4


def test_a_fault_of_the_writer_is_reported_once(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_LINES", 1)
    monkeypatch.setattr(writer, "start_new_thread", lambda run, args: run(*args))

    def broken(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr("rye.recording.mover.open_database", broken)
    tool = says(project, "true")

    async def calls() -> list[str]:
        async with project.executor() as executor:
            results = [await executor.execute(tool) for _ in range(3)]
        return [one.metadata.get("history_error", "") for one in results]

    first, *rest = asyncio.run(calls())
    assert first.startswith(f"{folder(project)}/history.db: disk I/O error; free it")
    assert rest == ["", ""]
    monkeypatch.undo()
    assert len(records(project)) == 3
