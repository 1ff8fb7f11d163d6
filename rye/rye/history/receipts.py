"""The log of receipts: each entry names the digest of the one before it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence

from rye.context import Context
from rye.history.envelope import digest_of, sealed
from rye.history.statement import statement_of
from rye.history.store import History
from rye.trust.signer import Signer
from rye.trust.store import TrustStore

_BATCH = 200


def user_signer(context: Context) -> Signer:
    """Return the user's own key. Raises ``KeyStoreError``."""
    return Signer.of_user(TrustStore(context, spaces=()).key_folder)


def receipt_of(history: History, run_id: str, signer: Signer) -> str:
    """Return the receipt of a run; it is made and added to the log if there is none."""
    issue(history, [run_id], signer)
    return _known(history.connection, run_id) or ""


def known_receipt(history: History, run_id: str) -> str | None:
    """Return the receipt of a run, ``None`` if none was made."""
    return _known(history.connection, run_id)


def issue(history: History, run_ids: Sequence[str], signer: Signer) -> int:
    """Add receipts of these runs to the log, without those that have one; return their number.

    Raises :class:`ReceiptError` for a run that was imported, and ``RunNotFoundError``.
    """
    made = 0
    connection = history.connection
    for start in range(0, len(run_ids), _BATCH):
        # The transaction orders the entries of several processes.
        connection.execute("BEGIN IMMEDIATE")
        try:
            position, previous = _head(connection)
            for run_id in run_ids[start : start + _BATCH]:
                if _known(connection, run_id) is not None:
                    continue
                position += 1
                record = history.record(run_id)
                line = sealed(statement_of(record, position, previous), signer)
                previous = digest_of(line)
                connection.execute(
                    "INSERT INTO receipts VALUES (?, ?, ?, ?)", [position, run_id, previous, line]
                )
                made += 1
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    return made


def issue_all(history: History, signer: Signer) -> int:
    """Add receipts of all runs of this machine that have none, the oldest first."""
    rows = history.connection.execute(
        "SELECT run_id FROM details WHERE run_id NOT IN (SELECT run_id FROM receipts) "
        "AND json_extract(record, '$.imported') IS NULL ORDER BY run_id"
    )
    return issue(history, [row[0] for row in rows], signer)


def log_lines(history: History) -> Iterator[str]:
    """Yield all receipts in the order of the log."""
    for row in history.connection.execute("SELECT envelope FROM receipts ORDER BY position"):
        yield row[0]


def _head(connection: sqlite3.Connection) -> tuple[int, str | None]:
    row = connection.execute(
        "SELECT position, sha256 FROM receipts ORDER BY position DESC LIMIT 1"
    ).fetchone()
    return (0, None) if row is None else (row[0], row[1])


def _known(connection: sqlite3.Connection, run_id: str) -> str | None:
    row = connection.execute(
        "SELECT envelope FROM receipts WHERE run_id = ? ORDER BY position LIMIT 1", [run_id]
    ).fetchone()
    return None if row is None else str(row[0])
