"""What a receipt says about a run: an in-toto Statement v1 with a predicate of Rye.

The subjects are the outputs, by their digests. The predicate has everything else that a stranger
may know: no value of a parameter, no path of this machine, no name of a project.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rye import __version__
from rye.errors import ReceiptError

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:rye:run:v1"
_COPIED = (
    "item",
    "version",
    "space",
    "closure",
    "chain",
    "signers",
    "environment",
    "permissions",
    "widened",
    "enforced",
    "missing",
    "described",
    "shown",
    "trace_id",
)
_OUTCOME = ("outcome", "exit", "signal", "status_code", "error_type", "limit", "survivors")


def statement_of(record: Mapping[str, Any], position: int, previous: str | None) -> dict[str, Any]:
    """Return the statement about a recorded run, as an entry of a log.

    ``previous`` is the digest of the entry before. Raises :class:`ReceiptError` for a run of
    another machine.
    """
    if record.get("imported"):
        raise ReceiptError(
            f"run {record['id']} was imported", hint="make its receipt where it was recorded"
        )
    output = record.get("output") or {}
    subjects = [
        {"name": stream, "digest": {"sha256": described["sha256"]}}
        for stream, described in output.items()
    ]
    predicate: dict[str, Any] = {
        "run": record["id"],
        "started_at": record["time"],
        "durations_ms": record["ms"],
        "caller": {name: record[name] for name in ("by", "client", "token") if name in record},
        "parameters_sha256": record["parameters"].get("sha256"),
        **{name: record[name] for name in _COPIED if name in record},
        "outcome": {name: record[name] for name in _OUTCOME if name in record},
        "output": {
            stream: {name: one[name] for name in ("bytes", "left_out") if name in one}
            for stream, one in output.items()
        },
        "rye": __version__,
        "log": {"position": position, "previous": previous},
    }
    if interpreter := record.get("interpreter"):
        # The path says where somebody installed it, not what it is.
        predicate["interpreter"] = {
            **{name: one for name, one in interpreter.items() if name != "path"},
            "name": interpreter["path"].rpartition("/")[2],
        }
    return {
        "_type": STATEMENT,
        "subject": subjects or [{"name": "run", "digest": {"sha256": _digest_of_id(record["id"])}}],
        "predicateType": PREDICATE,
        "predicate": predicate,
    }


def predicate_of(statement: Any) -> dict[str, Any]:
    """Return the predicate of a statement. Raises :class:`ReceiptError` for any other content."""
    try:
        if statement["_type"] != STATEMENT or statement["predicateType"] != PREDICATE:
            raise ReceiptError(
                "this is not a statement about a run of rye",
                hint="pass what `rye receipt` printed, or update rye",
            )
        predicate: dict[str, Any] = statement["predicate"]
        log = predicate["log"]
        position, previous = log["position"], log["previous"]
        texts = (predicate["run"], predicate["item"], predicate["started_at"], previous or "")
        if not isinstance(position, int) or position < 1 or not statement["subject"]:
            raise TypeError
        if not all(isinstance(text, str) for text in texts):
            raise TypeError
        if not isinstance(predicate["outcome"]["outcome"], str):
            raise TypeError
    except (KeyError, TypeError):
        raise ReceiptError(
            "the statement of the receipt is malformed", hint="ask its signer for another one"
        ) from None
    return predicate


def _digest_of_id(run_id: str) -> str:
    """The digest of the id stands for a run that gave no output, since a statement needs one."""
    from lilux.sha256 import sha256

    return sha256(run_id.encode("ascii")).hexdigest()
