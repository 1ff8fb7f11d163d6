"""What a script is, as far as that can be seen in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

ARGS = "args"
"""The parameter for the arguments of a program whose options are not known."""


class Parameter(NamedTuple):
    """One parameter of a script, and how it is passed on the command line."""

    name: str
    schema: Mapping[str, Any]
    required: bool = False
    option: str = ""
    """``--days`` or ``-d``; empty for a positional argument."""
    flag: bool = False
    """True if the option has no value and stands for ``true``."""
    each: bool = False
    """True if the option is repeated for each element of a list."""


class Findings(NamedTuple):
    """The parts of a tool that were found in a file."""

    description: str = ""
    parameters: tuple[Parameter, ...] = ()
    has_options: bool = False
    """True if the script parses options, and so understands ``--``."""
    open_ended: bool = False
    """True if the script may take more arguments than the parameters that were found."""
    notes: tuple[str, ...] = ()


def schema_of(parameters: Sequence[Parameter]) -> dict[str, Any]:
    """The JSON Schema of the parameters."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {one.name: dict(one.schema) for one in parameters},
    }
    required = [one.name for one in parameters if one.required]
    if required:
        schema["required"] = required
    return {**schema, "additionalProperties": False}


def arguments_of(findings: Findings) -> list[Any]:
    """The value of ``config.arguments`` for ``script_runtime``: options first, then positions."""
    options = [one for one in findings.parameters if one.option]
    positional = [one for one in findings.parameters if not one.option]
    entries: list[Any] = [_entry(one) for one in options]
    if positional and findings.has_options:
        entries.append("--")
    return entries + [_entry(one) for one in positional]


def with_args(findings: Findings) -> Findings:
    """Add a list of further arguments, if the script may take some."""
    if not findings.open_ended or any(one.name == ARGS for one in findings.parameters):
        return findings
    schema = {
        "type": "array",
        "items": {"type": "string"},
        "default": [],
        "description": "The arguments",
    }
    return findings._replace(parameters=(*findings.parameters, Parameter(ARGS, schema)))


def _entry(parameter: Parameter) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": parameter.name}
    if parameter.flag:
        entry["flag"] = parameter.option
    elif parameter.option:
        entry["option"] = parameter.option
        if parameter.each:
            entry["each"] = True
    return entry
