"""What a benchmark returns, and how durations are measured.

A benchmark is a module of this package that is named in ``bench/registry.py``. The first line of
its docstring says what it measures, and its function ``measure`` returns a :class:`Report`::

    def measure() -> Report:
        ours, theirs = alternating_medians(400, call_ours, call_theirs)
        return Report([Row("ours ÷ theirs", ours / theirs, limit=1.2)])

A peer that is not installed goes into ``Report.missing``; it is no failure.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Row:
    """One measurement: a ratio or an amount, and its limit. A floor of the machine has none."""

    what: str
    value: float
    limit: float | None = None
    at_least: bool = False
    unit: str = ""
    detail: str = ""
    aim: float | None = None

    @property
    def within_limit(self) -> bool:
        if self.limit is None:
            return True
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    @property
    def shown_value(self) -> str:
        return f"{self.value:.2f}{self.unit}"

    @property
    def shown_limit(self) -> str:
        return self._bound(self.limit)

    @property
    def shown_aim(self) -> str:
        return self._bound(self.aim)

    def _bound(self, bound: float | None) -> str:
        if bound is None:
            return ""
        return f"{'≥' if self.at_least else '≤'} {bound:g}{self.unit}"

    def __str__(self) -> str:
        verdict = "" if self.limit is None else "ok" if self.within_limit else "FAILED"
        figures = f"{self.shown_value:>10}  {self.shown_limit:9} {verdict:7}"
        return f"{self.what:44} {figures} {self.detail}".rstrip()


@dataclass(frozen=True)
class Samples:
    """Figures of one kind that a picture shows side by side.

    A value is a figure for a bar, or a mapping of sizes to figures for a line.
    """

    unit: str
    values: Mapping[str, float | Mapping[int, float]]


@dataclass(frozen=True)
class Report:
    """What a benchmark found."""

    rows: Sequence[Row]
    samples: Mapping[str, Samples] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    """Each peer that could not be measured here, with the reason."""
    notes: Sequence[str] = ()
    peers: Mapping[str, str] = field(default_factory=dict)
    """The version of each peer that was measured."""


def alternating_medians(rounds: int, *calls: Callable[[], object]) -> list[float]:
    """Return the median duration of each call in microseconds; calls alternate, after a warm-up."""
    samples: list[list[float]] = [[] for _ in calls]
    for turn in range(rounds + rounds // 10):
        for taken, call in zip(samples, calls, strict=True):
            started = time.perf_counter_ns()
            call()
            if turn >= rounds // 10:
                taken.append((time.perf_counter_ns() - started) / 1000)
    return [statistics.median(taken) for taken in samples]


async def alternating_async(rounds: int, *calls: Callable[[], Awaitable[object]]) -> list[float]:
    """Do the same for coroutines in the running event loop."""
    samples: list[list[float]] = [[] for _ in calls]
    for turn in range(rounds + rounds // 10):
        for taken, call in zip(samples, calls, strict=True):
            started = time.perf_counter_ns()
            await call()
            if turn >= rounds // 10:
                taken.append((time.perf_counter_ns() - started) / 1000)
    return [statistics.median(taken) for taken in samples]
