"""The names that an item may declare, their types, and their conversion to Metadata.

The reader of each format returns a mapping of lower-case names to :class:`Declared`. The types are
checked only here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from lilux.record import Record

from rye.errors import ItemFormatError, ItemIdError, NoMetadataError
from rye.items.element import ANY_CHILD, Metadata
from rye.items.permissions import permissions_from
from rye.spaces.ids import check_item_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_DEPTH = 32
_MAX_PLACE = 200

TEXTS = ("version", "tool_type", "category", "description")
MAPPINGS = ("config_schema", "env_config", "config", "anchor", "verify_deps", "annotations")
LISTS = ("inputs", "outputs")
FLAGS = ("stdin", "warm", "needs_user")
OTHERS = ("executor_id", "child_constraints", "permissions", "pins", "files", "examples")
NAMES = (*TEXTS, *MAPPINGS, *LISTS, *FLAGS, *OTHERS)

EXAMPLE_KEYS = ("params", "expect")

# The version is part of the name of a lockfile.
VERSION = r"[0-9A-Za-z][0-9A-Za-z.+!_-]{0,63}"
_BOUNDS = {"min_version", "max_version"}


class RefusedError(Exception):
    """A reason and its line, raised by code that does not know the path of the file."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


class Declared(Record, frozen=True, kw_only=True):
    """One declaration: its value, its line, and its name as spelled in the file."""

    value: Any
    line: int | None
    name: str


def metadata_from(declarations: Mapping[str, Declared], path: Path, executor_name: str) -> Metadata:
    """Check every declaration and return the metadata.

    ``executor_name`` is the spelling of ``executor_id``, the only required name, in this format.
    Raises :class:`ItemFormatError` with the file, the line and the reason.
    """
    if "executor_id" not in declarations:
        raise _no_executor(declarations, path, executor_name)
    fields: dict[str, Any] = {}
    for name, declared in declarations.items():
        fault = _plain_fault(declared.value, declared.name, 0)
        if not fault:
            fields[name], fault = _CHECKS[name](declared.value, declared.name)
        if fault:
            raise ItemFormatError(path, fault, line=declared.line, hint="correct it and sign again")
    return Metadata(**fields)


def _no_executor(
    declarations: Mapping[str, Declared], path: Path, executor_name: str
) -> ItemFormatError:
    hint = f"declare {executor_name}: the id of a runtime, or none for a primitive"
    if set(declarations) <= {"version"}:
        return NoMetadataError(path, "is not a tool: it has no metadata", hint=hint)
    return ItemFormatError(path, f"does not declare {executor_name}", hint=hint)


def kind_of(value: object) -> str:
    """The name of a value's type, for messages."""
    return _KINDS.get(type(value), type(value).__name__)


_KINDS: dict[type, str] = {
    dict: "a mapping",
    list: "a list",
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "nothing",
}


def place_below(where: str, step: str) -> str:
    """The name of a place inside a value, for messages.

    Its length is limited, since every entry below a very long key has a place that contains it.
    """
    place = f"{where}{step}"
    return place if len(place) <= _MAX_PLACE else f"{place[: _MAX_PLACE - 1]}…"


def _plain_fault(value: object, where: str, depth: int) -> str:
    """Why JSON cannot express the value; empty if it can."""
    if isinstance(value, str):
        return _text_fault(value, where)
    if value is None or isinstance(value, (int, float)):
        return _number_fault(value or 0, where)
    if not isinstance(value, (dict, list)):
        return f"expected text, a number, a list or a mapping, got {kind_of(value)} in '{where}'"
    if depth >= MAX_DEPTH:
        return f"more than {MAX_DEPTH} levels in '{where[:80]}'"
    for child, place in _entries(value, where):
        fault = _plain_fault(child, place, depth + 1)
        if fault:
            return fault
    return ""


def _entries(value: dict[str, Any] | list[Any], where: str) -> Iterator[tuple[object, str]]:
    if isinstance(value, list):
        for index, child in enumerate(value):
            yield child, place_below(where, f"[{index}]")
        return
    for key, child in value.items():
        yield child, place_below(where, f".{key}")
    for key in value:
        if not key.isascii():
            yield key, place_below(where, f".{key}")


def _text_fault(value: str, where: str) -> str:
    if value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value):
        return ""
    return f"expected text without surrogates in '{where.encode('ascii', 'replace').decode()}'"


