"""Moments and durations as people write them: ``1d``, ``12h``, ``30m``, ``2026-01-31``."""

from __future__ import annotations

import re
import time
from datetime import datetime

from rye.errors import HistoryError

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 24 * 3600, "w": 7 * 24 * 3600}
_MAX_SECONDS = 10**10


def milliseconds_since(text: str, now: float | None = None) -> int:
    """Return a moment in milliseconds since 1970: so long ago, or a local date or time.

    Raises :class:`HistoryError`.
    """
    seconds = _seconds(text)
    if seconds is not None:
        return int(((time.time() if now is None else now) - seconds) * 1000)
    try:
        return int(datetime.fromisoformat(text).astimezone().timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        raise HistoryError(
            f"{text!r} is not a moment", hint="write 30m, 12h, 1d or a date such as 2026-01-31"
        ) from None


def duration_milliseconds(text: str) -> int:
    """Return a duration such as ``30d``. Raises :class:`HistoryError`."""
    seconds = _seconds(text)
    if seconds is None:
        raise HistoryError(f"{text!r} is not a duration", hint="write 30m, 12h or 30d")
    return int(seconds * 1000)


def _seconds(text: str) -> float | None:
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,3})?)([smhdw])", text.strip())
    if match is None:
        return None
    return min(float(match[1]) * _UNITS[match[2]], _MAX_SECONDS)
