"""The progress of a batch, and its summary."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rye.cli.output.printing import echo, is_terminal, plain, print_json

if TYPE_CHECKING:
    from rye.batches.driver import Summary

_SECONDS_BETWEEN = {True: 1.0, False: 0.2}
_CLEAR_LINE = "\r\x1b[2K"
_STOPPING = "calls under way may finish for 10 s; press Ctrl-C to end them now"
_CHANGED = "the tool has changed; the batch goes on with the version that it began with"
_SHOWN = 3
_BAR = 24
_MAX_ID = 80


class Progress:
    """A line on a terminal, or lines of JSON."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._terminal = not as_json and is_terminal(sys.stderr)
        self._next = 0.0
        self._told: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._terminal:
            sys.stderr.write(_CLEAR_LINE)

    def show(self, summary: Summary) -> None:
        """Show how far it has come, a few times a second."""
        if summary.changed:
            self._tell(_CHANGED)
        if summary.stopped:
            self._tell(f"{summary.stopped}; {_STOPPING}")
        now = time.monotonic()
        if now < self._next or not (self._as_json or self._terminal):
            return
        self._next = now + _SECONDS_BETWEEN[self._as_json]
        if self._as_json:
            print_json(_fields(summary), indent=None)
            return
        share = summary.done / max(summary.total, 1)
        left = "?" if summary.seconds_left is None else _duration(summary.seconds_left)
        line = (
            f"[{'#' * round(share * _BAR):<{_BAR}}] {summary.done}/{summary.total}"
            f"  {summary.rate:.0f}/s  {left} left  {summary.failures} failed"
        )
        sys.stderr.write(f"{_CLEAR_LINE}{line}")
        sys.stderr.flush()

    def _tell(self, text: str) -> None:
        """Print it once, at once."""
        if text in self._told:
            return
        self._told.add(text)
        self._next = 0.0
        if not self._as_json:
            sys.stderr.write(f"{_CLEAR_LINE if self._terminal else ''}rye: {text}\n")
            sys.stderr.flush()


def print_summary(summary: Summary, *, as_json: bool) -> None:
    """Print what happened."""
    if as_json:
        slowest = [{"id": one, "ms": ms} for ms, one in reversed(summary.slowest)]
        errors = [
            {"error": error, "times": times}
            for error, times in summary.errors.most_common(len(slowest) or 1)
        ]
        more = {"summary": True, "slowest": slowest, "errors": errors, "notes": summary.notes}
        print_json({**_fields(summary), **more}, indent=None)
        return
    counts = ", ".join(f"{count} {one}" for one, count in sorted(summary.outcomes.items()))
    echo(f"{summary.done} of {summary.total} calls have a result ({counts or 'nothing ran'})")
    if summary.slowest:
        slow = [
            f"{_short(one)} {ms / 1000:.2f} s" for ms, one in reversed(summary.slowest[-_SHOWN:])
        ]
        echo(f"slowest: {', '.join(slow)}")
    for error, count in summary.errors.most_common(_SHOWN):
        echo(f"{count} {'time' if count == 1 else 'times'}: {plain(error)}")


def _short(own: str) -> str:
    """An id on one line."""
    text = plain(" ".join(own.split()))
    return text if len(text) <= _MAX_ID else f"{text[:_MAX_ID]}…"


def _fields(summary: Summary) -> dict[str, Any]:
    return {
        "done": summary.done,
        "total": summary.total,
        "rate": round(summary.rate, 1),
        "seconds_left": None if (left := summary.seconds_left) is None else round(left, 1),
        "failures": summary.failures,
        "outcomes": dict(summary.outcomes),
        "stopped": summary.stopped,
        "changed": summary.changed,
    }


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
