"""The result of an HTTP call."""

from dataclasses import dataclass
from typing import Any


@dataclass
class HttpResult:
    """The outcome of one call, including its retries and redirects.

    ``status_code`` is 0 without a complete response: invalid configuration, no connection, a
    timeout. The fields from ``attempts`` on are additions to the specification.
    """

    success: bool
    """True if 200 <= status < 400 and the body, or the stream, is complete."""
    status_code: int
    body: Any
    """Parsed JSON or text; in stream mode the events of a ``ReturnSink``, else ``None``."""
    headers: dict[str, str]
    """Names in lower case; repeated headers are joined by commas."""
    duration_ms: int
    error: str | None = None
    """``None`` on success, ``HTTP {code}: {reason}`` for a status, else the reason."""
    stream_events_count: int | None = None
    """Events dispatched to the sinks; ``None`` outside stream mode."""
    stream_destinations: list[str] | None = None
    """Class names of the sinks; ``None`` outside stream mode."""
    attempts: int = 1
    """Started requests, without redirects; 0 if the configuration was refused."""
    truncated: bool = False
    """True if the body, or the events of a ``ReturnSink``, are not complete."""
    sink_errors: list[str] | None = None
    """One line for each sink that failed or dropped events, starting with its class name."""
    hint: str = ""
    """What to do next; ``error`` ends in it. Empty for a status, whose reason is the server's."""