def _number_fault(value: int | float, where: str) -> str:
    if isinstance(value, float):
        return "" if math.isfinite(value) else f"expected a finite number in '{where}'"
    return "" if value.bit_length() <= 64 else f"expected a number of 64 bits in '{where}'"


def _expected(what: str, value: object, where: str) -> str:
    return f"expected {what}, got {kind_of(value)} in '{where}'"


def _text(value: object, where: str) -> tuple[object, str]:
    return value, "" if isinstance(value, str) else _expected("text", value, where)


def _flag(value: object, where: str) -> tuple[object, str]:
    return value, "" if isinstance(value, bool) else _expected("true or false", value, where)


def _version(value: object, where: str) -> tuple[object, str]:
    if not isinstance(value, str):
        return value, _expected("text in quotes", value, where)
    if re.fullmatch(VERSION, value) is None:
        return value, f"expected a version like 1.0.0 in '{where}'"
    return value, ""


def _executor(value: object, where: str) -> tuple[object, str]:
    if value is None:
        return None, ""
    if not isinstance(value, str):
        return value, _expected("an item id or an explicit none", value, where)
    try:
        check_item_id(value)
    except ItemIdError as error:
        return value, f"expected an item id in '{where}' ({error.reason})"
    return value, ""


def _mapping(value: object, where: str) -> tuple[object, str]:
    return value, "" if isinstance(value, dict) else _expected("a mapping", value, where)


def _list_of_text(value: object, where: str) -> tuple[object, str]:
    if not isinstance(value, list):
        return value, _expected("a list of texts", value, where)
    for index, entry in enumerate(value):
        if not isinstance(entry, str):
            return value, _expected("text", entry, f"{where}[{index}]")
    return tuple(value), ""


def _pins(value: object, where: str) -> tuple[object, str]:
    """Globs relative to the project; none can leave it."""
    texts, fault = _list_of_text(value, where)
    if fault or not isinstance(texts, tuple):
        return texts, fault
    for index, text in enumerate(texts):
        if not {"", ".", ".."}.isdisjoint(text.split("/")) or "\0" in text:
            return texts, f"expected a path inside the project, like bin/x, in '{where}[{index}]'"
    return texts, ""


def _examples(value: object, where: str) -> tuple[object, str]:
    """Example calls: the parameters, and what is expected of the result."""
    if not isinstance(value, list):
        return value, _expected("a list of examples", value, where)
    for index, entry in enumerate(value):
        inside = f"{where}[{index}]"
        if not isinstance(entry, dict):
            return value, _expected("a mapping", entry, inside)
        unknown = [key for key in entry if key not in EXAMPLE_KEYS]
        if unknown:
            return value, f"expected params or expect, got '{unknown[0]}' in '{inside}'"
        if not isinstance(entry.get("params", {}), dict):
            return value, _expected("a mapping", entry["params"], f"{inside}.params")
    return tuple(value), ""


def _files(value: object, where: str) -> tuple[object, str]:
    """Globs relative to the folder of the item; none can leave it."""
    texts, fault = _pins(value, where)
    return texts, fault.replace("inside the project, like bin/x,", "beside it, like templates/**,")


def _constraints(value: object, where: str) -> tuple[object, str]:
    """Bounds for any child, or item ids with bounds."""
    if not isinstance(value, dict):
        return value, _expected("a mapping", value, where)
    if value and value.keys() <= _BOUNDS and not any(isinstance(v, dict) for v in value.values()):
        return {ANY_CHILD: value}, _bounds_fault(value, where)
    for item_id, bounds in value.items():
        inside = f"{where}.{item_id}"
        if not isinstance(bounds, dict):
            return value, _expected("a mapping", bounds, inside)
        fault = _bounds_fault(bounds, inside)
        if fault:
            return value, fault
    return value, ""


def _bounds_fault(bounds: dict[str, Any], where: str) -> str:
    for bound, version in bounds.items():
        if bound not in _BOUNDS:
            return f"expected min_version or max_version, got '{bound}' in '{where}'"
        _, fault = _version(version, f"{where}.{bound}")
        if fault:
            return fault
    return ""


_CHECKS = {
    "executor_id": _executor,
    "child_constraints": _constraints,
    "permissions": permissions_from,
    "pins": _pins,
    "files": _files,
    "examples": _examples,
    **dict.fromkeys(TEXTS, _text),
    **dict.fromkeys(MAPPINGS, _mapping),
    **dict.fromkeys(LISTS, _list_of_text),
    **dict.fromkeys(FLAGS, _flag),
    "version": _version,
}
