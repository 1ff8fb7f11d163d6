"""Bars and lines, drawn from samples as they are in the file of results."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from bench.report.svg import (
    BOLD,
    END,
    INNER,
    LABEL,
    MARGIN,
    MIDDLE,
    SMALL,
    WIDTH,
    Theme,
    figure,
    label,
    rectangle,
    width_of,
    wrapped,
)

BAR, ROW = 14, 43
OURS = ("Rye", "Lilux", "rye ", "confined by Lilux", "confined, with")
PLOT_LEFT, PLOT_HEIGHT = MARGIN + 62, 190
DASHES = ("", "7 4", "2 4")

Group = Mapping[str, Any]
"""Samples of one kind: ``unit`` and ``values``."""


def bars(groups: Mapping[str, Group], theme: Theme) -> tuple[list[str], float]:
    """Return bars below headings, and their height. Each group has a scale that begins at zero."""
    parts: list[str] = []
    y = 0.0
    for heading, group in groups.items():
        y += 10
        for line in wrapped(heading, LABEL):
            y += LABEL * 1.3
            parts.append(label(MARGIN, y, line, LABEL, theme.text, more=BOLD))
        y += 10
        shown = {
            name: f"{figure(value)} {group['unit']}" for name, value in group["values"].items()
        }
        room = INNER - 10 - max(width_of(each, LABEL) for each in shown.values())
        longest = max(group["values"].values())
        for name, value in group["values"].items():
            length = max(2, room * value / longest)
            fill = theme.ours if name.startswith(OURS) else theme.theirs
            parts.append(label(MARGIN, y + 12, name, LABEL, theme.text))
            parts.append(rectangle(MARGIN, y + 19, length, BAR, fill))
            parts.append(label(MARGIN + length + 8, y + 32, shown[name], LABEL, theme.text))
            y += ROW
    return parts, y


def lines(group: Group, sizes: str, theme: Theme) -> tuple[list[str], float]:
    """Return lines with a legend, and their height. Both axes are logarithmic."""
    values: dict[str, dict[int, float]] = {
        name: {int(size): value for size, value in series.items()}
        for name, series in group["values"].items()
    }
    parts: list[str] = []
    y = 12.0
    for number, (name, series) in enumerate(values.items()):
        y += 10
        parts.append(stroke([(MARGIN, y), (MARGIN + 34, y)], theme, number))
        parts.append(marker(MARGIN + 17, y, theme, number))
        first, *_, last = series.values()
        words = f"{name}: {figure(first)} → {figure(last)} {group['unit']}"
        parts.append(label(MARGIN + 46, y + 5, words, LABEL, theme.text))
        y += 16
    top = y + 16
    every = [value for series in values.values() for value in series.values()]
    low, high = math.floor(math.log10(min(every))), math.ceil(math.log10(max(every)))
    counts = sorted({size for series in values.values() for size in series})
    right = WIDTH - MARGIN - max(24, width_of(compact(counts[-1]), SMALL) / 2)

    def place(size: int, value: float) -> tuple[float, float]:
        along = math.log(size / counts[0]) / math.log(counts[-1] / counts[0])
        above = (math.log10(value) - low) / (high - low)
        return PLOT_LEFT + 14 + along * (right - PLOT_LEFT - 14), top + PLOT_HEIGHT * (1 - above)

    for power in range(low, high + 1):
        _, at = place(counts[0], 10.0**power)
        parts.append(rectangle(PLOT_LEFT, at - 0.5, WIDTH - MARGIN - PLOT_LEFT, 1, theme.rule))
        words = f"{10.0**power:,g} {group['unit']}"
        parts.append(label(PLOT_LEFT - 8, at + 4.5, words, SMALL, theme.faint, more=END))
    for size in counts:
        at, _ = place(size, 10.0**low)
        where = top + PLOT_HEIGHT + 20
        parts.append(label(at, where, compact(size), SMALL, theme.faint, more=MIDDLE))
    for number, series in enumerate(values.values()):
        points = [place(size, value) for size, value in series.items()]
        parts.append(stroke(points, theme, number))
        parts.extend(marker(x, at, theme, number) for x, at in points)
    y = top + PLOT_HEIGHT + 42
    parts.append(label((PLOT_LEFT + WIDTH) / 2, y, sizes, SMALL, theme.faint, more=MIDDLE))
    return parts, y + 4


def stroke(points: list[tuple[float, float]], theme: Theme, number: int) -> str:
    joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dash = f' stroke-dasharray="{DASHES[number]}"' if DASHES[number] else ""
    color = theme.series[number]
    return f'<polyline points="{joined}" fill="none" stroke="{color}" stroke-width="2.5"{dash}/>'


def marker(x: float, y: float, theme: Theme, number: int) -> str:
    """A circle, a square or a diamond: colour is not the only difference."""
    color = theme.series[number]
    if number == 0:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{color}"/>'
    turned = f' transform="rotate(45 {x:.1f} {y:.1f})"' if number == 2 else ""
    return (
        f'<rect x="{x - 4.5:.1f}" y="{y - 4.5:.1f}" width="9" height="9" fill="{color}"{turned}/>'
    )


def compact(size: int) -> str:
    """Return 1,000 as it is, and 10,000,000 as 10 M."""
    return f"{size // 1_000_000:,} M" if size >= 1_000_000 else f"{size:,}"


def described(groups: Mapping[str, Group]) -> str:
    """Return the figures as sentences, for readers who do not see the picture."""
    sentences = []
    for heading, group in groups.items():
        figures = [
            f"{name}: {from_to(value)} {group['unit']}" for name, value in group["values"].items()
        ]
        sentences.append(f"{heading}. {'; '.join(figures)}.")
    return " ".join(sentences)


def from_to(value: float | Mapping[str, float]) -> str:
    if not isinstance(value, Mapping):
        return figure(value)
    first, *_, last = value.items()
    low, high = compact(int(first[0])), compact(int(last[0]))
    return f"from {figure(first[1])} (at {low}) to {figure(last[1])} (at {high})"
