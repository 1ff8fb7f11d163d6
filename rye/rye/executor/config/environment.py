"""Resolve the environment of a chain: the machine's, ``.env``, and what each element declares."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from lilux.primitives.errors import ConfigurationError
from lilux.record import Record, field
from lilux.runtime.env_resolver import EnvResolver
from lilux.runtime.env_resolver.dotenv import DotenvFile
from lilux.runtime.env_resolver.interpreters import which

from rye.cache.disk import DiskCache
from rye.context import Context
from rye.errors import InterpreterMissingError, ItemFormatError
from rye.executor.caches import BoundedDict
from rye.executor.config.asked_names import AskedNames, asked_names
from rye.executor.config.merge import interpreter_variables, variables_of
from rye.executor.config.project_gate import ProjectGate
from rye.items.element import ChainElement
from rye.spaces.bundles import OWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rye.executor.config.shims import Shims

_PARAMETER_VARIABLES = "RYE_PARAM_"
"""How a runtime passes parameters: a variable of the caller must not look like one."""
_SHIMS = f"{os.sep}shims"
"""Where version managers put their shims; without it in a path, their module is not loaded."""


class ChainEnvironment(Record, frozen=True, kw_only=True):
    """A complete environment. Values may be secret and are not part of the repr."""

    env: dict[str, str] = field(repr=False)
    declared: frozenset[str]
    """The names that an element of the chain sets."""


class Environments:
    """Resolves environments for an executor, which calls the same chains again and again.

    What a chain asks for is kept until the chain is built again; ``.env`` is parsed again only when
    it changes.
    """

    def __init__(self, context: Context, disk_cache: DiskCache | None = None) -> None:
        self._context = context
        self._dotenv = DotenvFile(context.project_path / ".env")
        self._machine = {
            name: value
            for name, value in context.environ.items()
            if not name.startswith(_PARAMETER_VARIABLES)
        }
        self._roots: dict[str, Path | str] = {
            "user": context.user_space,
            "system": context.system_space,
        }
        self._disk_cache = disk_cache
        self._gate = ProjectGate(context)
        self._shims: Shims | None = None
        self._known: dict[str, _ChainRules] = BoundedDict()

    def resolve(self, chain: Sequence[ChainElement]) -> ChainEnvironment:
        """Resolve from the primitive to the tool; each element overrides only what it declares.

        A ``.env`` supplies only names that the chain asks for. Declared values take precedence
        over it, so a tool's ``${VAR}`` sees the values of its runtime. Interpreters are found
        without it. What the chain uses of ``.env``, or of programs and packages in the project,
        needs the user's approval of the project.

        Raises :class:`ItemFormatError` for a malformed ``env_config``,
        :class:`InterpreterMissingError` if an interpreter is not installed,
        :class:`UnapprovedProjectError`, and Lilux's ``ConfigurationError`` for an invalid ``.env``
        that the chain would use.
        """
        rules = self._rules(chain)
        project = searched_project(chain, self._context)
        programs: dict[int, str] = {}
        env = self._apply(chain, self._machine, project, programs)
        supplied = self._supplied(rules.asked)
        # One approval covers all parts, so one check is enough.
        if supplied:
            self._gate.admit_dotenv(chain, supplied, self._dotenv.variables())
            env = self._apply(chain, {**self._machine, **supplied}, project, programs)
        else:
            found = [env.get(name, "") for name in rules.interpreters]
            self._gate.admit_programs(chain, found, project, self._dotenv.variables)
        for variable, element in rules.interpreters.items():
            _check_interpreter(variable, element, env, self._context.project_path)
        return ChainEnvironment(env=env, declared=rules.declared)

    def admit_pinned(self, chain: Sequence[ChainElement], name: str) -> None:
        """Raise :class:`UnapprovedProjectError` unless the user approved the pinned file's project.

        ``name`` is relative to the project.
        """
        self._gate.admit_pinned(chain, name, self._dotenv.variables)

    def behind_command(self, chain: Sequence[ChainElement], command: str, path: str) -> str:
        """Return the program behind a command that is a shim on ``path``, or else the command.

        Raises :class:`InterpreterMissingError` for a shim that leads to no program.
        """
        if os.sep in command or _SHIMS not in path:
            return command
        shim = str(which(command, {"PATH": path}) or "")
        program, problem = self._behind_shim(shim, searched_project(chain, self._context))
        if problem:
            raise InterpreterMissingError(
                f"the program of '{chain[0].item_id}' is missing: {problem}",
                hint="install it, or choose another version",
            )
        return command if program == shim else program

    def unasked(self, chain: Sequence[ChainElement]) -> list[str]:
        """The names in ``.env`` that the chain could ask for, but does not.

        None if the file cannot be read.
        """
        try:
            variables = self._dotenv.variables()
        except ConfigurationError:
            return []
        asked = self._rules(chain).asked
        return [name for name in variables if asked.lacks(name)]

    def _rules(self, chain: Sequence[ChainElement]) -> _ChainRules:
        tool = chain[0].item_id if chain else ""
        known = self._known.get(tool)
        if known is None or known.chain is not chain:
            known = self._known[tool] = _ChainRules(
                chain=chain,
                asked=asked_names(chain),
                interpreters=interpreter_variables(chain),
                declared=_declared_names(chain),
            )
        return known

    def _supplied(self, asked: AskedNames) -> dict[str, str]:
        """The variables of ``.env`` that a chain takes; a refused one is logged."""
        supplied: dict[str, str] = {}
        for name, value in self._dotenv.variables().items() if asked else ():
            if asked.takes(name):
                supplied[name] = value
            elif asked.names_it(name):
                import logging

                logging.getLogger(__name__).warning(
                    "%s: %s is ignored: it decides which program runs", self._dotenv.path, name
                )
        return supplied

    def _apply(
        self,
        chain: Sequence[ChainElement],
        env: dict[str, str],
        project: Path | None,
        programs: dict[int, str],
    ) -> dict[str, str]:
        """A new environment; ``programs`` has the interpreters of the levels, and gets new ones."""
        for level in reversed(range(len(chain))):
            element = chain[level]
            rules = element.metadata.env_config
            if rules is None:
                continue
            interpreter = rules.get("interpreter")
            if interpreter is None:
                env = self._resolved(element, rules, env, project)
                continue
            if level not in programs and _runs_on_own_python(chain[0], element, interpreter):
                programs[level] = sys.executable
            if level not in programs:
                resolved = self._resolved(element, rules, env, project)
                found = resolved.get(interpreter["var"], "")
                programs[level], problem = self._behind_shim(found, project)
                if problem:
                    raise _missing(element, problem, interpreter["var"])
                if programs[level] == found:
                    env = resolved
                    continue
            env = {**env, interpreter["var"]: programs[level]}
            env = self._resolved(element, {**rules, "interpreter": None}, env, project)
        return dict(env) if env is self._machine else env

    def _behind_shim(self, path: str, project: Path | None) -> tuple[str, str]:
        """The program behind ``path`` and an empty text, or why there is none."""
        # What a project has in a folder `shims` is a program like any other of an unsigned part.
        if _SHIMS not in path or self._gate.is_inside(path):
            return path, ""
        from rye.executor.config.shims import NoProgramError, Shims

        if self._shims is None:
            self._shims = Shims(self._machine, self._disk_cache)
        try:
            return self._shims.program(path, project), ""
        except NoProgramError as error:
            return "", f"{path}: {error}"

    def _resolved(
        self,
        element: ChainElement,
        rules: Mapping[str, Any],
        env: dict[str, str],
        project: Path | None,
    ) -> dict[str, str]:
        resolver = EnvResolver(project, environ=env)
        try:
            return resolver.resolve(rules, include_dotenv=False, context=self._roots)
        except ConfigurationError as error:
            raise _malformed(element, error) from error


class _ChainRules(Record, frozen=True, kw_only=True):
    """What the metadata of a chain says about its environment."""

    chain: Sequence[ChainElement]
    asked: AskedNames
    interpreters: Mapping[str, ChainElement]
    declared: frozenset[str]


def resolve_chain_env(chain: Sequence[ChainElement], context: Context) -> ChainEnvironment:
    """Resolve one environment, as :meth:`Environments.resolve` does."""
    return Environments(context).resolve(chain)


def searched_project(chain: Sequence[ChainElement], context: Context) -> Path | None:
    """The project, if an interpreter in it or its version files may choose what runs the tool.

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


