"""Templates, rendered in one pass over the author's text.

There are two placeholders: ``${VAR}`` or ``${VAR:-default}`` for the environment (upper-case
names only) and ``{name}`` for a parameter. Inserted text is not parsed again, so a parameter that
contains ``${SECRET}`` or ``{env}`` is inserted unchanged. All other text is unchanged too,
including ``${var}`` and ``${VAR-x}`` of a shell. A default ends at the first closing brace.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping

from lilux.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

# Without the look-behind, `${name}` of a shell would be a dollar and a parameter.
_PLACEHOLDER = (
    r"\$\{(?P<env>[A-Z_][A-Z0-9_]*)(?::-(?P<default>[^}]*))?\}"
    r"|(?<!\$)\{(?P<param>[A-Za-z_][A-Za-z0-9_]*)\}"
)


class ParameterTextError(ValueError):
    """A parameter inside text has no JSON form; the message does not contain its value.

    Its text is ``reason``, then ``hint``: what to do next.
    """

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(f"{reason}; {hint}")
        self.reason = reason
        self.hint = hint


class Placeholder(Record, frozen=True):
    """One placeholder of a template: its kind, name and position."""

    kind: Literal["env", "param"]
    name: str
    default: str | None
    """The text after ``:-``; ``None`` if there is none, and always for a parameter."""
    start: int
    """Index of its first character in the template."""
    end: int
    """Index after its last character."""


def substitute(text: str, fill: Callable[[Placeholder], str | None]) -> str:
    """Replace each placeholder of ``text`` by the result of ``fill``; ``None`` leaves it unchanged.

    ``fill`` is called once per placeholder, from left to right. Its results are not parsed.
    """

    def replace(match: re.Match[str]) -> str:
        filled = fill(_placeholder(match))
        return match.group() if filled is None else filled

    return re.sub(_PLACEHOLDER, replace, text)


def whole_placeholder(text: str) -> Placeholder | None:
    """Return the placeholder if ``text`` consists of exactly one, or ``None``."""
    match = re.fullmatch(_PLACEHOLDER, text)
    return None if match is None else _placeholder(match)


def env_value(placeholder: Placeholder, env: Mapping[str, str]) -> str:
    """Return the value of ``${VAR:-default}``; the default replaces an unset or empty variable."""
    return env.get(placeholder.name) or placeholder.default or ""


def param_text(name: str, value: Any) -> str:
    """Return the parameter ``name`` as text: strings and paths unchanged, other values as JSON.

    Raises :class:`ParameterTextError` for a value without a JSON form.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    try:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ParameterTextError(
            f"parameter '{name}' ({type(value).__name__}) cannot be written as JSON inside text",
            "pass a string",
        ) from error


def render(template: Any, *, params: Mapping[str, Any], env: Mapping[str, str]) -> Any:
    """Render a string, or the strings in nested lists, tuples and values of mappings.

    The input is not changed: the result has new lists, tuples and dicts. A string that is exactly
    one ``{name}`` gives the parameter with its type. An unknown ``{name}``, other types and the
    keys of mappings are unchanged. Raises :class:`ParameterTextError`, and ``RecursionError`` for a
    template that is nested too deeply.
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
        return Placeholder("env", name, default, *match.span())
    return Placeholder("param", param, None, *match.span())
