"""What the server says on stderr: what happened, never with what values."""

from __future__ import annotations

import logging
import sys
import traceback
from pathlib import Path
from types import TracebackType


class _Plain(logging.Formatter):
    """An exception is told by its type and place: its text may repeat what was sent.

    Names of files and tools are foreign text, and must not act on a terminal.
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
        place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
        return f"{kind.__name__}{place}"


def log_to_stderr() -> None:
    """Warnings and worse, one line each."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Plain("rye mcp: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
