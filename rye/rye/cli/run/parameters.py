"""The JSON object of ``--params``: an argument, a file or stdin."""

from __future__ import annotations

import sys

from rye.errors import ParameterError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rye.cli.run.request import RunRequest

MAX_BYTES = 64 * 1024 * 1024

_HINT = "pass a JSON object, @FILE for one in a file, or - for one on stdin"


def params_object(request: RunRequest) -> dict[str, Any]:
    """The parameters of ``--params``; empty without it. Raises :class:`ParameterError`."""
    return {} if request.params is None else _object(request.params)


def _object(params: str) -> dict[str, Any]:
    import json

    text: str | bytes = params
    if params == "-":
        text = _bounded(sys.stdin.buffer.read(MAX_BYTES + 1), "stdin")
    elif params.startswith("@"):
        text = _bounded(_read(params[1:]), params[1:])
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise _wrong(f"not JSON at {where} ({error.msg.lower()})") from None
    except (ValueError, RecursionError):
        raise _wrong("not JSON") from None
    if not isinstance(value, dict):
        raise _wrong("not an object")
    return value


def _read(path: str) -> bytes:
    try:
        # Not only regular files: a shell passes the output of a command as a pipe.
        with open(path, "rb") as file:  # noqa: PTH123 - nothing else here needs pathlib
            return file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a path"
        raise _wrong(f"{path!r}: {reason.lower()}") from None


def _bounded(data: bytes, name: str) -> bytes:
    if len(data) > MAX_BYTES:
        raise _wrong(f"{name!r} has more than {MAX_BYTES} bytes")
    return data


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _wrong(issue: str) -> ParameterError:
    return ParameterError("wrong --params", [issue], hint=_HINT)
