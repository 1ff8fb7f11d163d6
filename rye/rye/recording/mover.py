"""Moves lines from the spool into the database, and removes what is too old or too much.

A line leaves the spool only after its row was committed, so a process that is killed at any moment
loses nothing; lines that were already moved are recognised by their ids.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import time

from rye.errors import HistoryError
from rye.recording.database import DATABASE, open_database
from rye.recording.interpreters import described
from rye.recording.retention import apply_retention
from rye.recording.rows import insert
from rye.recording.run_ids import new_run_id
from rye.recording.settings import Retention
from rye.recording.spool import SPOOL, segments, set_aside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_LOCK = "moving.lock"
_BATCH = 500
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class Moved:
    """What moving did: the number of new runs, and what a person should know."""

    def __init__(self) -> None:
        self.runs = 0
        self.notes: list[str] = []


def move_spool(folder: str, retention: Retention, *, wait: bool = True) -> Moved:
    """Move all lines into the database. Without ``wait``, leave that to a process that does it.

    Raises :class:`HistoryError` if the database cannot be used; nothing is lost then.
    """
    moved = Moved()
    try:
        lock = os.open(f"{folder}/{_LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        return moved
    except OSError as error:
        raise _unusable(folder, (error.strerror or "cannot be written").lower()) from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return moved
        _move(folder, retention, moved)
    except sqlite3.Error as error:
        raise _unusable(folder, str(error)) from None
    except OSError as error:
        raise _unusable(folder, (error.strerror or type(error).__name__).lower()) from None
    finally:
        os.close(lock)
    return moved


def _move(folder: str, retention: Retention, moved: Moved) -> None:
    try:
        _move_into(folder, retention, moved)
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _DAMAGED:
            raise
        moved.notes.append(_set_damaged_aside(folder))
        _move_into(folder, retention, moved)


def _move_into(folder: str, retention: Retention, moved: Moved) -> None:
    connection = open_database(folder)
    try:
        if os.path.exists(f"{folder}/{SPOOL}"):  # noqa: PTH110 - a text
            set_aside(folder, new_run_id(time.time_ns() // 1_000_000))
        for path in segments(folder):
            _move_segment(connection, path, moved)
        if moved.runs:
            apply_retention(connection, retention)
    finally:
        connection.close()


def _move_segment(connection: sqlite3.Connection, path: str, moved: Moved) -> None:
    # Opened for writing, since some network file systems require that for an exclusive lock.
    with open(path, "rb+") as file:  # noqa: PTH123 - a text
        fcntl.flock(file, fcntl.LOCK_EX)
        lines = file.read().split(b"\n")
        lost = 0
        for start in range(0, len(lines), _BATCH):
            records = []
            for record in _records(lines[start : start + _BATCH]):
                if record is None:
                    lost += 1
                else:
                    _describe_interpreter(record, connection)
                    records.append(record)
            connection.execute("BEGIN IMMEDIATE")
            try:
                lost += _insert(connection, records, moved)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        os.unlink(path)  # noqa: PTH108 - a text
    if lost:
        moved.notes.append(f"{lost} incomplete {'line' if lost == 1 else 'lines'} in the spool")


def _describe_interpreter(record: dict[str, Any], connection: sqlite3.Connection) -> None:
    interpreter, project = record.get("interpreter"), record.get("project")
    if isinstance(interpreter, dict) and isinstance(project, str):
        record["interpreter"] = described(interpreter, project, connection)


def _insert(connection: sqlite3.Connection, records: list[dict[str, Any]], moved: Moved) -> int:
    """Insert the records, and return how many are not records."""
    try:
        moved.runs += insert(connection, records)
        return 0
    except HistoryError:
        lost = 0
        for record in records:
            try:
                moved.runs += insert(connection, [record])
            except HistoryError:
                lost += 1
        return lost


def _records(lines: list[bytes]) -> Iterator[dict[str, Any] | None]:
    """Yield each record, and ``None`` for a line that was cut off."""
    for line in lines:
        if not line:
            continue
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        yield record if isinstance(record, dict) else None


def _set_damaged_aside(folder: str) -> str:
    """Rename a damaged database, so that a new one can be made; return what to report."""
    kept = f"{folder}/{DATABASE}.damaged-{new_run_id(time.time_ns() // 1_000_000)}"
    for suffix in ("-wal", "-shm", ""):
        try:
            os.rename(f"{folder}/{DATABASE}{suffix}", f"{kept}{suffix}")  # noqa: PTH104 - texts
        except FileNotFoundError:
            continue
    return f"the history was damaged and begins anew; the old database is {kept}"


def _unusable(folder: str, reason: str) -> HistoryError:
    return HistoryError(
        f"{folder}/{DATABASE}: {reason}", hint="free it, or move the file away; no run is lost"
    )
