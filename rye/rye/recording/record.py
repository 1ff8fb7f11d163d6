"""Who made a call, and the fields of its record as a line of JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping

from lilux.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CLI, MCP, PYTHON, BATCH, UI = "cli", "mcp", "python", "batch", "ui"

OK, FAILED, TIMEOUT, REFUSED, CANCELLED, ERROR = (
    "ok",
    "failed",
    "timeout",
    "refused",
    "cancelled",
    "error",
)
"""The outcomes. ``refused`` means that nothing ran; ``error`` that Rye or its helper failed."""


class Caller(Record, frozen=True, kw_only=True):
    """Who makes a call."""

    kind: str = PYTHON
    """``cli``, ``mcp``, ``python``, ``batch`` or ``ui``."""
    client: str = ""
    """The name and version that an MCP client gives itself."""
    token: str = ""
    """The name of the token that a client showed; the token itself is never recorded."""
    program: str = ""
    """The name of the program that calls."""
    traceparent: str = ""
    """The W3C trace context of the request."""
    replays: str = ""
    """The id of the run that this call repeats."""
    shown: str = ""
    """The digest of the description and the schema that the client was shown."""


def this_program() -> Caller:
    """The caller for a program that does not say who it is."""
    import os
    import sys

    argv = getattr(sys, "orig_argv", None) or sys.argv or [""]
    name = sys.argv[0] if sys.argv and sys.argv[0] not in ("", "-c", "-m") else argv[0]
    return Caller(kind=PYTHON, program=os.path.basename(name))  # noqa: PTH119 - a text


_second = (-1, "")
"""The last second that was formatted, since many calls begin in the same one."""


def utc_text(milliseconds: int) -> str:
    """Return a time as ``2026-01-31T12:00:00.123Z``."""
    global _second  # noqa: PLW0603 - a pair, replaced as a whole
    seconds, rest = divmod(milliseconds, 1000)
    known, text = _second
    if known != seconds:
        text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
        _second = (seconds, text)
    return f"{text}.{rest:03d}Z"


def trace_id(traceparent: str) -> str:
    """Return the trace id of a ``traceparent``; empty if it is malformed."""
    parts = traceparent.split("-")
    if len(parts) < 4 or len(parts[1]) != 32 or parts[1] == "0" * 32:
        return ""
    return parts[1] if all(digit in "0123456789abcdef" for digit in parts[1]) else ""


def fragment_of(fields: Mapping[str, Any]) -> str:
    """Return fields as JSON without braces, to be a part of a line."""
    return _encoder.encode(fields)[1:-1]


def line_of(*fragments: str) -> bytes:
    """Return a record as one line of ASCII, without the newline."""
    return f"{{{','.join(fragments)}}}".encode("ascii")


def _as_json(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else {"type": type(value).__name__}


_encoder = json.JSONEncoder(separators=(",", ":"), default=_as_json, check_circular=False)
