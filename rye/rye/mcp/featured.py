"""The tools that a project features: ``mcp: {featured: [ids or globs]}`` in ``.ai/config.yaml``.

The config is not signed, so it is used only if the user has approved the project. Featuring a tool
only lists it: the tool itself is refused unless a trusted key signed it.
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


def read_featured(context: Context) -> Featured:
    """Return what the project features; nothing if it has no config.

    A config that the user has not approved is ignored, and that is logged. Raises
    :class:`ItemFormatError` with the file and the line, and :class:`UnsafePathError` if the config
    is not a regular file or a link that leaves its directory.
    """
    path = context.config_path
    if not os.path.lexists(path):
        return Featured()
    from rye.items.reader import read_item

    content = read_item(path, path.parent).content
    if reason := _refusal(context, content):
        import logging

        logging.getLogger("rye.mcp").warning("%s is ignored: %s", path, reason)
        return Featured()
    return parse_featured(content, path)


def parse_featured(content: bytes, path: Path) -> Featured:
    """Return what a config says. Raises :class:`ItemFormatError`."""
    from rye.items.strict_yaml import load_mapping

    if all(not line.strip() or line.lstrip().startswith(b"#") for line in content.splitlines()):
        return Featured()
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise ItemFormatError(path, "is not UTF-8", hint="save it as UTF-8") from None
    config, lines = load_mapping(text, path, hint="correct it")
    return _parsed(config.get("mcp"), path, lines.get("mcp"))


def _refusal(context: Context, content: bytes) -> str:
    """Why the config may not be used, and what to do; empty if the user has approved it."""
    from lilux.primitives.errors import ConfigurationError

    from rye.trust.project_approval import ProjectApproval, hint_for, unsigned_parts

    try:
        # The bytes that were read are the ones that must be approved.
        reason = ProjectApproval(context).why_not(unsigned_parts(context, config=content))
    except ConfigurationError as error:
        return str(error)
    return reason and f"{reason}; {hint_for(reason)}"


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
