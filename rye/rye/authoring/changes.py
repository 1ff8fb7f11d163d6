"""The lines of a file that changed since it was signed."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from rye.trust.signature import split_signature

MAX_LINES = 20


def changes(old: str, new: str, comment: str) -> Iterator[str]:
    """The lines that differ, as in a unified diff without its head; at most ``MAX_LINES``."""
    before, after = [_lines(text, comment) for text in (old, new)]
    lines = list(difflib.unified_diff(before, after, n=0, lineterm=""))[2:]
    shown = [line for line in lines if not line.startswith("@@")]
    yield from shown[:MAX_LINES]
    if shown[MAX_LINES:]:
        yield f"… and {len(shown) - MAX_LINES} more lines"


def _lines(text: str, comment: str) -> list[str]:
    return split_signature(text.encode(), comment).signed_bytes.decode().splitlines()
