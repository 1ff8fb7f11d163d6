"""The history of a user, opened for reading."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from rye.cache.disk import cache_of
from rye.context import Context
from rye.errors import HistoryError, RunNotFoundError
from rye.recording.database import DATABASE, open_database
from rye.recording.mover import move_spool
from rye.recording.rows import put_content
from rye.recording.run_ids import LENGTH
from rye.recording.settings import HistoryConfig, HistorySettings
from rye.recording.spool import history_folder, make_folder

LAST = "last"
_MIN_PART = 4
_LIST = "list the runs with: rye history"


class History:
    """All runs. ``notes`` is what a person should know about the state of the history."""

    def __init__(
        self, connection: sqlite3.Connection, settings: HistorySettings, notes: list[str]
    ) -> None:
        self.connection = connection
        self.settings = settings
        self.notes = notes

    def find(self, run: str) -> str:
        """Return the id of a run, of which ``run`` is the beginning or the end, or ``last``.

        Raises :class:`RunNotFoundError`.
        """
        if run == LAST:
            found = self._ids("1 ORDER BY id DESC LIMIT 1")
        elif len(run) == LENGTH:
            found = self._ids("id = ?", run)
        elif len(run) < _MIN_PART or not run.isalnum():
            raise RunNotFoundError(f"{run!r} is not the id of a run", hint=_LIST)
        else:
            found = self._ids("id GLOB ? OR id GLOB ? LIMIT 2", f"{run}*", f"*{run}")
        if not found:
            raise RunNotFoundError(f"no recorded run is {run!r}", hint=_LIST)
        if len(found) > 1:
            raise RunNotFoundError(f"several runs are {run!r}", hint="give more of the id")
        return found[0]

    def has(self, run_id: str) -> bool:
        """True if a run with this whole id is recorded."""
        return bool(self._ids("id = ?", run_id))

    def record(self, run_id: str) -> dict[str, Any]:
        """Return the record of a run, without its output."""
        row = self.connection.execute("SELECT record FROM details WHERE run_id = ?", [run_id])
        text = row.fetchone()
        if text is None:
            raise RunNotFoundError(f"no recorded run is {run_id!r}", hint=_LIST)
        record: dict[str, Any] = json.loads(text[0])
        return record

    def outputs(self, run_id: str) -> dict[str, bytes]:
        """Return the kept output of a run, by the name of the stream."""
        rows = self.connection.execute(
            "SELECT stream, content FROM outputs WHERE run_id = ?", [run_id]
        )
        return {stream: bytes(content) for stream, content in rows}

    def whole(self, run_id: str) -> dict[str, Any]:
        """Return the record of a run with its kept output, as the spool had it."""
        record = self.record(run_id)
        for stream, content in self.outputs(run_id).items():
            put_content(record["output"][stream], content)
        return record

    def _ids(self, condition: str, *values: str) -> list[str]:
        rows = self.connection.execute(f"SELECT id FROM runs WHERE {condition}", values)  # noqa: S608 - of this module
        return [row[0] for row in rows]


@contextmanager
def opened(context: Context) -> Iterator[History]:
    """Open the history, after the spool was moved into the database.

    A spool that cannot be moved is a note. Raises :class:`HistoryError` if the database cannot be
    read.
    """
    cache = cache_of(context.user_space)
    settings = HistoryConfig(context, cache).current()
    cache.flush()
    folder = history_folder(context.user_space)
    notes: list[str] = []
    try:
        try:
            make_folder(folder)
        except OSError as error:
            raise HistoryError(f"{folder}: {(error.strerror or 'unusable').lower()}") from None
        notes += move_spool(folder, settings.retention).notes
    except HistoryError as error:
        notes.append(f"the newest runs are missing: {error}")
    try:
        with closing(open_database(folder)) as connection:
            yield History(connection, settings, notes)
    except sqlite3.Error as error:
        raise HistoryError(
            f"{folder}/{DATABASE}: {error}",
            hint="make room and let it be written, or move the file away",
        ) from None
    except OSError as error:
        reason = (error.strerror or "cannot be read").lower()
        raise HistoryError(f"{folder}/{DATABASE}: {reason}", hint="make it readable") from None
