"""What is tried, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one run of a scenario found."""

    tried: int
    lost: tuple[str, ...] = ()
    """A sentence for each thing that was lost, swapped, left behind or not told."""
    note: str = ""
    """A figure that is worth a place in the table."""


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Something that goes wrong, as often as asked for."""

    name: str
    what: str
    run: Callable[[int, Path], Outcome]
    """Takes how often, and an empty folder; raises :class:`CannotBeTriedError`."""
    quick: int
    long: int


class CannotBeTriedError(Exception):
    """This machine lacks what the scenario needs; the text says what."""
