"""What tools did lately: the newest runs of each, without reading all of its runs.

The index of the runs has the ids of each tool. Ids begin with the time, so the newest ones are
found in the index alone.
"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

_LOOKED_AT = 200
"""Of a tool, only so many of the newest runs are looked at."""


class ToolRun(NamedTuple):
    """One run of a tool."""

    id: str
    started_at: str
    outcome: str
    duration_ms: float
    caller: str
    client: str | None
    error_type: str | None


def newest_runs(
    connection: sqlite3.Connection, item: str, limit: int, *, project: str | None = None
) -> list[ToolRun]:
    """Return the newest runs of a tool, the newest first.

    ``project`` is for a tool of a project: in another one, its id may mean another tool.
    """
    condition = "" if project is None else "AND project = :project"
    rows = connection.execute(
        f"SELECT {', '.join(ToolRun._fields)} FROM runs WHERE id IN (SELECT id FROM runs "  # noqa: S608 - constants
        "INDEXED BY runs_by_item WHERE item = :item ORDER BY id DESC LIMIT :looked_at) "
        f"{condition} ORDER BY id DESC LIMIT :limit",
        {
            "item": item,
            "project": project,
            "limit": limit,
            "looked_at": max(limit, _LOOKED_AT),
        },
    )
    return [ToolRun._make(row) for row in rows]
