"""What an HTTP call gives back."""

from dataclasses import dataclass
from typing import Any


@dataclass
class HttpResult:
    """The outcome of one call, with every retry and redirect in it.

    ``status_code`` is 0 if there was no whole response: broken configuration, no connection, a
    time limit. The fields from ``attempts`` on are additions to the specification.
    """

    success: bool
    """True if 200 <= status < 400 and the body, or the stream, arrived as asked for."""
    status_code: int
    body: Any
    """Parsed JSON or raw text; in stream mode what a ``ReturnSink`` held, else ``None``."""
    headers: dict[str, str]
    """Names in lower case; a header sent several times is joined by commas."""
    duration_ms: int
    error: str | None = None
    """``None`` on success, ``HTTP {code}: {reason}`` for a status, else what went wrong."""
    stream_events_count: int | None = None
    """Events dispatched to the sinks; ``None`` outside stream mode."""
    stream_destinations: list[str] | None = None
    """Class names of the sinks; ``None`` outside stream mode."""
    attempts: int = 1
    """Requests that were begun; redirects do not count. 0 if the configuration was refused."""
    truncated: bool = False
    """The body, or what a ``ReturnSink`` held, is only the head of what the server sent."""
    sink_errors: list[str] | None = None
    """One line for each sink that failed or dropped events, beginning with its class name."""
