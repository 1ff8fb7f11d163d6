"""Which version of a tool a project or a user asks for, in the files of version managers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lilux.files.text import read_text_if_usable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def plain_versions(path: Path) -> Iterator[str]:
    """The versions in a file like ``.python-version``: words, ``#`` begins a comment."""
    for line in (read_text_if_usable(path) or "").splitlines():
        yield from line.partition("#")[0].split()


def tool_versions(path: Path, names: tuple[str, ...]) -> Iterator[str]:
    """The versions that a ``.tool-versions`` file gives to the tool, by any of its names."""
    for line in (read_text_if_usable(path) or "").splitlines():
        tool, *versions = line.partition("#")[0].split() or [""]
        if tool in names:
            yield from versions


def mise_versions(path: Path, names: tuple[str, ...]) -> Iterator[str]:
    """The versions under ``[tools]`` in a file of mise: a text, a table, or a list of them."""
    text = read_text_if_usable(path)
    if text is None:
        return
    from lilux.files.toml import load_toml

    try:
        tools = load_toml(text).get("tools")
        # A list, since dotted keys nest values more deeply than the parser itself would go.
        versions = [list(_texts(tools.get(name))) for name in names if isinstance(tools, dict)]
    except (ValueError, RecursionError):
        return
    for found in versions:
        yield from found


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _texts(value.get("version"))
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
