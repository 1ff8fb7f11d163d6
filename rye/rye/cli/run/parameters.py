"""The parameters of a call, from ``--params`` and from ``key=value``.

The tool's schema decides how the text of a ``key=value`` is read: as JSON if the schema allows the
type of that JSON value, otherwise as text if the schema allows text. A parameter without a type is
text.
"""

from __future__ import annotations

import sys

from rye.errors import ParameterError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from rye.cli.run.request import RunRequest

MAX_BYTES = 64 * 1024 * 1024

_HINT = "pass a JSON object, @FILE for a file that contains one, or - to read one from stdin"

_MAX_QUOTED = 40


def params_object(request: RunRequest) -> dict[str, Any]:
    """Return the parameters of ``--params``; empty without it. Raises :class:`ParameterError`."""
    return {} if request.params is None else _params_object(request.params)


# The option --params


def _params_object(params: str) -> dict[str, Any]:
    import json

    from rye.catalogue.text_values import refuse_constant

    text: str | bytes = params
    if params == "-":
        text = _limited(sys.stdin.buffer.read(MAX_BYTES + 1), "stdin")
    elif params.startswith("@"):
        text = _limited(_read_file(params[1:]), params[1:])
    try:
        value = json.loads(text, parse_constant=refuse_constant)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise _wrong_params(f"not JSON at {where} ({error.msg.lower()})") from None
    except (ValueError, RecursionError):
        raise _wrong_params("not JSON") from None
    if not isinstance(value, dict):
        raise _wrong_params("not an object")
    return value


def _read_file(path: str) -> bytes:
    try:
        # Any kind of file: `<(command)` in a shell is a pipe.
        with open(path, "rb") as file:  # noqa: PTH123 - avoids the import of pathlib
            return file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a path"
        raise _wrong_params(f"{path!r}: {reason.lower()}") from None


def _limited(data: bytes, name: str) -> bytes:
    if len(data) > MAX_BYTES:
        raise _wrong_params(f"{name!r} has more than {MAX_BYTES} bytes")
    return data


def _wrong_params(issue: str) -> ParameterError:
    return ParameterError("invalid --params", [issue], hint=_HINT)


# Pairs of key and value


def is_read_from(text: str) -> bool:
    """True if a value after ``key=`` on a command line is ``@file`` or ``-`` (stdin)."""
    return text == "-" or text.startswith("@")


def needs_reading(word: str) -> bool:
    """True if a word after the tool is not yet a plain ``key=value``; see ``words.py``."""
    return word.startswith("--") or is_read_from(word.partition("=")[2])


def parse_pairs(
    pairs: Sequence[str], schema: Mapping[str, Any] | None, *, item_id: str = "ITEM"
) -> dict[str, Any]:
    """Return the parameters that ``key=value`` arguments give.

    A repeated key makes an array if the schema allows one. Raises :class:`ParameterError` that
    lists every issue and names ``item_id``.
    """
    from rye.catalogue.parameter_types import SchemaParameters
    from rye.catalogue.text_values import read_texts

    known = SchemaParameters(schema)
    given: dict[str, list[str]] = {}
    issues: list[str] = []
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            issues.append(f"{quoted_start(pair)} is not of the form key=value")
        else:
            given.setdefault(key, []).append(text)
    values: dict[str, Any] = {}
    for key, texts in given.items():
        if not known.accepts(key):
            issues.append(unknown_parameter(key, known.names()))
            continue
        try:
            values[key] = read_texts(key, texts, known)
        except ValueError as error:
            issues.append(f"{key}: {error}")
    if issues:
        raise ParameterError(
            f"invalid parameters for {item_id!r}",
            issues,
            hint=f"see `rye show {item_id}`, or pass JSON with --params",
        )
    return values


def unknown_parameter(key: str, names: Sequence[str], others: Iterable[str] = ()) -> str:
    """Say that a tool has no such parameter, and which of ``names`` or ``others`` is similar."""
    from rye.suggestions import closest

    similar = closest(key, (*names, *others))
    if similar:
        return f"unknown parameter {quoted_start(key)} (did you mean {similar[0]!r}?)"
    known = f" (known: {', '.join(names)})" if names else ""
    return f"unknown parameter {quoted_start(key)}{known}"


def quoted_start(text: str) -> str:
    """Quote the beginning of an argument; the rest may be a value that must not be repeated."""
    return repr(text if len(text) <= _MAX_QUOTED else f"{text[: _MAX_QUOTED - 1]}…")
