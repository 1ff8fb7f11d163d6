"""A declaration as the text that an author pastes into a tool, with what was seen as comments."""

from __future__ import annotations

import json
from collections.abc import Iterator

from rye.items.permissions import ANY_HOST, KEYS
from rye.permissions.learn import Learned

_INDENTS = {"yaml": "  ", "python": "    ", "block": ""}
_MAX_LEFT_OUT = 5


def declaration_lines(learned: Learned, kind: str) -> Iterator[str]:
    """The lines of a declaration; ``kind`` is that of the format of the tool."""
    indent = _INDENTS[kind]
    yield {"yaml": "permissions:", "python": "PERMISSIONS = {", "block": "[permissions]"}[kind]
    empty = True
    for key in KEYS[:-1]:
        entries = getattr(learned.permissions, key)
        if not entries:
            continue
        empty = False
        for entry in entries:
            if reason := learned.reasons.get((key, entry)):
                yield f"{indent}# {_shown(key, entry)}: {_plain(reason)}"
        yield f"{indent}{_assigned(key, _value(key, entries, kind), kind)}"
    if empty:
        yield from _nothing(kind, indent)
    if kind == "python":
        yield "}"
    if learned.left_out:
        listed = ", ".join(learned.left_out[:_MAX_LEFT_OUT])
        more = len(learned.left_out) - _MAX_LEFT_OUT
        rest = f" and {more} more" if more > 0 else ""
        yield f"# left out, because programs do without it: {_plain(listed)}{rest}"


def _nothing(kind: str, indent: str) -> Iterator[str]:
    comment = "# nothing beyond what every tool may use"
    yield f"{indent}{comment}"
    # Otherwise, YAML would take the empty mapping for null.
    if kind == "yaml":
        yield f"{indent}read: []"


def _shown(key: str, entry: str) -> str:
    return "true" if key == "net" and entry == ANY_HOST else _plain(entry)


def _value(key: str, entries: tuple[str, ...], kind: str) -> str:
    if key == "net" and entries == (ANY_HOST,):
        return "True" if kind == "python" else "true"
    # A JSON list is also a list of YAML, TOML and Python.
    return json.dumps(list(entries))


def _assigned(key: str, value: str, kind: str) -> str:
    if kind == "python":
        return f'"{key}": {value},'
    return f"{key} = {value}" if kind == "block" else f"{key}: {value}"


def _plain(text: str) -> str:
    """One line without control characters: names of files may contain anything."""
    return "".join([one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text])
