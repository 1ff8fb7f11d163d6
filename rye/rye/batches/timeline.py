"""When calls ended, and how long they took, in a bounded number of counts."""

from __future__ import annotations

import math

_WIDTH_MS = 100
_MAX_COUNTS = 600


class Counts:
    """How many calls, and how many of them did not succeed."""

    __slots__ = ("bad", "total")

    def __init__(self, total: int = 0, bad: int = 0) -> None:
        self.total = total
        self.bad = bad

    def add(self, total: int, bad: int) -> None:
        """Count some more."""
        self.total += total
        self.bad += bad


class Timeline:
    """Calls by the time of their ends. The longer it becomes, the coarser."""

    def __init__(self) -> None:
        self.width_ms = _WIDTH_MS
        self.counts: dict[int, Counts] = {}
        """By the time in units of ``width_ms`` since 1970."""

    def add(self, milliseconds: float, *, good: bool) -> None:
        """Count a call that ended at this time."""
        key = int(milliseconds // self.width_ms)
        counts = self.counts.get(key)
        if counts is None:
            counts = self.counts[key] = Counts()
        counts.total += 1
        counts.bad += not good
        while len(self.counts) > _MAX_COUNTS:
            self._widen()

    def _widen(self) -> None:
        before, self.counts = self.counts, {}
        self.width_ms *= 2
        for key, counts in before.items():
            self.counts.setdefault(key // 2, Counts()).add(counts.total, counts.bad)


class Durations:
    """Calls by the order of magnitude of their durations, two steps for each factor of ten."""

    STEPS = 2

    def __init__(self) -> None:
        self.counts: dict[int, Counts] = {}
        """By the step: durations from ``limit(step)`` up to ``limit(step + 1)``."""

    def add(self, milliseconds: float, *, good: bool) -> None:
        """Count a call."""
        step = math.floor(math.log10(max(milliseconds, 0.1)) * self.STEPS)
        self.counts.setdefault(step, Counts()).add(1, int(not good))

    def limit(self, step: int) -> float:
        """The shortest duration of a step, in milliseconds."""
        return float(10 ** (step / self.STEPS))
