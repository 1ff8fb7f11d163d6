"""Writes what is drawn from the results: pictures and the page about speed."""

from __future__ import annotations

from pathlib import Path

RESULTS = Path("bench/results.json")


def draw(root: Path) -> None:
    """Write every file below ``root`` that is made from its results."""
