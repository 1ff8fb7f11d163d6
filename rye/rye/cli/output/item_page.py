"""What ``rye show`` prints of an item, for people and as JSON."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from rye.catalogue.entry import CatalogueEntry
from rye.catalogue.parameters import Parameter, parameters_of
from rye.cli.output.layout import field_list, paragraph
from rye.cli.output.paths import near
from rye.cli.output.printing import plain, style
from rye.cli.run.values import parse_values
from rye.errors import RyeError
from rye.executor.inspection import InspectedElement, Inspection

_HINTS = {
    "read_only": ("only reads", "changes things"),
    "destructive": ("may destroy", ""),
    "idempotent": ("may be repeated", ""),
    "open_world": ("reaches the outside world", "stays on this machine"),
}


def example_call(entry: CatalogueEntry, parameters: Mapping[str, Any]) -> str:
    """A command line for a shell that calls the item with just these parameters."""
    words = ["rye", "run", entry.item_id]
    pairs = [f"{name}={_spelled(value)}" for name, value in parameters.items()]
    if _reads_back(pairs, entry, parameters):
        words += pairs
    else:
        words += ["--params", json.dumps(dict(parameters))]
    return " ".join([_quoted(word) for word in words])


def page(entry: CatalogueEntry, call: str | None, seen: Inspection) -> str:
    """The whole page, but for what keeps the item from running: see :func:`objection`."""
    parts = [f"{style(plain(entry.item_id), bold=True)}  {plain(entry.version)}".rstrip()]
    if entry.fault:
        parts.append("  cannot be read")
    if entry.description:
        parts.append(paragraph(entry.description, "  "))
    parts.append(field_list(list(_facts(entry, seen))))
    parameters = parameters_of(entry.schema)
    if parameters:
        parts.append(f"{_heading('Parameters')}\n{_parameter_list(parameters)}")
    if call is not None:
        parts.append(f"{_heading('Example')}\n  {plain(call)}")
    return "\n\n".join(parts)


def as_json(entry: CatalogueEntry, call: str | None, seen: Inspection) -> dict[str, Any]:
    """The same for a program."""
    tool = seen.elements[0]
    return {
        **entry._asdict(),
        "example": call,
        "standing": tool.standing or None,
        "signer": tool.signer or None,
        "owner": tool.owner or None,
        "locked": tool.locked,
        "error": None if seen.error is None else str(seen.error),
    }


def objection(entry: CatalogueEntry, seen: Inspection) -> str:
    """Why the item cannot be run, and what to do; empty if it can. Not to be wrapped, since it
    ends in a command that people copy."""
    return entry.fault or ("" if seen.error is None else str(seen.error))


def signed_by(element: InspectedElement) -> str:
    """In a few words: who signed it, and whether that counts."""
    if not element.standing:
        return "" if element.path is None else "cannot be read"
    if element.standing == "unsigned":
        return "not signed"
    whose = f"{element.owner} ({element.signer})" if element.owner else element.signer
    said = {
        "trusted": f"signed by {whose}",
        "changed": f"changed after {whose} signed it",
        "forged": f"bears a signature that {whose} did not make",
        "untrusted": f"signed by {whose}, who is not trusted here",
    }
    return said[element.standing]


def _facts(entry: CatalogueEntry, seen: Inspection) -> Iterator[tuple[str, str]]:
    tool = seen.elements[0]
    foreign = entry.bundle not in ("", "rye")
    yield "space", f"{entry.space} ({entry.bundle})" if foreign else entry.space
    if entry.path:
        yield "file", near(entry.path)
    if entry.executor_id:
        reached = [each.item_id for each in seen.elements[1:]]
        yield "runs on", " → ".join(reached or [entry.executor_id])
    if entry.category:
        yield "category", entry.category
    if entry.path:
        yield "trust", signed_by(tool)
        yield "pinned", _pinned(tool)
    hints = [
        words[not entry.annotations[name]]
        for name, words in _HINTS.items()
        if isinstance(entry.annotations.get(name), bool)
    ]
    if any(hints):
        yield "nature", ", ".join([hint for hint in hints if hint])


def _pinned(tool: InspectedElement) -> str:
    if tool.pinned and not tool.locked:
        return f"to other content ({tool.pinned[:12]})"
    return "yes" if tool.locked else "no; the first run that succeeds pins it"


def _parameter_list(parameters: tuple[Parameter, ...]) -> str:
    rows = [(plain(each.name), _about(each), each.required) for each in parameters]
    column = max([len(name) for name, _, _ in rows])
    hanging = " " * (column + 4)
    return "\n".join(
        [
            f"  {style(name, fg='cyan', bold=required)}{paragraph(about, hanging)[len(name) + 2 :]}"
            for name, about, required in rows
        ]
    )


def _about(parameter: Parameter) -> str:
    said = parameter.kind
    if parameter.required:
        said = f"{said}, required"
    if parameter.default:
        said = f"{said}, by default {parameter.default}"
    return f"{parameter.description} ({said})" if parameter.description else said


def _heading(text: str) -> str:
    return style(text, bold=True)


def _spelled(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _reads_back(pairs: list[str], entry: CatalogueEntry, parameters: Mapping[str, Any]) -> bool:
    if any(pair.startswith("-") for pair in pairs):
        return False
    try:
        return parse_values(pairs, entry.schema) == dict(parameters)
    except RyeError:
        return False


def _quoted(word: str) -> str:
    """For a shell; of `key=value` only the value, which is how people write it."""
    key, equals, value = word.partition("=")
    if equals and key and shlex.quote(key) == key:
        return f"{key}={shlex.quote(value)}"
    return shlex.quote(word)
