"""What approving a project enables, for ``rye trust project``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rye.cli.output.printing import field_list
from rye.context import Context
from rye.errors import RyeError
from rye.items.reader import read_item
from rye.trust.project_approval import FOLDERS, UnsignedParts, unsigned_parts

_PYTHONS = ("bin/python", "Scripts/python.exe", "bin/python3")

_ELSEWHERE = (
    "an interpreter elsewhere in the project, if a tool uses one; there is no .env, .venv, "
    "node_modules or .ai/config.yaml"
)


class Overview(NamedTuple):
    """The unsigned parts of a project, and what uses them."""

    parts: UnsignedParts
    asked: Mapping[str, tuple[str, ...]]
    """Name in ``.env`` → the tools with a trusted chain that ask for it."""
    pinned: Mapping[str, tuple[str, ...]]
    """The tools with a trusted chain → the files in their ``pins``, which nobody signed."""
    interpreter: str
    """The program that ``.venv`` leads to; empty if there is none."""
    featured: tuple[str, ...]
    config_fault: str
    """Why the config cannot be used; empty if it can."""


def overview(context: Context) -> Overview:
    """Look at the project once: the digest is that of what is shown.

    Raises a ``RyeError`` for a ``config.yaml`` that cannot be read, and Lilux's
    ``ConfigurationError`` for such a ``.env``.
    """
    from rye.mcp.featured import parse_featured

    path = context.config_path
    content = read_item(path, path.parent).content if os.path.lexists(path) else None
    parts = unsigned_parts(context, config=content)
    featured: tuple[str, ...] = ()
    fault = ""
    if content is not None:
        try:
            featured = parse_featured(content, path).patterns
        except RyeError as error:
            fault = str(error)
    asked, pinned = _uses(context, frozenset(parts.env_names))
    return Overview(
        parts=parts,
        asked=asked,
        pinned=pinned,
        interpreter=_interpreter(context.project_path / ".venv"),
        featured=featured,
        config_fault=fault,
    )


def page(found: Overview) -> str:
    """Return the overview as aligned lines."""
    parts = found.parts
    fields = [(".env", text) for text in _env_lines(found)]
    if ".venv" in parts.folders:
        leads_to = f" ({found.interpreter})" if found.interpreter else ""
        fields.append((".venv", f"runs Python tools with its interpreter{leads_to} and packages"))
    if "node_modules" in parts.folders:
        fields.append(("node_modules", "supplies packages, and node, to JavaScript tools"))
    others = [name for name in parts.folders if name not in FOLDERS]
    fields += [(name, "supplies packages to JavaScript tools beside it") for name in others]
    if parts.config is not None:
        fields.append((".ai/config.yaml", _config_line(found)))
    fields += [("pins", f"{tool} runs {', '.join(names)}") for tool, names in found.pinned.items()]
    if not fields:
        # A runtime of the project may name an interpreter in any other folder.
        fields.append(("programs", _ELSEWHERE))
    return field_list([*fields, ("digest", parts.digest)])


def as_json(found: Overview) -> dict[str, Any]:
    """Return the overview as JSON values."""
    parts = found.parts
    return {
        "digest": parts.digest,
        "env": {name: list(found.asked.get(name, ())) for name in parts.env_names},
        "folders": list(parts.folders),
        "pins": {tool: list(names) for tool, names in found.pinned.items()},
        "interpreter": found.interpreter or None,
        "featured": list(found.featured),
    }


def _env_lines(found: Overview) -> list[str]:
    names = found.parts.env_names
    used = [f"{name} to {', '.join(found.asked[name])}" for name in names if name in found.asked]
    unused = [name for name in names if name not in found.asked]
    lines = [f"supplies {'; '.join(used)}"] if used else []
    if unused:
        lines.append(f"contains {', '.join(unused)}, which no signed tool asks for")
    return lines


def _config_line(found: Overview) -> str:
    if found.config_fault:
        return f"cannot be used: {found.config_fault}"
    if not found.featured:
        return "features no tools"
    return f"features for agents: {', '.join(found.featured)}"


def _interpreter(venv: Path) -> str:
    for name in _PYTHONS:
        if os.path.lexists(venv / name):
            return os.path.realpath(venv / name)
    return ""


def _uses(
    context: Context, names: frozenset[str]
) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
    """The tools with a trusted chain, in any space, that ask for these names; and all pins."""
    from rye.executor.chain.build import build_chain
    from rye.executor.chain.snapshot import Library
    from rye.executor.config.asked_names import asked_names
    from rye.executor.run.primitives import PRIMITIVE_MAP

    asking: dict[str, list[str]] = {}
    pinned: dict[str, tuple[str, ...]] = {}
    library = Library(context)
    snapshot = library.snapshot()
    for found in library.resolver.iter_items():
        try:
            chain = build_chain(found.item_id, snapshot, PRIMITIVE_MAP)
        except (RyeError, ValueError):
            continue
        if pins := tuple(pattern for one in chain for pattern in one.metadata.pins):
            pinned[found.item_id] = pins
        asked = asked_names(chain)
        for name in filter(asked.takes, names):
            asking.setdefault(name, []).append(found.item_id)
    asked_by = {name: tuple(sorted(ids)) for name, ids in asking.items()}
    return asked_by, dict(sorted(pinned.items()))
