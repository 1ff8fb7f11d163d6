"""Validation of parameters by a JSON Schema: 2020-12, or the draft named by ``$schema``.

The JSON text of a schema is the key of the cache and the input of the compiler, so a schema that
was changed in place is compiled again.
"""

from __future__ import annotations

import json
import re
from _thread import allocate_lock  # importing threading takes longer than a validation
from collections import OrderedDict
from functools import cache
from itertools import islice

from lilux.primitives.errors import SchemaError
from lilux.record import Record, field
from lilux.schemas.defaults import with_defaults
from lilux.schemas.json_shape import format_path, json_fault
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
# An error of jsonschema_rs about a reference has no field for its target, only this text.
_MISSING_RESOURCE = r"Resource '(?P<uri>.+?)' is not present"


class ValidationResult(Record, frozen=True):
    """The outcome; ``errors`` name paths and expectations, never the values."""

    valid: bool
    errors: tuple[str, ...] = ()
    parameters: Any = field(default=None, repr=False)
    """The parameters with defaults, if ``fill_defaults`` was given."""


_VALID = ValidationResult(True)


class CompiledSchema:
    """A schema compiled by :meth:`SchemaValidator.compile`.

    Later changes of the original object have no effect on it.
    """

    __slots__ = ("_validator",)

    def __init__(self, validator: jsonschema_rs.Validator) -> None:
        self._validator = validator

    def validate(self, parameters: Any) -> ValidationResult:
        """Validate ``parameters``; a value without a JSON form gives a failed result."""
        fault = json_fault(parameters)
        if fault is not None:
            place = format_path("parameters", reversed(fault.path))
            return ValidationResult(False, (f"{place}: {fault.reason}",))
        try:
            if self._validator.is_valid(parameters):
                return _VALID
            found = list(islice(self._validator.iter_errors(parameters), _MAX_ERRORS + 1))
        except ValueError:
            # A subclass of a JSON type that the library does not accept.
            return ValidationResult(
                False,
                ("parameters: a value has no JSON form; pass plain dicts, lists and strings",),
            )
        errors = [describe(error, "parameters") for error in found[:_MAX_ERRORS]]
        if len(found) > _MAX_ERRORS:
            errors.append(f"parameters: more than {_MAX_ERRORS} errors; the rest is omitted")
        return ValidationResult(False, tuple(errors))


class SchemaValidator:
    """Validates parameters, with a cache of the ``max_schemas`` last used compiled schemas.

    Threads may share a validator. Encoding a schema of many kilobytes as JSON takes longer than
    a validation; for such a schema, keep the result of :meth:`compile`.
    """

    def __init__(self, *, max_schemas: int = 256) -> None:
        if max_schemas < 1:
            raise ValueError(f"max_schemas is {max_schemas}; pass 1 or more")
        self._max_schemas = max_schemas
        self._compiled: OrderedDict[bytes, CompiledSchema] = OrderedDict()
        self._lock = allocate_lock()

    def compile(self, schema: Schema) -> CompiledSchema:
        """Return the compiled schema, from the cache if it has the same JSON text.

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
        """Validate ``parameters``, with ``fill_defaults`` after filling in defaults.

        Raises :class:`SchemaError` for an invalid schema. The input is not changed.
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
    """Call :meth:`SchemaValidator.validate_parameters` of a shared validator."""
    return _SHARED.validate_parameters(parameters, schema, fill_defaults=fill_defaults)


def compile_once(schema: Schema) -> CompiledSchema:
    """Return the compiled schema without caching it, for a caller that keeps it.

    Raises :class:`SchemaError` as :meth:`SchemaValidator.compile` does.
    """
    try:
        # Importing msgspec would take longer than encoding a thousand schemas with json.
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
        return SchemaError("the schema has no JSON form", hint="use strings of valid Unicode")
    place = format_path("schema", reversed(fault.path))
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
        place = format_path("schema", error.instance_path)
        return SchemaError(f"{place}: {expectation(error)}", hint="correct the schema")
    missing = re.match(_MISSING_RESOURCE, error.message)
    if missing is None:
        return SchemaError(f"the schema has a broken reference: {error.message}", hint="correct it")
    return SchemaError(
        f"the schema refers to '{missing['uri']}', which is not part of it and is never fetched",
        hint="put the target under '$defs'",
    )
