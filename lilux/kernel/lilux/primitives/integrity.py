"""Deterministic SHA256 hashes of JSON data.

Two values have the same hash exactly if they have the same canonical text. Values without a unique
canonical text are refused: NaN and the infinities, keys that are not strings, lone surrogates,
cycles and types unknown to JSON. Tuples are treated as lists, and subclasses of JSON types as
their base type. ``1`` and ``1.0`` are different.
"""

from __future__ import annotations

import json
import math
import sys

from lilux.primitives.errors import IntegrityError
from lilux.record import Record, replaced
from lilux.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ENCODER = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
)
_LEAF_TYPES = frozenset({str, int, float, bool, type(None)})
_SEQUENCE_TYPES = (list, tuple)


def canonical_json(data: Any) -> str:
    """Serialise ``data`` with sorted keys, no whitespace and ASCII only.

    Raises :class:`IntegrityError` with the path to the first value that has no canonical form.
    """
    try:
        text = _ENCODER.encode(data)
    except (TypeError, ValueError, RecursionError):
        # From None: the cause may quote the data, and the path is more helpful.
        raise (_first_fault(data) or _UNKNOWN_FAULT).error() from None
    # The encoder turns keys such as 1 and None into strings, and two lone surrogates that form a
    # pair into the same escapes as the character that they encode.
    if not _all_keys_are_strings(data) or "\\ud" in text:
        fault = _first_fault(data)
        if fault is not None:
            raise fault.error()
    return text


def compute_integrity(data: Any) -> str:
    """Return the SHA256 hex digest of the canonical JSON of ``data``.

    Raises :class:`IntegrityError` as :func:`canonical_json` does.
    """
    return sha256(canonical_json(data).encode("ascii")).hexdigest()


def child_path(path: str, key: str) -> str:
    """Extend a path such as ``$.steps[2]`` by a key, quoted if it is not an identifier."""
    return f"{path}.{key}" if key.isidentifier() else f"{path}[{json.dumps(key)}]"


class _Fault(Record, frozen=True):
    """Why a value has no canonical form, where, and what to do."""

    reason: str
    hint: str
    path: str = "$"

    def error(self) -> IntegrityError:
        return IntegrityError(f"{self.path}: {self.reason}", hint=self.hint)


_UNKNOWN_FAULT = _Fault("this value cannot be written as JSON", "use plain JSON types")


def _all_keys_are_strings(data: Any) -> bool:
    pending = [data]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            for key in node:
                if not isinstance(key, str):
                    return False
            node = node.values()
        elif not isinstance(node, _SEQUENCE_TYPES):
            continue
        pending += [child for child in node if child.__class__ not in _LEAF_TYPES]
    return True


def _first_fault(data: Any) -> _Fault | None:
    """Return the fault of the first value, in document order, that has no canonical form."""
    pending: list[tuple[str, Any, tuple[int, ...]]] = [("$", data, ())]
    while pending:
        path, node, ancestors = pending.pop()
        if not isinstance(node, dict | list | tuple):
            fault = _fault_of_leaf(node)
            if fault is not None:
                return replaced(fault, path=path)
            continue
        if id(node) in ancestors:
            return _Fault("contains itself", "break the cycle", path)
        if len(ancestors) >= sys.getrecursionlimit():
            return _Fault("nested too deeply", "flatten the data")
        if isinstance(node, dict):
            for key in node:
                fault = _fault_of_key(key)
                if fault is not None:
                    return replaced(fault, path=path)
            children = [(child_path(path, key), value) for key, value in node.items()]
        else:
            children = [(f"{path}[{index}]", value) for index, value in enumerate(node)]
        line = (*ancestors, id(node))
        pending += [(where, child, line) for where, child in reversed(children)]
    return None


def _fault_of_leaf(value: Any) -> _Fault | None:
    if isinstance(value, float):
        if math.isfinite(value):
            return None
        return _Fault(f"{float(value)} is not a JSON number", "use a finite number or null")
    if isinstance(value, str):
        return _fault_of_text(value)
    if isinstance(value, int):
        return _fault_of_integer(value)
    if value is None:
        return None
    name = type(value).__name__
    return _Fault(f"{name} cannot be written as JSON", "convert it to a JSON type first")


def _fault_of_key(key: Any) -> _Fault | None:
    if isinstance(key, str):
        fault = _fault_of_text(key)
        return None if fault is None else replaced(fault, reason=f"a key {fault.reason}")
    return _Fault(f"a key is {type(key).__name__}, not str", "use string keys")


def _fault_of_text(text: str) -> _Fault | None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return _Fault("contains a lone surrogate", "use text that UTF-8 can encode")
    return None


def _fault_of_integer(number: int) -> _Fault | None:
    try:
        int.__repr__(number)
    except ValueError:
        return _Fault("integer has too many digits", "write it as a string")
    return None
