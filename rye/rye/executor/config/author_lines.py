"""The line that an author has to add to a tool, in the language of its file."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence

from rye.formats import format_of
from rye.items.element import ChainElement

_PYTHON = {"pins": "PINS = {}", "permissions.env": 'PERMISSIONS = {{"env": {}}}'}
_YAML = {"pins": "pins: [{}]", "permissions.env": "permissions: {{env: [{}]}}"}


def pins_advice(tool: ChainElement, names: Sequence[str]) -> str:
    """How to pin these files of the project too."""
    return _advice(tool, "pins", tool.metadata.pins, names)


def permissions_advice(tool: ChainElement, names: Sequence[str]) -> str:
    """How to ask for these variables of a ``.env`` too."""
    declared = tool.metadata.permissions
    return _advice(tool, "permissions.env", declared.env if declared else (), names)


def accept_command(tool: ChainElement) -> str:
    """What the author runs after a change of the tool."""
    item = shlex.quote(tool.item_id)
    return f"rye sign {item} && rye lock --update {item}"


def _advice(tool: ChainElement, key: str, present: Sequence[str], names: Sequence[str]) -> str:
    listed = [*present, *names]
    form = None if tool.path is None else format_of(tool.path)
    place = ""
    if form is None or form.kind == "yaml":
        plain = [one if re.fullmatch(r"[\w./-]+", one) else json.dumps(one) for one in listed]
        line = _YAML[key].format(", ".join(plain))
    elif form.kind == "python":
        line = _PYTHON[key].format(json.dumps(listed))
    else:
        line = f"{form.comment} {key} = {json.dumps(listed)}"
        place = "below executor_id "  # in TOML, it would belong to the table above it
    if present:
        return f"change {key} to `{line}` in {tool.path}"
    return f"add the line `{line}` {place + 'in' if place else 'to'} {tool.path}"
