"""Paths as people read and type them."""

from __future__ import annotations

import os

from rye.cli.output.printing import plain

# Where a path may begin in a message: else it is the end of another one.
_BEFORE = r"(?<![^\s'\"`(=,])"
# Not the folder itself, and nothing that a command would take for an option.
_AFTER = r"(?=[^\s/'\"`),;:-])"


def shown(text: object) -> str:
    """A path, or a message with paths in it: those below the working folder are relative to it,
    which is as good in a command, and foreign text is harmless. Not for what programs read."""
    return plain(near(str(text)))


def near(text: str) -> str:
    """The same for text that is made harmless elsewhere."""
    try:
        folder = os.getcwd()  # noqa: PTH109 - nothing else here needs pathlib
    except OSError:  # it was removed
        return text
    if folder == "/" or folder not in text:
        return text
    import re

    return re.sub(f"{_BEFORE}{re.escape(folder)}/{_AFTER}", "", text)
