"""Paragraphs and lists of fields, as wide as the terminal and no wider than is good to read."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence

from rye.cli.output.printing import plain, style

_WIDEST = 100
_NARROWEST = 40


def width() -> int:
    """Of the terminal, within bounds; the widest where there is none."""
    try:
        return min(max(os.get_terminal_size(1).columns, _NARROWEST), _WIDEST)
    except OSError:
        return _WIDEST


def paragraph(text: str, indent: str = "") -> str:
    """Foreign text made harmless and wrapped; its own paragraphs are kept."""
    parts = [" ".join(part.split()) for part in plain(text).split("\n\n")]
    return "\n\n".join([_wrapped(part, indent, indent) for part in parts if part])


def field_list(fields: Sequence[tuple[str, str]], indent: str = "  ") -> str:
    """Names and what belongs to each, in two columns; foreign text is made harmless."""
    shown = [(plain(name), " ".join(plain(text).split())) for name, text in fields]
    column = max([len(name) for name, _ in shown], default=0)
    lines = []
    for name, text in shown:
        start = f"{indent}{name.ljust(column)}  "
        wrapped = _wrapped(text, start, " " * len(start)) or start
        lines.append(f"{indent}{style(name, dim=True)}{wrapped[len(indent) + len(name) :]}")
    return "\n".join(lines)


def _wrapped(text: str, first: str, rest: str) -> str:
    # A path or a command that is cut in two is of no use.
    return textwrap.fill(
        text,
        max(width(), len(rest) + 20),
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
