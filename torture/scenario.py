"""A scenario and its outcome."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The outcome of one run of a scenario."""

    tried: int
    failures: tuple[str, ...] = ()
    """A sentence for each answer that was lost or swapped, each leftover and each wrong error."""
    note: str = ""
    """A figure to show in the table."""


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A fault or a load that can be repeated."""

    name: str
    what: str
    run: Callable[[int, Path], Outcome]
    """Takes the number of repetitions and an empty folder. May raise
    :class:`ScenarioSkippedError`."""
    quick: int
    long: int


class ScenarioSkippedError(Exception):
    """This machine lacks something that the scenario needs; the message says what."""
