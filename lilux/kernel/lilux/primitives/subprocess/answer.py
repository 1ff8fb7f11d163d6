"""What answers of ``lilux-proc`` look like, lest one of another release be half understood."""

from __future__ import annotations

from lilux.primitives.errors import HelperError

# What only annotations need is not imported: the start of a program is part of its speed.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from lilux.primitives.subprocess.wire import Answer

_TEXT_OR_NONE = (str, type(None))
_NUMBER_OR_NONE = (int, type(None))

_FIELDS: Mapping[str, Mapping[str, type | tuple[type, ...]]] = {
    "exec": {
        "success": bool,
        "return_code": int,
        "duration_ms": (int, float),
        "timed_out": bool,
        "signal": _NUMBER_OR_NONE,
        "stdout_bytes": int,
        "truncated": dict,
        "tree": dict,
    },
    "spawn": {
        "success": bool,
        "pid": _NUMBER_OR_NONE,
        "error": _TEXT_OR_NONE,
        "start_time": _NUMBER_OR_NONE,
    },
    "kill": {"success": bool, "method": str, "error": _TEXT_OR_NONE},
    "status": {"alive": bool},
}
_ERROR = {"message": str}
_TRUNCATED = {"stdout": int, "stderr": int}
_TREE = {"known_by": str, "ended": int, "survivors": list}


def checked(op: str, answer: Answer) -> Answer:
    """Gives ``answer`` back if it is one to ``op``; raises :class:`HelperError` if it is none."""
    header = answer.header
    fields = _ERROR if header["kind"] == "error" else _FIELDS[op]
    fits = _has(header, fields)
    if fits and fields is _FIELDS["exec"]:
        fits = (
            _has(header["truncated"], _TRUNCATED)
            and _has(header["tree"], _TREE)
            and 0 <= header["stdout_bytes"] <= len(answer.payload)
        )
    if not fits:
        raise HelperError(
            f"lilux-proc gave an answer to {op} that this program does not understand; "
            "install lilux and lilux-proc of the same release"
        )
    return answer


def _has(values: Mapping[str, Any], fields: Mapping[str, type | tuple[type, ...]]) -> bool:
    for name, kind in fields.items():
        if not isinstance(values.get(name), kind):
            return False
        if name not in values:
            return False
    return True
