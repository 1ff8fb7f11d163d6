"""A table of measurements, each beside what it has to be."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One measurement: a ratio or an amount, and the limit that it has to keep."""

    what: str
    value: float
    limit: float
    at_least: bool = False
    unit: str = ""
    detail: str = ""

    @property
    def kept(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def __str__(self) -> str:
        sign = "≥" if self.at_least else "≤"
        verdict = "ok" if self.kept else "MISSED"
        value = f"{self.value:.2f}{self.unit}"
        limit = f"{sign} {self.limit:g}{self.unit}"
        return f"{self.what:44} {value:>10}  {limit:9} {verdict:7} {self.detail}".rstrip()


def finish(rows: Sequence[Row]) -> int:
    """Prints the rows; gives 1 if a limit was missed."""
    for row in rows:
        print(row)
    return 0 if all(row.kept for row in rows) else 1


def alternating_medians(rounds: int, *calls: Callable[[], object]) -> list[float]:
    """The median duration of each call in microseconds; they take turns, after a warm-up."""
    samples: list[list[float]] = [[] for _ in calls]
    for turn in range(rounds + rounds // 10):
        for taken, call in zip(samples, calls, strict=True):
            started = time.perf_counter_ns()
            call()
            if turn >= rounds // 10:
                taken.append((time.perf_counter_ns() - started) / 1000)
    return [statistics.median(taken) for taken in samples]
