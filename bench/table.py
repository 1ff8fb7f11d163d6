"""A table of measurements and their limits."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One measurement: a ratio or an amount, and its limit."""

    what: str
    value: float
    limit: float
    at_least: bool = False
    unit: str = ""
    detail: str = ""

    @property
    def within_limit(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def __str__(self) -> str:
        sign = "≥" if self.at_least else "≤"
        verdict = "ok" if self.within_limit else "FAILED"
        value = f"{self.value:.2f}{self.unit}"
        limit = f"{sign} {self.limit:g}{self.unit}"
        return f"{self.what:44} {value:>10}  {limit:9} {verdict:7} {self.detail}".rstrip()


def finish(rows: Sequence[Row]) -> int:
    """Print the rows. Returns 1 if a limit was exceeded."""
    for row in rows:
        print(row)
    return 0 if all(row.within_limit for row in rows) else 1


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
