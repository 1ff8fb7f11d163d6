"""Lists and statistics of runs."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from rye.recording.run_ids import first_run_id

_COLUMNS = (
    "id",
    "started_at",
    "caller",
    "client",
    "token",
    "program",
    "trace_id",
    "project",
    "item",
    "version",
    "closure",
    "signer",
    "outcome",
    "exit_code",
    "signal",
    "error_type",
    "duration_ms",
    "stdout_bytes",
    "stderr_bytes",
    "parameters_sha256",
)


class Wanted(NamedTuple):
    """Which runs are listed."""

    tool: str = ""
    """A glob of item ids; empty means all."""
    failed: bool = False
    since: int | None = None
    """Milliseconds since 1970."""
    by: str = ""
    """A kind of caller, a client with or without its version, a token or a program."""
    outcome: str = ""
    """One outcome; empty means all."""
    until: int | None = None
    """Milliseconds since 1970; runs that began then or later are left out."""


class RunPage(NamedTuple):
    """A part of a list of runs, the newest first, and whether there are others on either side."""

    rows: list[dict[str, Any]]
    has_newer: bool
    has_older: bool


class ToolStatistics(NamedTuple):
    """How a tool has done."""

    item: str
    calls: int
    failed: int
    p50_ms: float
    p95_ms: float


def runs(
    connection: sqlite3.Connection, wanted: Wanted, limit: int | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the rows of the wanted runs, the newest first."""
    conditions, values = _conditions(connection, wanted)
    statement = f"SELECT {', '.join(_COLUMNS)} FROM runs WHERE {conditions} ORDER BY id DESC"  # noqa: S608 - constants
    if limit is not None:
        statement += f" LIMIT {limit:d}"
    for row in connection.execute(statement, values):
        yield dict(zip(_COLUMNS, row, strict=True))


def run_page(
    connection: sqlite3.Connection,
    wanted: Wanted,
    length: int,
    *,
    before: str = "",
    after: str = "",
) -> RunPage:
    """Return the wanted runs that began before, or after, the run with an id; else the newest.

    Its time does not depend on how many pages are skipped.
    """
    conditions, values = _conditions(connection, wanted)
    order = "DESC"
    if before:
        conditions, values = f"{conditions} AND id < ?", [*values, before]
    elif after:
        conditions, values, order = f"{conditions} AND id > ?", [*values, after], "ASC"
    statement = f"SELECT {', '.join(_COLUMNS)} FROM runs WHERE {conditions} ORDER BY id {order}"  # noqa: S608 - constants
    found = connection.execute(f"{statement} LIMIT {length + 1:d}", values).fetchall()
    rows = [dict(zip(_COLUMNS, row, strict=True)) for row in found[:length]]
    if order == "ASC":
        return RunPage(rows[::-1], has_newer=len(found) > length, has_older=True)
    return RunPage(rows, has_newer=bool(before), has_older=len(found) > length)


def callers(connection: sqlite3.Connection, newest: int = 5000) -> list[str]:
    """Return who made the newest runs, as :attr:`Wanted.by` names them."""
    found = connection.execute(
        "SELECT DISTINCT caller, client, program FROM "
        "(SELECT caller, client, program FROM runs ORDER BY id DESC LIMIT ?)",
        [newest],
    )
    return sorted({name for row in found for name in row if name})


def statistics(connection: sqlite3.Connection, wanted: Wanted) -> list[ToolStatistics]:
    """Return one entry for each tool, the most used first."""
    if wanted._replace(tool="") == Wanted():
        found = _of_all(connection, _items(connection, wanted.tool))
    else:
        found = _of_some(connection, wanted)
    return sorted(found, key=lambda one: (-one.calls, one.item))


def _of_all(connection: sqlite3.Connection, items: Sequence[str]) -> Iterator[ToolStatistics]:
    """The statistics of all runs: the index has the durations of each tool in their order."""
    failed = dict(
        connection.execute(
            "SELECT item, count(*) FROM runs INDEXED BY runs_failed WHERE outcome <> 'ok' "
            "GROUP BY item"
        ).fetchall()
    )
    for item in items:
        calls = connection.execute(
            "SELECT count(*) FROM runs INDEXED BY runs_by_item WHERE item = ?", [item]
        ).fetchone()[0]
        middle, high = [
            connection.execute(
                "SELECT duration_ms FROM runs INDEXED BY runs_by_item WHERE item = ? "
                "ORDER BY duration_ms DESC LIMIT 1 OFFSET ?",
                [item, _from_the_end(calls, share)],
            ).fetchone()[0]
            for share in (0.5, 0.95)
        ]
        yield ToolStatistics(item, calls, failed.get(item, 0), middle, high)


def _of_some(connection: sqlite3.Connection, wanted: Wanted) -> Iterator[ToolStatistics]:
    conditions, values = _conditions(connection, wanted)
    taken: dict[str, list[float]] = {}
    failed: dict[str, int] = {}
    rows = connection.execute(
        f"SELECT item, duration_ms, outcome <> 'ok' FROM runs WHERE {conditions}",  # noqa: S608 - constants
        values,
    )
    for item, duration, failure in rows:
        taken.setdefault(item, []).append(duration)
        failed[item] = failed.get(item, 0) + failure
    for item, durations in taken.items():
        durations.sort(reverse=True)
        calls = len(durations)
        middle, high = [durations[_from_the_end(calls, share)] for share in (0.5, 0.95)]
        yield ToolStatistics(item, calls, failed[item], middle, high)


def _from_the_end(calls: int, share: float) -> int:
    """The position of a percentile among durations that begin with the longest one."""
    return calls - 1 - min(calls - 1, int(calls * share))


def _conditions(connection: sqlite3.Connection, wanted: Wanted) -> tuple[str, list[Any]]:
    conditions = ["1"]
    values: list[Any] = []
    if wanted.tool:
        items = _items(connection, wanted.tool)
        conditions.append(f"item IN ({', '.join('?' * len(items))})")
        values += items
    if wanted.failed:
        conditions.append("outcome <> 'ok'")
    if wanted.outcome:
        conditions.append("outcome = ?")
        values.append(wanted.outcome)
    if wanted.since is not None:
        conditions.append("id >= ?")
        values.append(first_run_id(wanted.since))
    if wanted.until is not None:
        conditions.append("id < ?")
        values.append(first_run_id(wanted.until))
    if wanted.by:
        names = ("caller", "client", "token", "program")
        same = " OR ".join([f"{name} = ?" for name in names])
        conditions.append(f"({same} OR substr(client, 1, ?) = ?)")
        values += [wanted.by] * len(names)
        values += [len(wanted.by) + 1, f"{wanted.by} "]
    return " AND ".join(conditions), values


def _items(connection: sqlite3.Connection, glob: str) -> list[str]:
    """Return the tools that match; looks each of them up in the index, not each run."""
    from fnmatch import fnmatchcase

    found: list[str] = []
    item = ""
    while True:
        row = connection.execute("SELECT min(item) FROM runs WHERE item > ?", [item]).fetchone()
        if row[0] is None:
            return found
        item = row[0]
        if not glob or fnmatchcase(item, glob):
            found.append(item)
