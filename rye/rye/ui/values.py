"""Times, durations, sizes and outcomes as people read them."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from urllib.parse import quote

from markupsafe import Markup

from rye.live.seen import Part
from rye.recording.record import OK, REFUSED

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))
_LABELS = {"ok": "ok", "failed": "failed", "timeout": "timed out", "error": "error"}


def moment(value: int | float | str | None) -> Markup:
    """Return a time of day in the zone of this machine; the element has the exact time."""
    when = _datetime(value)
    if when is None:
        return Markup("")
    exact = when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    shown = when.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    return Markup('<time datetime="{0}" title="{0}">{1}</time>').format(exact, shown)


def ago(value: int | float | str | None, now: float | None = None) -> Markup:
    """Return how long ago something was; the element has the exact time."""
    when = _datetime(value)
    if when is None:
        return Markup("")
    seconds = (time.time() if now is None else now) - when.timestamp()
    exact = when.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    unit = next(((n, name) for n, name in _UNITS if seconds >= n), None)
    text = "just now" if unit is None else f"{int(seconds // unit[0])} {unit[1]} ago"
    return Markup('<time datetime="{0}" title="{0}">{1}</time>').format(exact, text)


def duration(milliseconds: float | None) -> str:
    """Return a duration: ``0.4 ms``, ``12 ms``, ``3.4 s``, ``2 min 5 s``."""
    if milliseconds is None:
        return ""
    if milliseconds < 1000:
        return f"{milliseconds:.1f} ms" if milliseconds < 10 else f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def size(count: int | None) -> str:
    """Return a number of bytes: ``512 B``, ``1.5 kB``, ``12 MB``."""
    if count is None:
        return ""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000 or unit == "GB":
            break
        amount /= 1000
    return f"{amount:.0f} {unit}" if unit == "B" or amount >= 10 else f"{amount:.1f} {unit}"


def short(text: str | None, length: int = 12) -> str:
    """Return the beginning of a hash or an id."""
    return (text or "")[:length]


def capitalize_first(text: str) -> str:
    """Return the text with a capital letter first, and the rest as it is."""
    return text[:1].upper() + text[1:]


def outcome(name: str | None) -> Markup:
    """Return the outcome of a run as a word in its colour."""
    if not name:
        return Markup("")
    kind = "good" if name == OK else "warn" if name in (REFUSED, "cancelled") else "bad"
    return Markup('<span class="badge {}">{}</span>').format(kind, _LABELS.get(name, name))


def address(text: str) -> str:
    """Return an id as a part of an address; slashes stay."""
    return quote(text, safe="/", errors="surrogatepass")


def part(done: Part | None) -> str:
    """Return how far a call has come: ``3 of 10 (30%), copying``."""
    if done is None:
        return ""
    amount = f"{done.progress:g}"
    if done.total:
        share = min(1.0, max(0.0, done.progress / done.total))
        amount = f"{done.progress:g} of {done.total:g} ({share:.0%})"
    return f"{amount}, {done.message}" if done.message else amount


def _datetime(value: int | float | str | None) -> datetime | None:
    if value is None or value == "":
        return None
    try:
        if isinstance(value, str):
            found = datetime.fromisoformat(value)
            return found if found.tzinfo else found.replace(tzinfo=UTC)
        return datetime.fromtimestamp(value / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
