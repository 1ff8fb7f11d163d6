"""A question of a tool as a form that MCP clients can show, and the user's answer to it.

The schema of a form is an object of plain fields: text, numbers, yes or no, and choices. A question
with any other schema is shown as a form with one field. A field that is not plain is a text, in
which the user writes JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from rye.executor.run.channel import DECLINED, UNAVAILABLE, Question, Reply, answered
from rye.mcp.open_calls import OpenCall
from rye.mcp.protocol.errors import ProtocolError
from rye.plaintext import escaped

_SINGLE: Final = "answer"
_MAX_TRIES = 3
_FORMATS = ("email", "uri", "date", "date-time")
_NUMBER = (int, float)
_COMMON: Mapping[str, Any] = {"title": str, "description": str}
# What a plain field may have beside its type, and of which type that is.
_KEYS: Mapping[str, Mapping[str, Any]] = {
    "boolean": {"default": bool},
    "integer": {"minimum": _NUMBER, "maximum": _NUMBER, "default": _NUMBER},
    "number": {"minimum": _NUMBER, "maximum": _NUMBER, "default": _NUMBER},
    "string": {
        "minLength": int,
        "maxLength": int,
        "default": str,
        "format": str,
        "enum": list,
        "enumNames": list,
        "oneOf": list,
    },
    "array": {"items": dict, "minItems": int, "maxItems": int, "default": list},
}


async def ask_user(call: OpenCall, question: Question) -> Reply:
    """Return the user's answer, which matches the schema.

    The question says which tool asks. An answer that does not match is asked for again, with the
    reason. A client that fails to answer counts as one that cannot ask.
    """
    form = QuestionForm(question.schema)
    # A question of Rye itself, above all whether a tool may run, does not begin like this.
    message = f"{call.tool} asks: {escaped(question.message)}"
    fault = ""
    for _ in range(_MAX_TRIES):
        text = f"{message}\n\n{fault}" if fault else message
        try:
            params = {"message": text, "requestedSchema": form.schema}
            result = await call.elicit(params, key=question.name)
        except (ProtocolError, TimeoutError):
            return UNAVAILABLE
        if result["action"] != "accept":
            return DECLINED
        content = result.get("content")
        value, fault = form.read(content if isinstance(content, Mapping) else {})
        if not fault:
            return answered(value)
    return DECLINED


class QuestionForm:
    """The form for a schema."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._wanted = schema
        fields = schema.get("properties")
        self._is_single = not isinstance(fields, Mapping)
        if not isinstance(fields, Mapping):
            fields = {_SINGLE: schema}
        shown = {str(name): _plain_field(one) for name, one in fields.items()}
        self._as_json = frozenset(name for name, one in shown.items() if one is None)
        required = [_SINGLE] if self._is_single else schema.get("required")
        names = required if isinstance(required, list) else []
        self.schema: dict[str, Any] = {
            "type": "object",
            "properties": {
                name: _json_field(fields[name]) if one is None else one
                for name, one in shown.items()
            },
        }
        if names:
            self.schema["required"] = [name for name in names if name in shown]

    def read(self, content: Mapping[str, Any]) -> tuple[Any, str]:
        """Return the value that the user entered, and why it does not match; empty if it does."""
        from lilux.schemas.schema_validator import validate_parameters

        values = {
            name: _parsed(value) if name in self._as_json else value
            for name, value in content.items()
            if not self._is_single or name == _SINGLE
        }
        given: dict[str, Any] = values if self._is_single else {_SINGLE: values}
        schema = {"properties": {_SINGLE: dict(self._wanted)}, "required": [_SINGLE]}
        verdict = validate_parameters(given, schema)
        if verdict.valid:
            return given[_SINGLE], ""
        return None, "; ".join([one.removeprefix("parameters.") for one in verdict.errors])


def _plain_field(schema: object) -> dict[str, Any] | None:
    """Return the part of a schema that clients understand; ``None`` if that is not enough."""
    if not isinstance(schema, Mapping):
        return None
    kind = schema.get("type")
    keys = _KEYS.get(kind) if isinstance(kind, str) else None
    if keys is None or (kind != "string" and "enum" in schema):
        return None
    field: dict[str, Any] = {"type": kind}
    for key, wanted in {**_COMMON, **keys}.items():
        value = schema.get(key)
        if isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool)):
            field[key] = value
    if field.get("format") not in _FORMATS:
        field.pop("format", None)
    if kind == "array":
        items = field.get("items", {})
        return field if _are_choices(items.get("enum"), items.get("anyOf")) else None
    has_choices = "enum" in schema or "oneOf" in schema
    chosen = _are_choices(field.get("enum"), field.get("oneOf"))
    return field if chosen or not has_choices else None


def _are_choices(texts: object, titled: object) -> bool:
    if isinstance(texts, list):
        return bool(texts) and all(isinstance(one, str) for one in texts)
    return (
        isinstance(titled, list)
        and bool(titled)
        and all(
            isinstance(one, dict)
            and isinstance(one.get("const"), str)
            and isinstance(one.get("title"), str)
            for one in titled
        )
    )


def _json_field(schema: object) -> dict[str, Any]:
    described = schema if isinstance(schema, Mapping) else {}
    words = [str(described[key]) for key in ("title", "description") if key in described]
    choices = described.get("enum")
    if isinstance(choices, list):
        words.append(f"one of {', '.join([json.dumps(one) for one in choices])}")
    return {"type": "string", "description": "; ".join([*words, "write it as JSON"])}


def _parsed(value: object) -> Any:
    """Read JSON; a text that is not JSON stays a text, which the schema accepts or not."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
