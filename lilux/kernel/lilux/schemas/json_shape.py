"""Checks that a Python value has a JSON form, and paths inside such a value."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite

from lilux.primitives.integrity import child_path
from lilux.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Validation recurses natively: without a bound, deep or circular data would overflow the C stack.
MAX_DEPTH = 128

_SCALARS = frozenset({int, bool, type(None)})
_NOT_FINITE = "NaN and infinities have no JSON form"
_NOT_UNICODE = "a string with a lone surrogate has no JSON form"


class Fault(Record, frozen=True):
    """Why a value has no JSON form; ``path`` goes from the innermost step to the outermost."""

    path: list[str | int]
    reason: str


def json_fault(value: Any, room: int = MAX_DEPTH) -> Fault | None:
    """Return the first fault in ``value``, or ``None``."""
    if type(value) in _SCALARS:
        return None
    if isinstance(value, dict):
        return _dict_fault(value, room)
    if isinstance(value, list | tuple):
        return _list_fault(value, room)
    reason = _leaf_fault(value)
    return None if reason is None else Fault([], reason)


def _leaf_fault(value: Any) -> str | None:
    if isinstance(value, str):
        return None if _is_unicode(value) else _NOT_UNICODE
    if isinstance(value, float):
        return None if isfinite(value) else _NOT_FINITE
    if isinstance(value, int):
        return None
    from decimal import Decimal

    if isinstance(value, Decimal):
        # isfinite() raises for a signalling NaN.
        return None if value.is_finite() else _NOT_FINITE
    return f"a value of type {type(value).__name__} has no JSON form"


def _dict_fault(value: dict[Any, Any], room: int) -> Fault | None:
    if not room:
        return _too_deep()
    for key, child in value.items():
        if not isinstance(key, str):
            return Fault([], f"keys must be strings, got {type(key).__name__}")
        if not key.isascii() and not _is_unicode(key):
            return Fault([], f"the key {key!r}: {_NOT_UNICODE}")
        if type(child) is str and child.isascii():
            continue
        if type(child) not in _SCALARS and (fault := json_fault(child, room - 1)):
            fault.path.append(key)
            return fault
    return None


def _list_fault(value: list[Any] | tuple[Any, ...], room: int) -> Fault | None:
    if not room:
        return _too_deep()
    for index, child in enumerate(value):
        if type(child) is str and child.isascii():
            continue
        if type(child) not in _SCALARS and (fault := json_fault(child, room - 1)):
            fault.path.append(index)
            return fault
    return None


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _too_deep() -> Fault:
    return Fault([], f"nested deeper than {MAX_DEPTH} levels, or circular")


def format_path(root: str, path: Iterable[str | int]) -> str:
    """Return a path such as ``parameters.env["a b"][0]``; ``path`` starts at the outermost step."""
    for step in path:
        root = child_path(root, step) if isinstance(step, str) else f"{root}[{step}]"
    return root
