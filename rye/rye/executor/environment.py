"""The environment of a chain: the machine's, ``.env``, and what each element declares."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from lilux.primitives.errors import ConfigurationError
from lilux.primitives.record import Record, field
from lilux.runtime.env_resolver import EnvResolver
from lilux.runtime.interpreters import which

from rye.context import Context
from rye.errors import InterpreterMissingError, ItemFormatError
from rye.items.element import ChainElement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class ChainEnvironment(Record, frozen=True, kw_only=True):
    """A complete environment; values may be secrets and stay out of the repr."""

    env: dict[str, str] = field(repr=False)
    declared: frozenset[str]
    """The names that an element of the chain sets."""


def resolve_chain_env(chain: Sequence[ChainElement], context: Context) -> ChainEnvironment:
    """Go from the primitive to the tool; each element overrides only what it declares.

    ``.env`` is read once, below everything that is declared, so a tool's ``${VAR}`` sees the
    values of its runtime. Since a ``.env`` comes with a checkout, it may not choose what is run:
    ``PATH`` and the interpreter variables of the chain are not taken from it.

    Raises :class:`ItemFormatError` for a malformed ``env_config``,
    :class:`InterpreterMissingError` for an interpreter that is not on this machine, and Lilux's
    ``ConfigurationError`` for a ``.env`` that cannot be used.
    """
    interpreters = _interpreter_variables(chain)
    env = dict(context.environ)
    env.update(_project_variables(context.project_path / ".env", {"PATH", *interpreters}))
    roots: dict[str, Path | str] = {
        "project": context.project_path,
        "user": context.user_space,
        "system": context.system_space,
    }
    declared: set[str] = set()
    for element in reversed(chain):
        rules = element.metadata.env_config
        if rules is None:
            continue
        resolver = EnvResolver(context.project_path, environ=env)
        try:
            env = resolver.resolve(rules, include_dotenv=False, context=roots)
        except ConfigurationError as error:
            raise _malformed(element, error) from error
        declared.update(_declared_names(rules))
    for variable, element in interpreters.items():
        _check_interpreter(variable, element, env, context.project_path)
    return ChainEnvironment(env=env, declared=frozenset(declared))


def _project_variables(path: Path, kept_out: Iterable[str]) -> dict[str, str]:
    if not os.path.lexists(path):
        return {}
    from lilux.runtime.dotenv_file import read_dotenv

    variables = read_dotenv(path)
    for name in kept_out:
        if variables.pop(name, None) is not None:
            import logging

            logging.getLogger(__name__).warning(
                "%s: %s is ignored: it decides which program runs", path, name
            )
    return variables


def _interpreter_variables(chain: Sequence[ChainElement]) -> dict[str, ChainElement]:
    found: dict[str, ChainElement] = {}
    for element in chain:
        rules = element.metadata.env_config or {}
        interpreter = rules.get("interpreter")
        variable = interpreter.get("var") if isinstance(interpreter, Mapping) else None
        if isinstance(variable, str):
            found.setdefault(variable, element)
    return found


def _declared_names(rules: Mapping[str, Any]) -> set[str]:
    """The names that rules which passed the resolver's own check set."""
    interpreter = rules.get("interpreter")
    names = set(rules.get("env") or ())
    return names if interpreter is None else {*names, interpreter["var"]}


def _check_interpreter(
    variable: str, element: ChainElement, env: Mapping[str, str], project: Path
) -> None:
    value = env.get(variable, "")
    if os.sep in value:
        path = project / value
        usable = path.is_file() and os.access(path, os.X_OK)
    else:
        usable = bool(value) and which(value, env) is not None
    if not usable:
        what = f"'{value}' is not an executable here" if value else "nothing was found"
        raise InterpreterMissingError(
            f"the interpreter of '{element.item_id}' ({element.path}) is missing: {what}",
            hint=f"install it, or set {variable} in the env_config of the tool",
        )


def _malformed(element: ChainElement, error: ConfigurationError) -> Exception:
    if element.path is None:
        return error
    return ItemFormatError(element.path, str(error), hint="mend the env_config")
