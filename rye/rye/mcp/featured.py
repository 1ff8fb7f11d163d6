"""The tools that a project features: ``mcp: {featured: [ids or globs]}`` in ``.ai/config.yaml``.

Featuring a tool only lists it. A featured tool of a cloned project is still refused unless a
trusted key signed it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from rye.catalogue.entry import CatalogueEntry
from rye.context import Context
from rye.errors import ItemFormatError

CONFIG_NAME = "config.yaml"
_HINT = "write `mcp: {featured: [ids or globs]}`, or leave `mcp` out"
_GLOB = frozenset("*?[")


class Featured(NamedTuple):
    """Ids and globs, in the order of the config."""

    patterns: tuple[str, ...] = ()

    def of(self, entries: Iterable[CatalogueEntry]) -> tuple[CatalogueEntry, ...]:
        """Return the featured entries. A glob matches only tools; an id may also name a runtime."""
        ids = {pattern for pattern in self.patterns if not _is_glob(pattern)}
        globs = [pattern for pattern in self.patterns if _is_glob(pattern)]
        return tuple(
            [
                entry
                for entry in entries
                if entry.item_id in ids
                or (entry.is_tool and any(fnmatchcase(entry.item_id, glob) for glob in globs))
            ]
        )

    def missing_from(self, entries: Iterable[CatalogueEntry]) -> tuple[str, ...]:
        """Return the featured ids that do not exist."""
        known = {entry.item_id for entry in entries}
        return tuple([one for one in self.patterns if not _is_glob(one) and one not in known])


def config_path(context: Context) -> Path:
    """Return the path of the project's config."""
    return context.project_path / ".ai" / CONFIG_NAME


def read_featured(context: Context) -> Featured:
    """Return what the project features; nothing if it has no config.

    Raises :class:`ItemFormatError` with the file and the line, and :class:`UnsafePathError` if the
    config is not a regular file or a link that leaves its directory.
    """
    path = config_path(context)
    if not os.path.lexists(path):
        return Featured()
    from rye.items.reader import read_item
    from rye.items.strict_yaml import load_mapping

    content = read_item(path, path.parent).content
    if all(not line.strip() or line.lstrip().startswith(b"#") for line in content.splitlines()):
        return Featured()
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise ItemFormatError(path, "is not UTF-8", hint="save it as UTF-8") from None
    config, lines = load_mapping(text, path, hint="correct it")
    return _parsed(config.get("mcp"), path, lines.get("mcp"))


def _parsed(section: object, path: Path, line: int | None) -> Featured:
    if section is None:
        return Featured()
    if not isinstance(section, dict):
        raise ItemFormatError(path, "expected a mapping in 'mcp'", line=line, hint=_HINT)
    unknown = sorted(set(section) - {"featured"})
    if unknown:
        raise ItemFormatError(path, f"unknown key 'mcp.{unknown[0]}'", line=line, hint=_HINT)
    patterns = section.get("featured")
    if patterns is None:
        return Featured()
    if not isinstance(patterns, list) or not all(isinstance(one, str) and one for one in patterns):
        raise ItemFormatError(
            path, "expected a list of strings in 'mcp.featured'", line=line, hint=_HINT
        )
    return Featured(tuple(dict.fromkeys(patterns)))


def _is_glob(pattern: str) -> bool:
    return not _GLOB.isdisjoint(pattern)
