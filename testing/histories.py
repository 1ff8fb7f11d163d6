"""The history of a test project: what was recorded.

::

    project.run("tools/x")
    (record,) = records(project)
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from rye.recording.mover import Moved, move_spool
from rye.recording.settings import Retention
from rye_project import Project


def folder(project: Project) -> Path:
    """The folder of the spool and the database."""
    return project.user / ".ai" / "history"


def spooled(project: Project) -> list[dict[str, Any]]:
    """The records in the spool, which no reader has moved yet."""
    path = folder(project) / "spool.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines if line]


def moved(project: Project, **retention: Any) -> Moved:
    """Move the spool into the database."""
    return move_spool(str(folder(project)), Retention(**retention))


@contextmanager
def database(project: Project) -> Iterator[sqlite3.Connection]:
    """The database, opened like any SQLite file."""
    with closing(sqlite3.connect(folder(project) / "history.db")) as connection:
        connection.row_factory = sqlite3.Row
        yield connection


def records(project: Project) -> list[dict[str, Any]]:
    """All records, the oldest first, after the spool was moved."""
    moved(project)
    with database(project) as connection:
        rows = connection.execute("SELECT record FROM details ORDER BY run_id").fetchall()
    return [json.loads(row["record"]) for row in rows]
