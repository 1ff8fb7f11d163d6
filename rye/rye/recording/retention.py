"""Removes runs that are too old or too many, the oldest first."""

from __future__ import annotations

import sqlite3
import time

from rye.recording.run_ids import first_run_id
from rye.recording.settings import Retention

_TABLES = (("outputs", "run_id"), ("details", "run_id"), ("runs", "id"))
# Only from the beginning, so that the rest is a chain without a gap; and never the last one, which
# the next receipt has to name.
_RECEIPTS = """
DELETE FROM receipts WHERE position <
    (SELECT coalesce(min(position), (SELECT max(position) FROM receipts)) FROM receipts
     WHERE run_id >= ?)
"""
_BATCH = 2000
_DAY_MS = 24 * 3600 * 1000


def apply_retention(connection: sqlite3.Connection, retention: Retention) -> int:
    """Remove what exceeds the limits; return the number of runs."""
    removed = remove_older(connection, retention.days * _DAY_MS)
    excess = connection.execute("SELECT count(*) FROM runs").fetchone()[0] - retention.runs
    if excess > 0:
        removed += _remove_oldest(connection, excess)
    while _used_bytes(connection) > retention.size:
        batch = _remove_oldest(connection, _BATCH)
        if not batch:
            break
        removed += batch
    if removed:
        _give_back(connection)
    return removed


def remove_older(connection: sqlite3.Connection, milliseconds: float) -> int:
    """Remove the runs that began longer ago than this; return their number."""
    return _remove_before(connection, first_run_id(int(time.time() * 1000 - milliseconds)))


def remove_all(connection: sqlite3.Connection) -> int:
    """Remove all runs and receipts; return the number of runs."""
    removed = _remove_before(connection, "~")
    connection.execute("DELETE FROM receipts")
    _give_back(connection)
    return removed


def _remove_oldest(connection: sqlite3.Connection, number: int) -> int:
    row = connection.execute("SELECT id FROM runs ORDER BY id LIMIT 1 OFFSET ?", [number])
    end = row.fetchone()
    return _remove_before(connection, "~" if end is None else end[0])


def _remove_before(connection: sqlite3.Connection, end: str) -> int:
    if connection.execute("SELECT 1 FROM runs WHERE id < ? LIMIT 1", [end]).fetchone() is None:
        return 0
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(_RECEIPTS, [end])
    removed = 0
    for table, column in _TABLES:
        removed = connection.execute(f"DELETE FROM {table} WHERE {column} < ?", [end]).rowcount  # noqa: S608 - constants
    connection.execute("COMMIT")
    return removed


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
