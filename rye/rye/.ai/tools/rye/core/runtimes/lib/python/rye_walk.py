# rye:signed:20261118T125305Z:99a79fe6975fcd5126780a19097ba7f4313323c75cabec1f9d5ea42c899add4d:WsXIRa8ScIY0v_g_b148YlvzvT_srxHO3TixKo1oGDgWJaOV5YKMflQNF-rbSl0sQbkk89_w503CE3lRj5P8DA==:0cdadc7a57fefd2c
"""Bounded directory walks, and glob patterns for paths.

Symbolic links are listed but not followed, so that a walk stays inside its folder and ends.
"""

from __future__ import annotations

import os
import re
from typing import Iterator, NamedTuple  # noqa: UP035 - the project may use an old Python

from rye_workspace import Refused

__version__ = "1.0.0"
__tool_type__ = "library"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "runtimes"
__tool_description__ = "Directory walks for tools on python_runtime; not a tool itself"

MAX_ENTRIES = 200_000
IGNORED_FOLDERS = frozenset(
    {
        ".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv", ".tox",
        ".mypy_cache", ".pytest_cache", ".ruff_cache",
    }
)  # fmt: skip


class Entry(NamedTuple):
    """A directory entry."""

    path: str
    """Relative to the root of the walk, with slashes."""
    real: str
    kind: str
    """``file``, ``folder``, ``link`` or ``other``."""
    depth: int


class Walk:
    """One walk; ``complete`` is false if it stopped after ``MAX_ENTRIES``."""

    def __init__(self, root: str, *, hidden: bool, ignored: bool, depth: int = 1000) -> None:
        self.complete = True
        self.unreadable = 0
        self._root = root
        self._hidden = hidden
        self._ignored = ignored
        self._depth = depth
        self._seen = 0

    def entries(self) -> Iterator[Entry]:
        """Yield every entry, sorted by name; a folder comes before its entries."""
        yield from self._below(self._root, "", 1)

    def _below(self, folder: str, prefix: str, depth: int) -> Iterator[Entry]:
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError:
            self.unreadable += 1
            return
        for entry in entries:
            if entry.name.startswith(".") and not self._hidden:
                continue
            self._seen += 1
            if self._seen > MAX_ENTRIES:
                self.complete = False
                return
            kind = _kind(entry)
            if kind == "folder" and not self._ignored and entry.name in IGNORED_FOLDERS:
                continue
            path = prefix + entry.name
            yield Entry(path, entry.path, kind, depth)
            if kind == "folder" and depth < self._depth:
                yield from self._below(entry.path, path + "/", depth + 1)


def _kind(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


def pattern(glob: str) -> re.Pattern[str]:
    """Compile a glob pattern for relative paths.

    ``*`` and ``?`` match within a name, ``**`` across folders; ``[a-z]`` and ``{py,md}`` are
    alternatives. A pattern without a slash matches the name in any folder.
    """
    if "/" not in glob:
        glob = "**/" + glob
    choice = "{" in glob and glob.count("{") == glob.count("}")
    expression = _GLOB.sub(lambda found: _translated(found, choice), glob.removeprefix("./"))
    try:
        return re.compile(expression, re.DOTALL)
    except re.error:
        raise Refused(f"{glob!r} is not a valid glob pattern; write for example **/*.py") from None


_GLOB = re.compile(r"\*\*/|\*\*|\[[!^]?\]?[^\]/]*\]|.", re.DOTALL)
_SIGNS = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_CHOICE = {"{": "(?:", ",": "|", "}": ")"}


def _translated(found: re.Match[str], choice: bool) -> str:
    text = found.group()
    if text in _SIGNS:
        return _SIGNS[text]
    if choice and text in _CHOICE:
        return _CHOICE[text]
    if len(text) > 1:
        body = re.sub(r"([\\\[\]&~|])", r"\\\1", text[1:-1])
        return f"[^/{body[1:]}]" if body[0] in "!^" else f"[{body}]"
    return re.escape(text)
