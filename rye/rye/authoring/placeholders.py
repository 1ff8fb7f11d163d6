"""Placeholders that match no parameter, and parameters that no placeholder uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lilux.templating import Placeholder, substitute

from rye.executor.config.merge import MergedConfig
from rye.executor.config.templates import PARAMS_JSON, RESERVED, texts_in
from rye.items.element import ChainElement
from rye.suggestions import closest, one_typo_away


def unknown_placeholders(merged: MergedConfig, chain: Sequence[ChainElement]) -> Iterator[str]:
    """``{whoo}`` in the config of a tool whose schema does not list ``whoo``.

    Without a schema every name is a parameter. A schema that allows other parameters makes only a
    name that is one letter away from a listed one a mistake.
    """
    tool = chain[0]
    properties = _properties(tool)
    if tool.metadata.tool_type == "runtime" or tool.metadata.config_schema is None:
        return
    for key, value in tool.metadata.config.items():
        for name in dict.fromkeys(_mentioned(value)):
            if name in RESERVED or name in merged.templates or name in properties:
                continue
            meant = one_typo_away(name, properties)
            if meant is None and merged.declared is None:
                continue
            meant = meant or next(iter(closest(name, properties)), None)
            guess = f" (did you mean '{{{meant}}}'?)" if meant is not None else ""
            yield (
                f"{tool.path}: unknown placeholder '{{{name}}}' in config.{key}{guess}; "
                f"add {name} to config_schema, or write {{ {name} }} if it is only text"
            )


def missing_schema(merged: MergedConfig, chain: Sequence[ChainElement]) -> Iterator[str]:
    """A tool that passes parameters on without saying which there are."""
    tool = chain[0]
    own = set(_mentioned(merged.templates)) - RESERVED - merged.templates.keys()
    passes = bool(own) or PARAMS_JSON in _mentioned(merged.templates)
    if tool.metadata.config_schema is None and passes:
        yield (
            f"{tool.path}: has no schema, so that any parameters are accepted and agents cannot "
            "know them; declare config_schema, or in Python annotate main(…)"
        )


def unused_parameters(merged: MergedConfig, chain: Sequence[ChainElement]) -> Iterator[str]:
    """Parameters of a tool that its chain never passes on."""
    tool = chain[0]
    if len(chain) < 2 or tool.metadata.tool_type in ("runtime", "primitive", "library"):
        return
    used = set(_mentioned(merged.templates))
    unused = [name for name in _properties(tool) if name not in used]
    if unused and PARAMS_JSON not in used:
        names = ", ".join(unused)
        yield (
            f"{tool.path}: config does not use the parameters {names}; "
            f"pass them on, for example as {{{unused[0]}}}, or remove them from config_schema"
        )


def _properties(tool: ChainElement) -> Mapping[str, Any]:
    found = (tool.metadata.config_schema or {}).get("properties")
    return found if isinstance(found, Mapping) else {}


def _mentioned(value: Any) -> list[str]:
    found: list[Placeholder] = []
    for text in texts_in(value):
        substitute(text, found.append)
    return [one.name for one in found if one.kind == "param"]
