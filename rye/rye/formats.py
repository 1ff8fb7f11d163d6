"""How to read a file by its extension: the table in ``.ai/formats.yaml`` of the system space."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from lilux.record import Record

from rye.errors import ItemFormatError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    Kind = Literal["python", "yaml", "block"]
else:
    Kind = str

_KINDS = ("python", "yaml", "block")
_TABLE = Path(__file__).parent / ".ai" / "formats.yaml"
_HINT = "reinstall rye"


class Format(Record, frozen=True, kw_only=True):
    """How to read a file, and the marker that starts a comment line in it."""

    kind: Kind
    comment: str


class FormatTable(Record, frozen=True, kw_only=True):
    """The contents of ``formats.yaml``."""

    formats: Mapping[str, Format]
    """Formats by extension (with its dot), in the order in which files are searched."""
    never: frozenset[str]
    """Extensions of files that are never items."""
    skipped: frozenset[str]
    """Names of folders that never contain items."""


FALLBACK = Format(kind="block", comment="#")

# Editors leave copies such as `tool.py~`; a copy must not replace a deleted tool.
_EXTENSION = r"(\.[A-Za-z0-9_+-]{1,16})?"


def format_of(path: Path) -> Format:
    """The format for the exact extension; a block with ``#`` if it is unknown."""
    return format_table().formats.get(os.path.splitext(path)[1], FALLBACK)  # noqa: PTH122 - hot


@cache
def known_extensions() -> tuple[str, ...]:
    """The extensions in the table, in its order."""
    return tuple(format_table().formats)


def may_be_item(extension: str) -> bool:
    """True if a file with an extension that is not in the table may be an item."""
    return extension not in format_table().never and re.fullmatch(_EXTENSION, extension) is not None


@cache
def format_table() -> FormatTable:
    """The table, read once. Raises :class:`ItemFormatError` if the installation is broken."""
    return read_table(_TABLE)


def read_table(path: Path) -> FormatTable:
    """Read and check the table in ``path``."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        data = json.loads("\n".join(line for line in lines if not line.startswith("#")))
    except (OSError, ValueError) as error:
        raise ItemFormatError(path, f"is not a table of formats ({error})", hint=_HINT) from None
    try:
        return FormatTable(
            formats=dict(_entries(data["formats"])),
            never=frozenset(_texts(data["never"])),
            skipped=frozenset(_texts(data["skipped"])),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ItemFormatError(path, f"is not a table of formats ({error})", hint=_HINT) from None


def _entries(rows: Any) -> list[tuple[str, Format]]:
    entries: list[tuple[str, Format]] = []
    for row in rows:
        kind, comment = row["kind"], row["comment"]
        if kind not in _KINDS or not isinstance(comment, str) or not comment.strip():
            raise ValueError(f"kind {kind!r} with comment {comment!r}")
        entry = Format(kind=kind, comment=comment)
        entries += [(extension, entry) for extension in _texts(row["extensions"])]
    if len(dict(entries)) != len(entries):
        raise ValueError("an extension occurs twice")
    return entries


def _texts(values: Any) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise TypeError("expected a list of strings")
    return values
