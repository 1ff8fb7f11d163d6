"""A bar for what takes more than a second, for a person who watches."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TypeVar

import click

Element = TypeVar("Element")

# Fewer are done before a bar could be read.
WORTH_A_BAR = 200


def watched(elements: Sequence[Element], label: str) -> Iterator[Element]:
    """The elements, with a bar on stderr if that is a terminal and there are many."""
    hidden = len(elements) < WORTH_A_BAR or not sys.stderr.isatty()
    with click.progressbar(elements, label=label, hidden=hidden, file=sys.stderr) as bar:
        yield from bar
