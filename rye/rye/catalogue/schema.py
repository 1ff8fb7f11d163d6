"""Reading JSON Schemas: following references and merging variants, within bounds."""

from __future__ import annotations

from collections.abc import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MAX_DEPTH = 6
_MAX_LOOKUPS = 5000


def referenced(reference: Any, root: Mapping[str, Any]) -> Any:
    """Return the part of the schema that ``$ref`` points at, else ``None``; fetches nothing."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    found: Any = root
    for step in reference[1:].split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping):
            found = found.get(key)
        elif isinstance(found, list) and key in map(str, range(len(found))):
            found = found[int(key)]
        else:
            return None
    return found


class SchemaView:
    """A schema whose parts are resolved one by one.

    The number of lookups is limited: with references, a few lines can expand to a schema of any
    size. Parts beyond the limit resolve to an empty schema.
    """

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._lookups_left = _MAX_LOOKUPS

    def resolved(self, part: Any, depth: int = 0) -> Mapping[str, Any]:
        """Return a part of the schema with its references followed.

        All of ``allOf`` is merged in, and the first alternative of ``anyOf`` or ``oneOf``.
        """
        self._lookups_left -= 1
        if not isinstance(part, Mapping) or depth > _MAX_DEPTH or self._lookups_left < 0:
            return {}
        shape = dict(part)
        target = referenced(shape.pop("$ref", None), self._root)
        if target is not None:
            shape = {**self.resolved(target, depth + 1), **shape}
        variants = shape.get("allOf")
        for variant in variants if isinstance(variants, list) else ():
            shape = _merged(shape, self.resolved(variant, depth + 1))
        for key in ("anyOf", "oneOf"):
            variants = shape.get(key)
            if isinstance(variants, list) and variants and "type" not in shape:
                shape = _merged(shape, self.resolved(variants[0], depth + 1))
        return shape


def _merged(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**right, **left}
    if isinstance(left.get("properties"), Mapping) and isinstance(right.get("properties"), Mapping):
        merged["properties"] = {**right["properties"], **left["properties"]}
    if isinstance(left.get("required"), list) and isinstance(right.get("required"), list):
        merged["required"] = [*left["required"], *right["required"]]
    return merged
