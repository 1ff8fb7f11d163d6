"""Filling the defaults of a JSON Schema into parameters."""

from __future__ import annotations

from collections.abc import Iterator

from lilux.primitives.errors import SchemaError
from lilux.schemas.json_shape import MAX_DEPTH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def with_defaults(parameters: dict[str, Any], schema: dict[str, Any] | bool) -> dict[str, Any]:
    """Return a new dict with the defaults of missing properties; the input is not changed.

    Defaults are also filled into existing objects and array items, through ``allOf`` and through
    references inside the schema. Alternatives (``anyOf``, ``oneOf``, ``if``) are skipped, since
    the matching one is not known before validation. A missing object without a default is not
    created. Raises :class:`SchemaError` if a default contains itself.
    """
    filled = _filled(parameters, schema, root=schema, room=MAX_DEPTH)
    return dict(filled) if isinstance(filled, dict) else parameters


def _filled(value: Any, schema: Any, *, root: Any, room: int) -> Any:
    if not isinstance(value, dict | list) or not isinstance(schema, dict):
        return value
    if not room:
        raise SchemaError(
            f"the defaults of the schema are nested deeper than {MAX_DEPTH} levels",
            hint="break the reference from a default to itself",
        )
    for part in _conjuncts(schema, root, seen=set()):
        if isinstance(value, dict):
            value = _filled_object(value, part.get("properties"), root, room - 1)
        elif isinstance(items := part.get("items"), dict):
            start = len(part.get("prefixItems") or ())
            value = value[:start] + [
                _filled(item, items, root=root, room=room - 1) for item in value[start:]
            ]
    return value


def _filled_object(value: dict[str, Any], properties: Any, root: Any, room: int) -> dict[str, Any]:
    if not isinstance(properties, dict):
        return value
    result = dict(value)
    for name, schema in properties.items():
        if name not in result:
            carrier = next(
                (part for part in _conjuncts(schema, root, seen=set()) if "default" in part), None
            )
            if carrier is None:
                continue
            result[name] = _copied(carrier["default"])
        result[name] = _filled(result[name], schema, root=root, room=room)
    return result


def _conjuncts(schema: Any, root: Any, seen: set[int]) -> Iterator[dict[str, Any]]:
    """Yield the schema and all schemas that apply together with it, each once."""
    if not isinstance(schema, dict) or id(schema) in seen:
        return
    seen.add(id(schema))
    yield schema
    yield from _conjuncts(_local_target(schema.get("$ref"), root), root, seen)
    all_of = schema.get("allOf")
    for part in all_of if isinstance(all_of, list) else ():
        yield from _conjuncts(part, root, seen)


def _local_target(reference: Any, root: Any) -> Any:
    if not isinstance(reference, str) or (reference != "#" and not reference.startswith("#/")):
        return None
    # Imported here, because few schemas have references and a short program imports little.
    from urllib.parse import unquote

    target = root
    for step in unquote(reference).split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(target, dict):
            target = target.get(key)
        elif isinstance(target, list) and key.isdecimal() and int(key) < len(target):
            target = target[int(key)]
        else:
            return None
    return target


def _copied(value: Any) -> Any:
    if not isinstance(value, dict | list):
        return value
    import copy

    return copy.deepcopy(value)
