"""Runs as a small drawing: a bar for each, its height the duration, its colour the outcome."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from rye.history.of_tools import ToolRun
from rye.recording.record import OK
from rye.ui.values import duration

_HEIGHT = 48
_STEP = 10
_BAR = 7
_LOWEST = 3


class Bar(NamedTuple):
    """A bar of the drawing, in pixels."""

    x: int
    y: float
    height: float
    good: bool
    run_id: str
    label: str


class Sparkline(NamedTuple):
    """The drawing."""

    width: int
    height: int
    bar_width: int
    bars: tuple[Bar, ...]
    summary: str
    """The drawing in words."""


def sparkline(runs: Sequence[ToolRun]) -> Sparkline | None:
    """Draw runs, of which the newest is first; it is on the right. ``None`` without runs."""
    if not runs:
        return None
    oldest_first = list(reversed(runs))
    heights = _heights([one.duration_ms for one in oldest_first])
    bars = [
        Bar(
            x=at * _STEP + 1,
            y=round(_HEIGHT - height, 1),
            height=round(height, 1),
            good=one.outcome == OK,
            run_id=one.id,
            label=f"{one.started_at}: {one.outcome}, {duration(one.duration_ms)}",
        )
        for at, (one, height) in enumerate(zip(oldest_first, heights, strict=True))
    ]
    return Sparkline(len(bars) * _STEP + 1, _HEIGHT, _BAR, tuple(bars), _summary(runs))


def _heights(durations: list[float]) -> list[float]:
    """The heights of the bars: logarithmic, so that a slow run does not hide the others."""
    levels = [math.log10(max(one, 0.1)) for one in durations]
    low, high = min(levels) - 0.3, max(*levels, min(levels) + 0.7)
    return [_LOWEST + (_HEIGHT - _LOWEST) * (one - low) / (high - low) for one in levels]


def _summary(runs: Sequence[ToolRun]) -> str:
    failed = sum(one.outcome != OK for one in runs)
    durations = [one.duration_ms for one in runs]
    count = "The last run" if len(runs) == 1 else f"The last {len(runs)} runs"
    outcome = f"{failed} did not succeed" if failed else "all succeeded"
    if len(runs) == 1:
        return f"{count}: {runs[0].outcome}, {duration(durations[0])}"
    middle, longest = statistics.median(durations), max(durations)
    return f"{count}: {outcome}; median {duration(middle)}, longest {duration(longest)}"
