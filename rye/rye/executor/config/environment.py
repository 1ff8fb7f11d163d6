"""Resolve the environment of a chain: the machine's, ``.env``, and what each element declares."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from lilux.primitives.errors import ConfigurationError
from lilux.record import Record, field
from lilux.runtime.env_resolver import EnvResolver
from lilux.runtime.env_resolver.dotenv import DotenvFile, read_dotenv
from lilux.runtime.env_resolver.interpreters import which
from lilux.templating import Placeholder, substitute

from rye.context import Context
from rye.errors import InterpreterMissingError, ItemFormatError
from rye.executor.config.merge import interpreter_variables
from rye.items.element import ChainElement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class ChainEnvironment(Record, frozen=True, kw_only=True):
    """A complete environment. Values may be secret and are not part of the repr."""

    env: dict[str, str] = field(repr=False)
    declared: frozenset[str]
    """The names that an element of the chain sets."""


class Environments:
    """Resolves environments for an executor; ``.env`` is parsed again only when it changes."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._dotenv = DotenvFile(context.project_path / ".env")

    def resolve(self, chain: Sequence[ChainElement]) -> ChainEnvironment:
        """Like :func:`resolve_chain_env`."""
        return resolve_chain_env(chain, self._context, self._dotenv.variables())


def resolve_chain_env(
    chain: Sequence[ChainElement], context: Context, dotenv: Mapping[str, str] | None = None
) -> ChainEnvironment:
    """Resolve from the primitive to the tool; each element overrides only what it declares.

    ``dotenv`` contains the variables of ``.env``; by default the file is read. Declared values
    take precedence over it, so a tool's ``${VAR}`` sees the values of its runtime. A ``.env``
    comes with a checkout, so it must not choose what runs: ``PATH``, the interpreter variables of
    the chain and the variables in its command are not taken from it. For the same reason, the
    project is searched for interpreters only if the tool belongs to the project, or if a runtime
    is called directly.

    Raises :class:`ItemFormatError` for a malformed ``env_config``,
    :class:`InterpreterMissingError` if an interpreter is not installed, and Lilux's
    ``ConfigurationError`` for an invalid ``.env``.
    """
    interpreters = interpreter_variables(chain)
    env = dict(context.environ)
    variables = read_dotenv(context.project_path / ".env") if dotenv is None else dotenv
    if variables:
        protected = {"PATH", *interpreters, *_variables_of_the_command(chain)}
        env.update(_without(protected, variables, context.project_path))
    project = _searched_project(chain, context)
    roots: dict[str, Path | str] = {
        "user": context.user_space,
        "system": context.system_space,
    }
    declared: set[str] = set()
    for element in reversed(chain):
        rules = element.metadata.env_config
        if rules is None:
            continue
        resolver = EnvResolver(project, environ=env)
        try:
            env = resolver.resolve(rules, include_dotenv=False, context=roots)
        except ConfigurationError as error:
            raise _malformed(element, error) from error
        declared.update(_declared_names(rules))
    for variable, element in interpreters.items():
        _check_interpreter(variable, element, env, context.project_path)
    return ChainEnvironment(env=env, declared=frozenset(declared))


def _searched_project(chain: Sequence[ChainElement], context: Context) -> Path | None:
    """The project, if an interpreter in it may run the chain's tool.

    A ``.venv`` or ``node_modules`` that came with a checkout is not verified. A tool of the project
    runs because the user trusts its signer, and a runtime that is called directly is meant to run
    code in the project. Any other tool that is called inside a checkout must not run the checkout's
    code. A project that is also the user space did not come with a checkout.
    """
    if chain:
        tool = chain[0]
        if tool.space == "project" or tool.metadata.tool_type == "runtime":
            return context.project_path
    return context.project_path if context.project_path == context.user_space else None


def _without(
    protected: Iterable[str], variables: Mapping[str, str], project: Path
) -> dict[str, str]:
    allowed = dict(variables)
    for name in protected:
        if allowed.pop(name, None) is not None:
            import logging

            logging.getLogger(__name__).warning(
                "%s/.env: %s is ignored: it decides which program runs", project, name
            )
    return allowed


def _variables_of_the_command(chain: Sequence[ChainElement]) -> set[str]:
    """The variables in its templates, also through other values or variables."""
    configs = [element.metadata.config for element in chain]
    rules = [(element.metadata.env_config or {}).get("env") for element in chain]
    declared = [one for one in rules if isinstance(one, Mapping)]
    found: dict[str, set[str]] = {"env": set(), "param": {"command"}}
    pending = [command for config in configs for command in _commands(config)]

    def follow(placeholder: Placeholder) -> None:
        kind, name = placeholder.kind, placeholder.name
        if name not in found[kind]:
            found[kind].add(name)
            pending.extend([one.get(name) for one in (declared if kind == "env" else configs)])

    while pending:
        text = pending.pop()
        if isinstance(text, str):
            substitute(text, follow)
    return found["env"]


def _commands(config: Any) -> Iterator[Any]:
    """The values of every key ``command``: an MCP server that a tool calls is a program too."""
    if isinstance(config, Mapping):
        for key, value in config.items():
            if key == "command":
                yield value
            yield from _commands(value)


def _declared_names(rules: Mapping[str, Any]) -> set[str]:
    """The names that ``rules`` set; the resolver has already checked their types."""
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
        problem = f"'{value}' is not an executable on this machine" if value else "none was found"
        raise InterpreterMissingError(
            f"the interpreter of '{element.item_id}' ({element.path}) is missing: {problem}",
            hint=f"install it, or set {variable} in the env_config of the tool",
        )


def _malformed(element: ChainElement, error: ConfigurationError) -> Exception:
    if element.path is None:
        return error
    return ItemFormatError(element.path, error.reason, hint=error.hint or "fix the env_config")
