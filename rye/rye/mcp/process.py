"""The server process: required packages, logging to stderr, and stop signals."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import time
import traceback
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from rye.errors import RyeError

_MINUTE = 60
_MAX_CONDITIONS = 1000
_STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def require_packages(*packages: str, needed_by: str = "the MCP server", extra: str = "mcp") -> None:
    """Raise ``RyeError`` if a package that only a server needs is missing. Imports nothing."""
    for package in packages:
        if find_spec(package) is None:
            raise RyeError(
                f"{needed_by} needs the package {package!r}, which is not installed",
                hint=f"run `pip install 'rye[{extra}]'`",
            )


def log_to_stderr(command: str = "rye mcp") -> None:
    """Log warnings and errors to stderr, one line each, and one a minute for each condition."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(OncePerMinute())
    handler.setFormatter(_SafeFormatter(f"{command}: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)


class OncePerMinute(logging.Filter):
    """Passes one record a minute for each condition, so that no client can fill the log.

    The condition is the message if Rye logs it, and the line of code if a library does: its
    messages may contain what a client sent.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._known: dict[object, tuple[float, int]] = {}
        """When each condition was last logged, and how many records were left out since then."""

    def filter(self, record: logging.LogRecord) -> bool:
        own = record.name.partition(".")[0] == "rye"
        condition = record.getMessage() if own else (record.pathname, record.lineno)
        now = self._clock()
        logged, left_out = self._known.get(condition, (None, 0))
        if logged is not None and now - logged < _MINUTE:
            self._known[condition] = (logged, left_out + 1)
            return False
        if left_out:
            record.msg = f"{record.getMessage()} (and {left_out} more like it)"
            record.args = None
        if len(self._known) >= _MAX_CONDITIONS:
            self._known.clear()
        self._known[condition] = (now, 0)
        return True


class _SafeFormatter(logging.Formatter):
    """Logs no values and no terminal control characters.

    An exception is logged as its type and location: its message may repeat what a client sent.
    File and tool names come from outside, so unprintable characters in them are escaped.
    """

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        return "".join([one if one.isprintable() else ascii(one)[1:-1] for one in text])

    def formatException(  # noqa: N802 - the library's name
        self,
        ei: tuple[type[BaseException], BaseException, TracebackType | None]
        | tuple[None, None, None],
    ) -> str:
        kind, _, trace = ei
        if kind is None:
            return ""
        frames = traceback.extract_tb(trace)
        location = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
        return f"{kind.__name__}{location}"


class StopSignals:
    """A context manager in which a stop signal calls ``stop`` in the event loop.

    ``received`` is the first signal that arrived, if any.
    """

    def __init__(self, stop: Callable[[], object]) -> None:
        self._stop = stop
        # Signals that `nohup` or a shell ignores for this process stay ignored.
        self._handled = [
            one for one in _STOP_SIGNALS if signal.getsignal(one) is not signal.SIG_IGN
        ]
        self.received: signal.Signals | None = None

    def __enter__(self) -> Self:
        loop = asyncio.get_running_loop()
        for number in self._handled:
            loop.add_signal_handler(number, self._on_signal, number)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        loop = asyncio.get_running_loop()
        for number in self._handled:
            loop.remove_signal_handler(number)

    def _on_signal(self, number: signal.Signals) -> None:
        self.received = self.received or number
        self._stop()
