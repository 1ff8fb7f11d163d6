"""Checks the parameters of a call against the schema of the tool, before anything runs."""

from __future__ import annotations

from collections.abc import Mapping

from lilux.primitives.errors import SchemaError
from lilux.record import Record

from rye.cache.disk import DiskCache
from rye.errors import ItemFormatError, ParameterError
from rye.executor.caches import BoundedDict
from rye.executor.config.build import MAX_SECONDS
from rye.formats import format_of
from rye.items.element import ChainElement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lilux.schemas.schema_validator import CompiledSchema

# For a tool without a schema.
_MAX_UNKNOWN = 5
_ANY_OBJECT: dict[str, Any] = {"type": "object"}


class _Gate(Record, frozen=True):
    schema: dict[str, Any]
    compiled: CompiledSchema
    has_defaults: bool


class ParameterGate:
    """Validates parameters and fills in defaults; compiled schemas are kept by content hash."""

    def __init__(self, disk_cache: DiskCache | None = None) -> None:
        self._disk_cache = DiskCache(None) if disk_cache is None else disk_cache
        self._called: dict[str, bool] = BoundedDict()
        self._gates: dict[tuple[str, str], _Gate] = BoundedDict()

    def admit(self, tool: ChainElement, parameters: Any) -> dict[str, Any]:
        """The validated parameters, with the defaults of the schema.

        Raises ``ParameterError`` with every issue, and ``ItemFormatError`` for an invalid schema.
        The input is not changed.
        """
        given = {} if parameters is None else parameters
        if given == {} and type(given) is dict:
            return self._admit_nothing(tool)
        return self._admit(tool, given)

    def _admit_nothing(self, tool: ChainElement) -> dict[str, Any]:
        """The defaults of a call without parameters, from the disk cache if possible.

        They depend on the file alone. From the second call on, compiling the schema is worth its
        time.
        """
        if tool.path is None or tool.integrity in self._called:
            return self._admit(tool, {})
        found = format_of(tool.path)
        kind = f"defaults {found.kind} {found.comment}"
        known = self._disk_cache.recall(kind, tool.integrity)
        if isinstance(known, dict):
            return known
        admitted = self._admit(tool, {})
        self._disk_cache.keep(kind, tool.integrity, admitted)
        return admitted

    def _admit(self, tool: ChainElement, given: Any) -> dict[str, Any]:
        if isinstance(given, Mapping) and not isinstance(given, dict):
            given = dict(given)
        if tool.integrity not in self._called:
            # Loading the validator takes longer than the rest of a single call.
            self._called[tool.integrity] = True
            admitted = _admitted_without_validator(tool, given)
            if admitted is not None:
                return admitted
        try:
            gate = self._gate(tool)
            filled = given
            if gate.has_defaults and isinstance(given, dict):
                filled = _filled(given, gate.schema)
        except SchemaError as error:
            raise ItemFormatError(
                tool.path or tool.resolution.space.root,
                f"the schema of the parameters: {error.reason}",
                hint=error.hint,
            ) from error
        result = gate.compiled.validate(filled)
        if not result.valid:
            meant = meant_names(given, gate.schema)
            see = f"follow the schema in {tool.path}" if tool.path else "pass a JSON object"
            raise ParameterError(
                f"invalid parameters for {tool.item_id!r}",
                result.errors,
                hint=f"{meant}{see}",
                agent_hint=f"{meant}see its parameters with `show`",
            )
        return dict(filled)

    def _gate(self, tool: ChainElement) -> _Gate:
        key = (tool.item_id, tool.integrity)
        gate = self._gates.get(key)
        if gate is None:
            from lilux.schemas.schema_validator import compile_once

            schema = _schema_of(tool)
            gate = self._gates[key] = _Gate(schema, compile_once(schema), _mentions_default(schema))
        return gate


def check_timeout(timeout: Any) -> None:
    """Raise ``ParameterError`` for a ``timeout`` that is not a positive number of seconds."""
    if timeout is None:
        return
    number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    if not (number and timeout > 0 and timeout != float("inf")):
        issue = "timeout: expected a positive number"
    elif timeout > MAX_SECONDS:
        issue = f"timeout: expected at most {MAX_SECONDS}"
    else:
        return
    raise ParameterError("invalid call", [issue], hint="pass seconds, or leave it out")


def meant_names(given: Any, schema: Mapping[str, Any]) -> str:
    """The names that were probably meant by unknown ones, as the beginning of a hint."""
    known = schema.get("properties")
    if not isinstance(given, dict) or not isinstance(known, Mapping):
        return ""
    from rye.suggestions import closest

    free = [name for name in known if name not in given]
    unknown = [name for name in given if name not in known and isinstance(name, str)]
    found = [(name, *closest(name, free)) for name in unknown[:_MAX_UNKNOWN]]
    meant = [f"{names[1]!r} for {names[0]!r}" for names in found if len(names) > 1]
    return f"did you mean {', '.join(meant)}? " if meant else ""


def _schema_of(tool: ChainElement) -> dict[str, Any]:
    declared = tool.metadata.config_schema
    return _ANY_OBJECT if declared is None else dict(declared)


def _admitted_without_validator(tool: ChainElement, given: Any) -> dict[str, Any] | None:
    """The parameters with defaults; ``None`` if only the validator can tell."""
    from lilux.schemas.plain import surely_valid

    schema = _schema_of(tool)
    if not isinstance(given, dict):
        return None
    try:
        filled = _filled(given, schema) if _mentions_default(schema) else dict(given)
    except SchemaError:
        return None
    return filled if surely_valid(filled, schema) else None


def _filled(given: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    from lilux.schemas.defaults import with_defaults
    from lilux.schemas.json_shape import json_fault

    # A value that is not JSON may be circular; the validation reports where.
    return given if json_fault(given) else with_defaults(given, schema)


def _mentions_default(schema: Any) -> bool:
    if isinstance(schema, Mapping):
        return "default" in schema or any(map(_mentions_default, schema.values()))
    return isinstance(schema, list) and any(map(_mentions_default, schema))
