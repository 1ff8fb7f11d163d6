"""The text that authors wrote into the config of a process, with constants filled in.

Constants are ``{project_path}`` and other places, values of ``config``, variables that
``env_config`` sets, and defaults of ``${VAR}``. A value that no author wrote, such as a caller's
parameter, is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lilux.record import Record
from lilux.templating import Placeholder, env_value, substitute

from rye.errors import ConfigTemplateError
from rye.executor.config.merge import (
    MergedConfig,
    interpreter_of,
    interpreter_variables,
    variables_of,
)
from rye.executor.config.templates import texts_in
from rye.items.element import ChainElement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

UNKNOWN = "\0"
"""Stands for a value that no author wrote; no path contains it."""

# Settings of the primitive that name no program and no argument.
_OTHER_SETTINGS = frozenset((
    "cwd", "env", "timeout", "output_limit", "background", "grace", "stdout_file", "stderr_file",
))  # fmt: skip
_MAX_VARIABLE_DEPTH = 3


class AuthorText(Record, frozen=True):
    """One text of a config with its constants filled in, and where it is set."""

    key: str
    text: str


def author_texts(merged: MergedConfig, env: Mapping[str, str] | None = None) -> list[AuthorText]:
    """Every text of the config that may name a program or a file; the first is the command.

    With ``env``, variables are filled in with the values of a call. Otherwise they have the value
    that an author gave them.
    """
    templates = _expanded(merged)
    variables = _declared_variables(merged.chain)
    texts: list[AuthorText] = []
    for key in ("command", *[key for key in templates if key != "command"]):
        if key in templates and key not in _OTHER_SETTINGS:
            texts += [
                AuthorText(key, _filled(text, merged.injected, variables, env))
                for text in texts_in(templates[key])
            ]
    return texts


def interpreters(chain: Sequence[ChainElement]) -> list[AuthorText]:
    """The paths of interpreters that an author wrote into ``env_config``."""
    texts = []
    for element in interpreter_variables(chain).values():
        for key in ("binary", "fallback"):
            text = interpreter_of(element).get(key)
            if isinstance(text, str) and "/" in text:
                texts.append(AuthorText("interpreter", text))
    return texts


def working_directories(merged: MergedConfig) -> Iterator[str]:
    """The folders that relative paths may start from: of the process, and of a server it starts."""
    variables = _declared_variables(merged.chain)
    pending: list[Any] = [_expanded(merged)]
    while pending:
        value = pending.pop()
        if isinstance(value, Mapping):
            pending += value.values()
            cwd = value.get("cwd")
            if isinstance(cwd, str):
                yield _filled(cwd, merged.injected, variables, None)


def search_path(merged: MergedConfig) -> list[str]:
    """The folders of the ``PATH`` that an author sets, for the process or for a server."""
    variables = _declared_variables(merged.chain)
    texts = [variables.get("PATH")]
    pending: list[Any] = [_expanded(merged)]
    while pending:
        value = pending.pop()
        if isinstance(value, Mapping):
            pending += value.values()
            texts.append(value.get("PATH"))
    filled = [
        _filled(text, merged.injected, variables, None) for text in texts if isinstance(text, str)
    ]
    return [folder for text in filled for folder in text.split(":")]


def _expanded(merged: MergedConfig) -> Mapping[str, Any]:
    try:
        return merged.expanded(merged.names({}, {}))[0]
    except ConfigTemplateError:
        return merged.templates  # the call reports it


def _declared_variables(chain: Sequence[ChainElement]) -> dict[str, str]:
    """The variables that ``env_config`` sets; those of elements nearer to the tool win."""
    variables: dict[str, str] = {}
    for element in reversed(chain):
        own = variables_of(element)
        variables |= {name: text for name, text in own.items() if isinstance(text, str)}
    return variables


def _filled(
    text: str,
    places: Mapping[str, str],
    variables: Mapping[str, str],
    env: Mapping[str, str] | None,
    depth: int = 0,
) -> str:
    def fill(placeholder: Placeholder) -> str:
        if placeholder.kind == "param":
            return places.get(placeholder.name, UNKNOWN)
        if env is not None:
            return env_value(placeholder, env)
        if placeholder.name in variables and depth < _MAX_VARIABLE_DEPTH:
            return _filled(variables[placeholder.name], places, variables, env, depth + 1)
        return placeholder.default or UNKNOWN

    return substitute(text, fill) if "{" in text else text
