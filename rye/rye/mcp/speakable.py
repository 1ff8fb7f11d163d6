"""Values that any client can be sent: JSON of valid Unicode, and not deeper than encoders go.

What a client cannot be sent must not reach the SDK: it would find out while it writes, and end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_MAX_DEPTH = 100


def speakable_text(text: str) -> str:
    """Half of a surrogate pair, as in a file name that is no UTF-8, becomes a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def speakable(value: Any, *, depth: int = 0) -> Any:
    """The same value; what has no JSON form, and what is too deep, becomes text."""
    if isinstance(value, str):
        return speakable_text(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if depth >= _MAX_DEPTH:
        return json_text(value)
    if isinstance(value, Mapping):
        return {
            speakable_text(str(key)): speakable(one, depth=depth + 1) for key, one in value.items()
        }
    if isinstance(value, list | tuple):
        return [speakable(one, depth=depth + 1) for one in value]
    return speakable_text(str(value))


def json_text(value: Any) -> str:
    """JSON for people and agents; what cannot be written is said to be so."""
    try:
        return speakable_text(json.dumps(value, ensure_ascii=False, default=str))
    except (RecursionError, ValueError):
        return "(a value that is too deep to be shown)"
