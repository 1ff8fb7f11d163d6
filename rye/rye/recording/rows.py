"""From a record, as the spool and exports have it, to the rows of the database, and back."""

from __future__ import annotations

import json

from rye.errors import HistoryError
from rye.recording.run_ids import is_run_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable
    from typing import Any

_INSERT_RUN = (
    "INSERT OR IGNORE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_INSERT_DETAILS = "INSERT OR IGNORE INTO details VALUES (?, ?)"
_INSERT_OUTPUT = "INSERT OR IGNORE INTO outputs VALUES (?, ?, ?)"


def insert(connection: sqlite3.Connection, records: Iterable[dict[str, Any]]) -> int:
    """Insert records, without those that are already there; return the number of new ones.

    Call it in a transaction. Raises :class:`HistoryError` for something that is not a record.
    """
    runs, details, outputs = [], [], []
    for record in records:
        runs.append(_run(record))
        for stream, described in (record.get("output") or {}).items():
            content = _take_content(described)
            if content is not None:
                outputs.append((record["id"], stream, content))
        details.append((record["id"], json.dumps(record, separators=(",", ":"))))
    new = connection.executemany(_INSERT_RUN, runs).rowcount
    connection.executemany(_INSERT_DETAILS, details)
    if outputs:
        connection.executemany(_INSERT_OUTPUT, outputs)
    return new


def _run(record: dict[str, Any]) -> tuple[Any, ...]:
    try:
        if not is_run_id(record["id"]):
            raise HistoryError("not a record: the id is not one of a run")
        get = record.get
        output = get("output") or {}
        signers = get("signers")
        return (
            record["id"],
            record["time"],
            record["by"],
            get("client"),
            get("token"),
            get("program"),
            get("trace_id"),
            record["project"],
            record["item"],
            get("version"),
            get("closure"),
            signers[0] if signers else None,
            record["outcome"],
            get("exit"),
            get("signal"),
            get("error_type"),
            float(record["ms"]["total"]),
            (output.get("stdout") or output.get("body") or {}).get("bytes"),
            (output.get("stderr") or {}).get("bytes"),
            (get("parameters") or {}).get("sha256"),
        )
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise HistoryError(f"not a record: {type(error).__name__}: {error}") from None


def _take_content(described: dict[str, Any]) -> bytes | None:
    """Remove the output itself from its description, and return it."""
    text = described.pop("text", None)
    if text is not None:
        return str(text).encode("utf-8", "surrogatepass")
    digits = described.pop("hex", None)
    return None if digits is None else bytes.fromhex(digits)


def put_content(described: dict[str, Any], content: bytes) -> None:
    """Add the output to its description, for an export."""
    try:
        described["text"] = content.decode()
    except UnicodeDecodeError:
        described["hex"] = content.hex()
