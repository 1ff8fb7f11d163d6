"""What ``rye show`` prints about an item, as text and as JSON."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from rye.catalogue.entry import CatalogueEntry
from rye.catalogue.parameters import Parameter, parameters_of
from rye.cli.output.printing import field_list, paragraph, plain, shorten_paths, style
from rye.cli.run.parameters import is_read_from, parse_pairs
from rye.errors import RyeError
from rye.executor.inspection import InspectedElement, Inspection, signed_by, space_of
from rye.items.permissions import permissions_to_json
from rye.permissions.words import in_short

# What each annotation means if it is true, and if it is false.
_ANNOTATIONS = {
    "read_only": ("read-only", "makes changes"),
    "destructive": ("destructive", ""),
    "idempotent": ("safe to repeat", ""),
    "open_world": ("reaches external systems", "local only"),
}


def example_call(entry: CatalogueEntry, parameters: Mapping[str, Any]) -> str:
    """Return a shell command that calls the item with these parameters."""
    words = ["rye", "run", entry.item_id]
    pairs = [f"{name}={_as_text(value)}" for name, value in parameters.items()]
    if _reads_back(pairs, entry, parameters):
        words += pairs
    else:
        words += ["--params", json.dumps(dict(parameters))]
    return " ".join([_quote(word) for word in words])


def text_page(entry: CatalogueEntry, call: str | None, inspection: Inspection) -> str:
    """Return the whole page, without the error of :func:`error_of`."""
    parts = [f"{style(plain(entry.item_id), bold=True)}  {plain(entry.version)}".rstrip()]
    if entry.fault:
        parts.append("  cannot be read")
    if entry.description:
        parts.append(paragraph(entry.description, "  "))
    parts.append(field_list(list(_facts(entry, inspection))))
    parameters = parameters_of(entry.schema)
    if parameters:
        parts.append(f"{heading('Parameters')}\n{parameter_list(parameters)}")
    if entry.examples and not entry.fault:
        parts.append(f"{heading('Examples')}\n{examples_list(entry)}")
    elif call is not None:
        parts.append(f"{heading('Example')}\n  {plain(call)}")
    return "\n\n".join(parts)


def examples_list(entry: CatalogueEntry) -> str:
    """Return the example calls that the author wrote, each with what it is expected to give."""
    lines = []
    for one in entry.examples:
        lines.append(f"  {plain(example_call(entry, one.get('params', {})))}")
        if "expect" in one:
            lines.append(f"    → {plain(json.dumps(one['expect'], ensure_ascii=False))}")
    return "\n".join(lines)


def json_page(entry: CatalogueEntry, call: str | None, inspection: Inspection) -> dict[str, Any]:
    """Return the page for ``--json``."""
    tool = inspection.elements[0]
    return {
        **entry._asdict(),
        "example": call,
        "standing": tool.standing or None,
        "signer": tool.signer or None,
        "owner": tool.owner or None,
        "locked": tool.locked,
        "runs_text_of": list(inspection.runs_text_of),
        "asks_for": list(inspection.asked),
        "starts_cold": inspection.cold or None,
        "permissions": permissions_to_json(inspection.permissions),
        "error": None if inspection.error is None else str(inspection.error),
    }


def error_of(entry: CatalogueEntry, inspection: Inspection) -> str:
    """Return why the item cannot run, and what to do; empty if it can run."""
    return entry.fault or ("" if inspection.error is None else str(inspection.error))


def _facts(entry: CatalogueEntry, inspection: Inspection) -> Iterator[tuple[str, str]]:
    tool = inspection.elements[0]
    yield "space", space_of(entry)
    if entry.path:
        yield "file", shorten_paths(entry.path)
    if entry.executor_id:
        reached = [each.item_id for each in inspection.elements[1:]]
        yield "runs on", " → ".join(reached or [entry.executor_id])
    if entry.category:
        yield "category", entry.category
    if entry.path:
        yield "signature", signed_by(tool)
        yield "pinned", _pinned(tool)
        if inspection.error is None:
            yield "may do", in_short(inspection.permissions)
    if inspection.runs_text_of:
        names = ", ".join([plain(name) for name in inspection.runs_text_of])
        yield "may run", f"what the caller passes as {names}"
    effects = [
        texts[not entry.annotations[name]]
        for name, texts in _ANNOTATIONS.items()
        if isinstance(entry.annotations.get(name), bool)
    ]
    if entry.stdin and entry.is_tool:
        yield "stdin", "passed on by `rye run`"
    if entry.needs_user:
        yield "needs", "a user who answers its questions"
    if any(effects):
        yield "effects", ", ".join(filter(None, effects))
    if inspection.asked:
        yield "from .env", ", ".join(inspection.asked)
    if inspection.cold:
        yield "starts cold", plain(inspection.cold)


def _pinned(tool: InspectedElement) -> str:
    if tool.pinned and not tool.locked:
        same = tool.pinned == tool.integrity
        return "in another space" if same else f"to different content ({tool.pinned[:12]})"
    return "yes" if tool.locked else "no; the first successful run pins it"


def parameter_list(parameters: tuple[Parameter, ...]) -> str:
    """Return a line or more for each parameter: its name, what it is for, its type."""
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
    kind = parameter.kind
    if parameter.required:
        kind = f"{kind}, required"
    if parameter.default:
        kind = f"{kind}, default {parameter.default}"
    return f"{parameter.description} ({kind})" if parameter.description else kind


def heading(text: str) -> str:
    """Return the heading of a part of a page."""
    return style(text, bold=True)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _reads_back(pairs: list[str], entry: CatalogueEntry, parameters: Mapping[str, Any]) -> bool:
    if any(pair.startswith("-") or is_read_from(pair.partition("=")[2]) for pair in pairs):
        return False
    try:
        return parse_pairs(pairs, entry.schema) == dict(parameters)
    except RyeError:
        return False


def _quote(word: str) -> str:
    """Quote a word for a shell; in `key=value`, only the value is quoted."""
    key, equals, value = word.partition("=")
    if equals and key and shlex.quote(key) == key:
        return f"{key}={shlex.quote(value)}"
    return shlex.quote(word)
