"""The database of all runs, ``~/.ai/history/history.db``: its tables, and their versions.

``runs`` has one narrow row for each run, for lists and statistics; ``details`` has the whole record
as JSON; ``outputs`` has output that the user keeps. The schema is documented in ``docs/history.md``
and only grows: a migration may add a table, a column or an index.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from rye.errors import HistoryError

DATABASE = "history.db"
_WAIT_SECONDS = 10.0
_TABLES = """
CREATE TABLE runs (
    id TEXT NOT NULL PRIMARY KEY,
    started_at TEXT NOT NULL,
    caller TEXT NOT NULL,
    client TEXT,
    token TEXT,
    program TEXT,
    trace_id TEXT,
    project TEXT NOT NULL,
    item TEXT NOT NULL,
    version TEXT,
    closure TEXT,
    signer TEXT,
    outcome TEXT NOT NULL,
    exit_code INTEGER,
    signal INTEGER,
    error_type TEXT,
    duration_ms REAL NOT NULL,
    stdout_bytes INTEGER,
    stderr_bytes INTEGER,
    parameters_sha256 TEXT
) WITHOUT ROWID;
CREATE INDEX runs_by_item ON runs (item, duration_ms);
CREATE INDEX runs_failed ON runs (item) WHERE outcome <> 'ok';
CREATE TABLE details (
    run_id TEXT NOT NULL PRIMARY KEY REFERENCES runs (id),
    record TEXT NOT NULL
);
CREATE TABLE outputs (
    run_id TEXT NOT NULL REFERENCES runs (id),
    stream TEXT NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (run_id, stream)
);
CREATE TABLE receipts (
    position INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    envelope TEXT NOT NULL
);
CREATE INDEX receipts_by_run ON receipts (run_id);
"""
_INTERPRETERS = """
CREATE TABLE interpreters (
    path TEXT NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    sha256 TEXT,
    version TEXT,
    PRIMARY KEY (path, size, mtime_ns)
) WITHOUT ROWID
"""
_MIGRATIONS = (_TABLES, _INTERPRETERS)
"""Each turns a database of the version before into the next one. Never change one; add one."""
VERSION = len(_MIGRATIONS)


def open_database(folder: str, *, create: bool = True) -> sqlite3.Connection:
    """Open the database, and bring its tables up to date.

    Raises :class:`HistoryError` if it is from a newer Rye, and ``sqlite3.Error``, such as
    ``DatabaseError`` for a damaged file and ``OperationalError`` for a locked one.
    """
    path = Path(folder) / DATABASE
    # SQLite wants to write beside a database with a WAL, also to read it.
    mode = "mode=ro&immutable=1" if _is_read_only(folder) else "mode=rw"
    if create and not path.exists():
        # SQLite would create it with the umask of the process.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    connection = sqlite3.connect(
        f"{path.as_uri()}?{mode}",
        uri=True,
        timeout=_WAIT_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        _prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    version = _version(connection)
    if version == 0:
        # Both are kept in the file; the first is possible only before the first table.
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    if version > VERSION:
        raise HistoryError(
            f"{path} was written by a newer version of rye", hint="update rye, or move it away"
        )
    while version < VERSION:
        connection.execute("BEGIN IMMEDIATE")
        version = _version(connection)  # another process may have been faster
        if version < VERSION:
            for statement in _MIGRATIONS[version].split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {version + 1}")
        connection.execute("COMMIT")
        version = _version(connection)


def _is_read_only(folder: str) -> bool:
    """True for a folder in a file system that nobody can write to now."""
    try:
        return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def _version(connection: sqlite3.Connection) -> int:
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return found
