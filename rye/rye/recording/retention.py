"""Removes runs that are too old or too many, the oldest first.

Runs are removed in the order in which they were recorded, which is the order of ``details``. A run
with an old time that was recorded after newer ones is kept as long as those: the clock was wrong.
"""

from __future__ import annotations

import sqlite3
import time

from rye.recording.run_ids import first_run_id
from rye.recording.settings import Retention

_BATCH = 2000
_DAY_MS = 24 * 3600 * 1000
# Only from the beginning, so that the rest is a chain without a gap; and never the last one, which
# the next receipt has to name.
_REMOVE_RECEIPTS = """
DELETE FROM receipts WHERE position <
    (SELECT coalesce(min(position), (SELECT max(position) FROM receipts)) FROM receipts
     WHERE run_id NOT IN removed)
"""
_REMOVE = (
    _REMOVE_RECEIPTS,
    "DELETE FROM outputs WHERE run_id IN removed",
    "DELETE FROM runs WHERE id IN removed",
    "DELETE FROM details WHERE run_id IN removed",
)


def apply_retention(connection: sqlite3.Connection, retention: Retention) -> int:
    """Remove what exceeds the limits; return the number of runs."""
    cutoff = first_run_id(int(time.time() * 1000 - retention.days * _DAY_MS))
    removed = 0
    while batch := _remove(connection, _older(connection, cutoff)):
        removed += batch
    excess = _excess(connection, retention.runs)
    while excess > 0 and (batch := _remove(connection, _first(connection, min(excess, _BATCH)))):
        removed, excess = removed + batch, excess - batch
    while _used_bytes(connection) > retention.size:
        batch = _remove(connection, _first(connection, _BATCH))
        if not batch:
            break
        removed += batch
    if removed:
        _give_back(connection)
    return removed


def remove_older(connection: sqlite3.Connection, milliseconds: float) -> int:
    """Remove all runs that began longer ago than this; return their number."""
    cutoff = first_run_id(int(time.time() * 1000 - milliseconds))
    removed = 0
    while True:
        rows = connection.execute("SELECT id FROM runs WHERE id < ? LIMIT ?", [cutoff, _BATCH])
        batch = _remove(connection, [row[0] for row in rows])
        if not batch:
            break
        removed += batch
    if removed:
        _give_back(connection)
    return removed


def remove_all(connection: sqlite3.Connection) -> int:
    """Remove all runs and receipts; return the number of runs."""
    connection.execute("BEGIN IMMEDIATE")
    for table in ("receipts", "outputs", "details"):
        connection.execute(f"DELETE FROM {table}")  # noqa: S608 - constants
    removed = connection.execute("DELETE FROM runs").rowcount
    connection.execute("COMMIT")
    _give_back(connection)
    return removed


def _older(connection: sqlite3.Connection, cutoff: str) -> list[str]:
    """The first runs that were recorded, up to one that is new enough."""
    found: list[str] = []
    for (run_id,) in connection.execute("SELECT run_id FROM details ORDER BY rowid"):
        if run_id >= cutoff or len(found) == _BATCH:
            break
        found.append(run_id)
    return found


def _first(connection: sqlite3.Connection, number: int) -> list[str]:
    rows = connection.execute("SELECT run_id FROM details ORDER BY rowid LIMIT ?", [number])
    return [row[0] for row in rows]


def _excess(connection: sqlite3.Connection, limit: int) -> int:
    """How many runs there are beyond the limit; counts them only if there may be too many."""
    last = connection.execute("SELECT max(rowid) - min(rowid) + 1 FROM details").fetchone()[0]
    if last is None or last <= limit:
        return 0
    return int(connection.execute("SELECT count(*) FROM runs").fetchone()[0]) - limit


def _remove(connection: sqlite3.Connection, run_ids: list[str]) -> int:
    if not run_ids:
        return 0
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS removed (id TEXT PRIMARY KEY)")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("DELETE FROM removed")
    connection.executemany("INSERT INTO removed VALUES (?)", [(run_id,) for run_id in run_ids])
    for statement in _REMOVE:
        connection.execute(statement)
    connection.execute("COMMIT")
    return len(run_ids)


def _give_back(connection: sqlite3.Connection) -> None:
    """Return the free pages to the disk."""
    # execute() would free a single page, since it steps until the first row, and there is none.
    connection.executescript("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE);")


def _used_bytes(connection: sqlite3.Connection) -> int:
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)
