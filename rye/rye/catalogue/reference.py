"""References from one place of a JSON Schema to another."""

from __future__ import annotations

from collections.abc import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def referred(reference: Any, root: Mapping[str, Any]) -> Any:
    """What ``$ref`` points at within the schema, else ``None``; nothing is fetched."""
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
