"""Templates, rendered in one pass over what an author wrote.

Two placeholders exist: ``${VAR}`` or ``${VAR:-default}`` for the environment (upper-case names
only) and ``{name}`` for a parameter. Inserted text is never looked at again, so a parameter that
contains ``${SECRET}`` or ``{env}`` stays that text. Everything else, ``${var}`` and ``${VAR-x}``
of a shell included, is not ours and stays as it is. A default runs to the first closing brace.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping

from lilux.patterns import pattern
from lilux.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

# The look-behind keeps a shell's own `${name}` from being read as a dollar and a parameter.
_PLACEHOLDER = pattern(
    r"\$\{(?P<env>[A-Z_][A-Z0-9_]*)(?::-(?P<default>[^}]*))?\}"
    r"|(?<!\$)\{(?P<param>[A-Za-z_][A-Za-z0-9_]*)\}"
)


class Placeholder(Record, frozen=True):
    """One placeholder of a template: what it asks for and where it stands."""

    kind: Literal["env", "param"]
    name: str
    default: str | None
    """The text after ``:-``; ``None`` if there is none, and always for a parameter."""
    start: int
    """Index of its first character in the template, for who must know what stands before it."""


def substitute(text: str, fill: Callable[[Placeholder], str | None]) -> str:
    """Replace each placeholder of ``text`` by what ``fill`` says; ``None`` leaves it as it is.

    ``fill`` is called once a placeholder, from left to right, and its answers are not parsed.
    """

    def replace(match: re.Match[str]) -> str:
        filled = fill(_placeholder(match))
        return match.group() if filled is None else filled

    return _PLACEHOLDER.sub(replace, text)


def whole_placeholder(text: str) -> Placeholder | None:
    """The placeholder that ``text`` consists of, or ``None`` if there is anything beside it."""
    match = _PLACEHOLDER.fullmatch(text)
    return None if match is None else _placeholder(match)


def env_value(placeholder: Placeholder, env: Mapping[str, str]) -> str:
    """What ``${VAR:-default}`` stands for: unset or empty gives the default, or else nothing."""
    return env.get(placeholder.name) or placeholder.default or ""


def param_text(name: str, value: Any) -> str:
    """How the parameter ``name`` is spelled inside a text: strings and paths as they are,
    everything else as compact JSON.

    Raises ``ValueError`` for a value that JSON cannot spell; the message does not contain it.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    try:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"parameter '{name}' ({type(value).__name__}) cannot be written as JSON inside a text; "
            "pass a string"
        ) from error


def render(template: Any, *, params: Mapping[str, Any], env: Mapping[str, str]) -> Any:
    """Render a string, or the strings in nested lists, tuples and values of mappings.

    The input is not changed: lists, tuples and mappings come back as new lists, tuples and dicts.
    A string that is exactly one ``{name}`` gives the parameter itself, type and all. An unknown
    ``{name}`` is left as it is. Other types, and the keys of mappings, are returned as they are.
    Raises ``ValueError`` if a parameter embedded in a text has no JSON form, and
    ``RecursionError`` for a template that is nested too deeply.
    """
    if isinstance(template, str):
        return _render_text(template, params, env)
    if isinstance(template, list):
        return [render(item, params=params, env=env) for item in template]
    if isinstance(template, tuple):
        return tuple(render(item, params=params, env=env) for item in template)
    if isinstance(template, Mapping):
        return {key: render(value, params=params, env=env) for key, value in template.items()}
    return template


def _render_text(text: str, params: Mapping[str, Any], env: Mapping[str, str]) -> Any:
    if "{" not in text:
        return text
    whole = whole_placeholder(text)
    if whole is not None and whole.kind == "param":
        return params.get(whole.name, text)

    def fill(placeholder: Placeholder) -> str | None:
        if placeholder.kind == "env":
            return env_value(placeholder, env)
        if placeholder.name not in params:
            return None
        return param_text(placeholder.name, params[placeholder.name])

    return substitute(text, fill)


def _placeholder(match: re.Match[str]) -> Placeholder:
    name, default, param = match.group("env", "default", "param")
    if name is not None:
        return Placeholder("env", name, default, match.start())
    return Placeholder("param", param, None, match.start())
