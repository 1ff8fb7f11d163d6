"""Parameters against a JSON Schema: 2020-12, or the draft that ``$schema`` names.

A schema is known by its JSON text: that text is the key of the cache and the thing that is
compiled, so a schema that was changed in place is another schema and never gets an old verdict.
"""

from __future__ import annotations

import json
from _thread import allocate_lock
from collections import OrderedDict
from functools import cache
from itertools import islice

from lilux.patterns import pattern
from lilux.primitives.errors import SchemaError
from lilux.record import Record, field
from lilux.schemas.defaults import with_defaults
from lilux.schemas.json_shape import json_fault, spell_path
from lilux.schemas.messages import describe, expectation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import jsonschema_rs
    import msgspec

    Schema = dict[str, Any] | bool
else:
    Schema = dict | bool

__all__ = [
    "CompiledSchema",
    "Schema",
    "SchemaValidator",
    "ValidationResult",
    "compile_once",
    "validate_parameters",
    "with_defaults",
]

_MAX_ERRORS = 50
_MISSING_RESOURCE = pattern(r"Resource '(?P<uri>.+?)' is not present")


class ValidationResult(Record, frozen=True):
    """The verdict; ``errors`` name places and expectations, never the values that were found."""

    valid: bool
    errors: tuple[str, ...] = ()
    parameters: Any = field(default=None, repr=False)
    """What was validated, with defaults, if filling them in was asked for."""


_VALID = ValidationResult(True)


class CompiledSchema:
    """A schema made ready by :meth:`SchemaValidator.compile`.

    Later changes to the object that it was made from do not reach it.
    """

    __slots__ = ("_validator",)

    def __init__(self, validator: jsonschema_rs.Validator) -> None:
        self._validator = validator

    def validate(self, parameters: Any) -> ValidationResult:
        """Parameters that JSON cannot express give a failed result, not an exception."""
        fault = json_fault(parameters)
        if fault is not None:
            place = spell_path("parameters", reversed(fault.path))
            return ValidationResult(False, (f"{place}: {fault.reason}",))
        try:
            if self._validator.is_valid(parameters):
                return _VALID
            found = list(islice(self._validator.iter_errors(parameters), _MAX_ERRORS + 1))
        except ValueError:
            # A subclass of a JSON type that the library does not take.
            return ValidationResult(
                False, ("parameters: a value has no JSON form; pass plain dicts, lists and texts",)
            )
        errors = [describe(error, "parameters") for error in found[:_MAX_ERRORS]]
        if len(found) > _MAX_ERRORS:
            errors.append(f"parameters: more than {_MAX_ERRORS} errors; the rest is left out")
        return ValidationResult(False, tuple(errors))


class SchemaValidator:
    """Validates and keeps the ``max_schemas`` compiled schemas that were used last.

    Any number of threads may share one. For a schema of many kilobytes, whose text alone takes
    longer to spell than a validation, keep the handle that :meth:`compile` returns.
    """

    def __init__(self, *, max_schemas: int = 256) -> None:
        if max_schemas < 1:
            raise ValueError(f"max_schemas is {max_schemas}; pass 1 or more")
        self._max_schemas = max_schemas
        self._compiled: OrderedDict[bytes, CompiledSchema] = OrderedDict()
        self._lock = allocate_lock()

    def compile(self, schema: Schema) -> CompiledSchema:
        """The compiled form, from the cache if the same JSON text is known.

        Raises :class:`SchemaError` if the schema is invalid or refers to something outside of it.
        """
        text = _json_text(schema)
        with self._lock:
            compiled = self._compiled.get(text)
            if compiled is not None:
                self._compiled.move_to_end(text)
                return compiled
        compiled = CompiledSchema(_compile(schema, text))
        with self._lock:
            self._compiled[text] = compiled
            if len(self._compiled) > self._max_schemas:
                self._compiled.popitem(last=False)
        return compiled

    def validate_parameters(
        self, parameters: Any, schema: Schema, *, fill_defaults: bool = False
    ) -> ValidationResult:
        """Validate; with ``fill_defaults``, validate and return the parameters with defaults.

        Raises :class:`SchemaError` for a schema that is itself invalid. The input is not changed.
        """
        compiled = self.compile(schema)
        if not fill_defaults:
            return compiled.validate(parameters)
        if json_fault(parameters) is None and isinstance(parameters, dict):
            parameters = with_defaults(parameters, schema)
        result = compiled.validate(parameters)
        return ValidationResult(result.valid, result.errors, parameters=parameters)


_SHARED = SchemaValidator()


def validate_parameters(
    parameters: Any, schema: Schema, *, fill_defaults: bool = False
) -> ValidationResult:
    """:meth:`SchemaValidator.validate_parameters` of a validator that the process shares."""
    return _SHARED.validate_parameters(parameters, schema, fill_defaults=fill_defaults)


def compile_once(schema: Schema) -> CompiledSchema:
    """The compiled form for a caller who keeps it: it is not remembered here.

    Raises :class:`SchemaError` as :meth:`SchemaValidator.compile` does.
    """
    try:
        # Needs no library of its own, whose import takes longer than a thousand such texts.
        text = json.dumps(schema, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise _not_json(schema) from error
    return CompiledSchema(_compile(schema, text))


@cache
def _encoder() -> msgspec.json.Encoder:
    import msgspec

    return msgspec.json.Encoder()


def _json_text(schema: Schema) -> bytes:
    try:
        return _encoder().encode(schema)
    except (TypeError, ValueError, RecursionError) as error:
        raise _not_json(schema) from error


def _not_json(schema: Schema) -> SchemaError:
    fault = json_fault(schema)
    if fault is None:
        return SchemaError("the schema has no JSON form", hint="use texts that are valid Unicode")
    place = spell_path("schema", reversed(fault.path))
    return SchemaError(f"{place}: {fault.reason}", hint="write the schema as plain JSON")


def _compile(schema: Schema, text: bytes) -> jsonschema_rs.Validator:
    import jsonschema_rs

    if json_fault(schema) is not None:
        raise _not_json(schema)
    try:
        return jsonschema_rs.validator_for(text.decode(), offline=True)
    except jsonschema_rs.ValidationError as error:
        raise _schema_error(error) from error
    except ValueError as error:
        raise SchemaError(f"the schema cannot be compiled: {error}", hint="correct it") from error


def _schema_error(error: jsonschema_rs.ValidationError) -> SchemaError:
    if error.kind.name != "$ref":
        place = spell_path("schema", error.instance_path)
        return SchemaError(f"{place}: {expectation(error)}", hint="correct the schema")
    missing = _MISSING_RESOURCE.match(error.message)
    if missing is None:
        return SchemaError(f"the schema has a broken reference: {error.message}", hint="correct it")
    return SchemaError(
        f"the schema refers to '{missing['uri']}', which is not part of it and is never fetched",
        hint="put the target under '$defs'",
    )