def _runs_on_own_python(tool: ChainElement, element: ChainElement, interpreter: Any) -> bool:
    """True if the interpreter that runs Rye is the one that ``element`` looks for.

    It is for the Python tools that ship with Rye, and for a runtime of Rye that searches only the
    system space. A runtime that is called directly runs code in the project. The program of a
    process that embeds Python is not an interpreter.
    """
    if not isinstance(interpreter, Mapping) or interpreter.get("type") != "venv_python":
        return False
    shipped = tool.resolution.space.bundle == OWN and tool.metadata.tool_type != "runtime"
    only_system = element.resolution.space.bundle == OWN and interpreter.get("search") == ["system"]
    name = os.path.basename(sys.executable or "")  # noqa: PTH119 - a text
    return (shipped or only_system) and name.startswith(("python", "pypy"))


def _declared_names(chain: Sequence[ChainElement]) -> frozenset[str]:
    names = [name for element in chain for name in variables_of(element)]
    return frozenset([*names, *interpreter_variables(chain)])


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
        raise _missing(element, problem, variable)


def _missing(element: ChainElement, problem: str, variable: str) -> InterpreterMissingError:
    return InterpreterMissingError(
        f"the interpreter of '{element.item_id}' ({element.path}) is missing: {problem}",
        hint=f"install it, or set {variable} in the env_config of the tool",
        variable=variable,
    )


def _malformed(element: ChainElement, error: ConfigurationError) -> Exception:
    if element.path is None:
        return error
    return ItemFormatError(element.path, error.reason, hint=error.hint or "fix the env_config")
