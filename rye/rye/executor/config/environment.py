"""The environment of a chain: the machine's, ``.env``, and what each element declares."""

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
from rye.executor.caches import BoundedDict
from rye.items.element import ChainElement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class ChainEnvironment(Record, frozen=True, kw_only=True):
    """A complete environment; values may be secrets and stay out of the repr."""

    env: dict[str, str] = field(repr=False)
    declared: frozenset[str]
    """The names that an element of the chain sets."""


class Environments:
    """The environments of chains, each asked for again and again.

    What does not change is the same object every time, so that its form on the wire, the largest
    part of a request, need not be made again.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._dotenv = DotenvFile(context.project_path / ".env")
        self._undeclared: tuple[dict[str, str], ChainEnvironment] | None = None
        self._known: dict[str, ChainEnvironment] = BoundedDict()

    def resolve(self, chain: Sequence[ChainElement]) -> ChainEnvironment:
        """Like :func:`resolve_chain_env`. Not to be changed."""
        variables = self._dotenv.variables()
        for element in chain:
            if element.metadata.env_config is not None:
                break
            # A template of a command may name a variable that no .env may set.
            if any("{" in str(command) for command in _commands(element.metadata.config)):
                break
        else:
            return self._resolve_undeclared(variables)
        found = resolve_chain_env(chain, self._context, variables)
        known = self._known.get(chain[0].item_id)
        if known == found:
            return known
        self._known[chain[0].item_id] = found
        return found

    def _resolve_undeclared(self, variables: dict[str, str]) -> ChainEnvironment:
        """One for all chains that declare nothing."""
        if self._undeclared is None or self._undeclared[0] is not variables:
            self._undeclared = (variables, resolve_chain_env((), self._context, variables))
        return self._undeclared[1]


def resolve_chain_env(
    chain: Sequence[ChainElement], context: Context, dotenv: Mapping[str, str] | None = None
) -> ChainEnvironment:
    """Go from the primitive to the tool; each element overrides only what it declares.

    ``dotenv`` are the variables of ``.env``, by default read now. They stand below everything that
    is declared, so a tool's ``${VAR}`` sees the values of its runtime. Since a ``.env`` comes with
    a checkout, it may not choose what is run: ``PATH``, the interpreter variables of the chain and
    whatever its command is made of are not taken from it. For the same reason, interpreters are
    looked for in the project only for a tool of the project, or for a runtime run by itself.

    Raises :class:`ItemFormatError` for a malformed ``env_config``,
    :class:`InterpreterMissingError` for an interpreter that is not on this machine, and Lilux's
    ``ConfigurationError`` for a ``.env`` that cannot be used.
    """
    interpreters = _interpreter_variables(chain)
    env = dict(context.environ)
    variables = read_dotenv(context.project_path / ".env") if dotenv is None else dotenv
    kept_out = {"PATH", *interpreters, *_variables_of_the_command(chain)}
    env.update(_without(kept_out, variables, context.project_path))
    project = _project_for(chain, context)
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


def _project_for(chain: Sequence[ChainElement], context: Context) -> Path | None:
    """The project, if what it brings may run on behalf of the chain's tool.

    Nobody has verified a ``.venv`` or ``node_modules`` that came with a checkout. A tool of the
    project runs because the user trusts who signed it there, and a runtime by itself is asked to
    run code in the project. But calling any other tool inside a checkout must not run the
    checkout's code. A project that is the user space came with no checkout.
    """
    if chain:
        tool = chain[0]
        if tool.space == "project" or tool.metadata.tool_type == "runtime":
            return context.project_path
    return context.project_path if context.project_path == context.user_space else None


def _without(
    kept_out: Iterable[str], variables: Mapping[str, str], project: Path
) -> dict[str, str]:
    allowed = dict(variables)
    for name in kept_out:
        if allowed.pop(name, None) is not None:
            import logging

            logging.getLogger(__name__).warning(
                "%s/.env: %s is ignored: it decides which program runs", project, name
            )
    return allowed


def _interpreter_variables(chain: Sequence[ChainElement]) -> dict[str, ChainElement]:
    found: dict[str, ChainElement] = {}
    for element in chain:
        rules = element.metadata.env_config or {}
        interpreter = rules.get("interpreter")
        variable = interpreter.get("var") if isinstance(interpreter, Mapping) else None
        if isinstance(variable, str):
            found.setdefault(variable, element)
    return found


def _variables_of_the_command(chain: Sequence[ChainElement]) -> set[str]:
    """Those that its templates name, be it by way of another value or another variable."""
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
    """The values of all keys of that name: a server that a tool calls is a program as well."""
    if isinstance(config, Mapping):
        for key, value in config.items():
            if key == "command":
                yield value
            yield from _commands(value)


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
