"""The ends of calls over time, and their durations, as bars."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from rye.batches.timeline import Counts, Durations, Timeline
from rye.ui.values import duration

_MAX_BARS = 60
_BAR, _STEP, _HEIGHT = 8, 10, 100
_LOWEST = 1.5
# A pause is left out if it is longer than both.
_PAUSE_SHARE = 0.2
_PAUSE_MS = 60_000


class ChartBar(NamedTuple):
    """A bar, and the part of it that stands for calls that did not succeed."""

    x: float
    height: float
    bad: float
    label: str


class Chart(NamedTuple):
    """A drawing; its texts are beside it, so that they stay readable on narrow screens."""

    width: int
    height: int
    bar_width: int
    bars: tuple[ChartBar, ...]
    pauses: tuple[float, ...]
    """Where time was left out."""
    top: str
    left: str
    right: str
    summary: str
    """The drawing in words."""


class _Column:
    def __init__(self, start_ms: int) -> None:
        self.start_ms = start_ms
        self.counts = Counts()


def active_ms(timeline: Timeline) -> float:
    """The time from the first end to the last one, without long pauses."""
    keys = sorted(timeline.counts)
    if not keys:
        return 0.0
    skipped = sum(gap for _, gap in _pauses(keys, timeline.width_ms))
    return float((keys[-1] - keys[0] + 1 - skipped) * timeline.width_ms)


def rate_chart(timeline: Timeline) -> Chart | None:
    """Draw how many calls ended in a second; ``None`` if no time is known."""
    keys = sorted(timeline.counts)
    if not keys:
        return None
    pauses = dict(_pauses(keys, timeline.width_ms))
    length = keys[-1] - keys[0] + 1 - sum(pauses.values())
    per = -(-length // _MAX_BARS)
    columns: dict[int, _Column] = {}
    marks: list[float] = []
    skipped = 0
    for key in keys:
        if key in pauses:
            skipped += pauses[key]
            marks.append((key - keys[0] - skipped) // per * _STEP)
        at = (key - keys[0] - skipped) // per
        column = columns.setdefault(at, _Column(key * timeline.width_ms))
        counts = timeline.counts[key]
        column.counts.add(counts.total, counts.bad)
    seconds = per * timeline.width_ms / 1000
    highest = max(columns.values(), key=lambda one: one.counts.total)
    bars = [
        _bar(at, one.counts, highest.counts.total, _rate_label(one, seconds))
        for at, one in sorted(columns.items())
    ]
    first, last = keys[0] * timeline.width_ms, (keys[-1] + 1) * timeline.width_ms
    return Chart(
        width=-(-length // per) * _STEP,
        height=_HEIGHT,
        bar_width=_BAR,
        bars=tuple(bars),
        pauses=tuple(marks),
        top=f"{_per_second(highest.counts.total / seconds)} calls a second",
        left=_day_and_clock(first),
        right=_clock(last) if _is_same_day(first, last) else _day_and_clock(last),
        summary=_rate_summary(timeline, highest, seconds, len(pauses)),
    )


def duration_chart(durations: Durations) -> Chart | None:
    """Draw how many calls took how long; ``None`` if no duration is known."""
    if not durations.counts:
        return None
    low, high = min(durations.counts), max(durations.counts)
    most = max(one.total for one in durations.counts.values())
    bars = [
        _bar(
            step - low,
            counts,
            most,
            f"{duration(durations.limit(step))} to {duration(durations.limit(step + 1))}: "
            f"{_calls(counts)}",
        )
        for step, counts in sorted(durations.counts.items())
    ]
    total = sum(one.total for one in durations.counts.values())
    usual = max(durations.counts, key=lambda step: durations.counts[step].total)
    return Chart(
        width=(high - low + 1) * _STEP,
        height=_HEIGHT,
        bar_width=_BAR,
        bars=tuple(bars),
        pauses=(),
        top=f"{most:,} calls",
        left=duration(durations.limit(low)),
        right=duration(durations.limit(high + 1)),
        summary=f"{total:,} calls; the most, {most:,}, took {duration(durations.limit(usual))} "
        f"to {duration(durations.limit(usual + 1))}. Each bar is about three times the one before",
    )


def _pauses(keys: list[int], width_ms: int) -> Iterator[tuple[int, int]]:
    """The keys that follow a long pause, and how much of it is left out."""
    least = max(_PAUSE_MS / width_ms, (keys[-1] - keys[0]) * _PAUSE_SHARE)
    for before, after in pairwise(keys):
        if after - before > least:
            yield after, after - before - 1


def _bar(at: int, counts: Counts, most: int, label: str) -> ChartBar:
    height = max(counts.total / most * _HEIGHT, _LOWEST)
    bad = max(counts.bad / most * _HEIGHT, _LOWEST) if counts.bad else 0.0
    return ChartBar(at * _STEP + 1, round(height, 1), round(bad, 1), label)


def _rate_label(column: _Column, seconds: float) -> str:
    rate = _per_second(column.counts.total / seconds)
    return f"{_clock(column.start_ms)}: {rate} a second, {_calls(column.counts)}"


def _rate_summary(timeline: Timeline, highest: _Column, seconds: float, pauses: int) -> str:
    total = sum(one.total for one in timeline.counts.values())
    took = active_ms(timeline)
    most = _per_second(highest.counts.total / seconds)
    text = (
        f"{total:,} calls in {duration(took)}: {_per_second(total / took * 1000)} a second, "
        f"at most {most} (at {_clock(highest.start_ms)})"
    )
    if pauses:
        text += f"; {pauses} long {'pause is' if pauses == 1 else 'pauses are'} left out"
    return text


def _calls(counts: Counts) -> str:
    text = f"{counts.total:,} {'call' if counts.total == 1 else 'calls'}"
    return f"{text}, {counts.bad:,} without success" if counts.bad else text


def _per_second(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"


def _clock(milliseconds: int) -> str:
    return time.strftime("%H:%M:%S", time.localtime(milliseconds / 1000))


def _day_and_clock(milliseconds: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(milliseconds / 1000))


def _is_same_day(first: int, last: int) -> bool:
    return time.localtime(first / 1000)[:3] == time.localtime(last / 1000)[:3]
