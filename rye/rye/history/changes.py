"""Changes that a person makes to the history: redact, export and import."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from rye.errors import HistoryError
from rye.history.query import Wanted, runs
from rye.history.record_shape import checked
from rye.history.store import History
from rye.recording.rows import insert

_BATCH = 500
_MAX_LINE = 64 * 1024 * 1024
_VALUES = ("reason", "autopsy", "denials", "project", "program")


def redact(history: History, run_id: str) -> None:
    """Remove what could be private from a run: values, output, messages, and where it ran.

    Digests, times and the outcome stay. The bytes are overwritten in the database.
    """
    record = history.record(run_id)
    for name in _VALUES:
        record.pop(name, None)
    record["parameters"].pop("values", None)
    record["project"] = ""
    record["redacted"] = True
    connection = history.connection
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("DELETE FROM outputs WHERE run_id = ?", [run_id])
    connection.execute(
        "UPDATE details SET record = ? WHERE run_id = ?",
        [json.dumps(record, separators=(",", ":")), run_id],
    )
    connection.execute("UPDATE runs SET project = '', program = NULL WHERE id = ?", [run_id])
    connection.execute("COMMIT")
    connection.executescript("PRAGMA wal_checkpoint(TRUNCATE);")


def exported(history: History, wanted: Wanted) -> Iterator[str]:
    """Yield each wanted run as a line of JSON, the oldest first, with its kept output."""
    ids = [row["id"] for row in runs(history.connection, wanted)]
    for run_id in reversed(ids):
        yield json.dumps(history.whole(run_id), separators=(",", ":"))


def imported(history: History, lines: Iterable[str]) -> tuple[int, int]:
    """Insert exported runs; return how many are new, and how many there were.

    Raises :class:`HistoryError` with the number of the first line that is not a run; then nothing
    is imported.
    """
    new = total = 0
    connection = history.connection
    connection.execute("BEGIN IMMEDIATE")
    try:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                record = checked(json.loads(line) if len(line) <= _MAX_LINE else None)
                # A run that is there keeps what it has: a line with its id must not add an output.
                if not history.has(record["id"]):
                    record["imported"] = True  # nobody here can vouch for it with a receipt
                    new += insert(connection, [record])
            except (ValueError, RecursionError):
                raise HistoryError(
                    f"line {number}: not JSON", hint="nothing was imported"
                ) from None
            except HistoryError as error:
                raise HistoryError(
                    f"line {number}: {error.reason}", hint="nothing was imported"
                ) from None
            total += 1
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return new, total
