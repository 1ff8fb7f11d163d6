"""The environment of a job, merged from the system, ``.env``, rules and overrides."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from lilux.primitives.errors import ConfigurationError
from lilux.runtime.env_resolver.config import SPACES, EnvConfig, check_variables, parse_env_config
from lilux.runtime.env_resolver.interpreters import Places, resolve_interpreter
from lilux.templating import Placeholder, env_value, substitute

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class EnvResolver:
    """Resolves environments. It changes no state and starts no process.

    ``environ`` replaces the system environment; by default each call copies ``os.environ``.
    """

    def __init__(
        self,
        project_path: Path | str | None = None,
        *,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._project_path = None if project_path is None else _absolute(project_path)
        self._environ = environ

    def resolve(
        self,
        env_config: Mapping[str, Any] | None = None,
        tool_env: Mapping[str, str] | None = None,
        include_dotenv: bool = True,
        context: Mapping[str, Path | str] | None = None,
    ) -> dict[str, str]:
        """Return a new environment; each step overrides the ones before it.

        1. the system environment
        2. the ``.env`` file of the project, unless ``include_dotenv`` is false
        3. ``env_config``: the interpreter, then the variables of ``env`` in order, each of which
           may refer with ``${VAR:-default}`` to all values set before it
        4. ``tool_env``, literally

        ``context`` gives the roots ``project``, ``user`` and ``system`` of a ``search``; the
        project defaults to ``project_path``, the user to the home folder. An interpreter that is
        not found and has no fallback leaves its variable unchanged. Raises
        :class:`ConfigurationError` naming the malformed field or the unusable ``.env``.
        """
        rules = parse_env_config(env_config)
        overrides = {} if tool_env is None else check_variables(tool_env, "tool_env")
        roots = self._roots(context)
        env = dict(os.environ if self._environ is None else self._environ)
        if include_dotenv and self._project_path is not None:
            from lilux.runtime.env_resolver.dotenv import read_dotenv

            env.update(read_dotenv(self._project_path / ".env"))
        _apply(rules, env, roots)
        env.update(overrides)
        return env

    def _roots(self, context: Mapping[str, Path | str] | None) -> dict[str, Path | None]:
        roots: dict[str, Path | None] = {"project": self._project_path}
        if context is not None and not isinstance(context, Mapping):
            raise ConfigurationError(f"context: expected a mapping, got {type(context).__name__}")
        for space in SPACES:
            root = None if context is None else context.get(space)
            if root is None:
                continue
            if not isinstance(root, str | Path):
                raise ConfigurationError(
                    f"context.{space}: expected a path, got {type(root).__name__}"
                )
            roots[space] = _absolute(root)
        return roots


def _absolute(path: Path | str) -> Path:
    return Path(path).absolute()


def _apply(rules: EnvConfig, env: dict[str, str], roots: dict[str, Path | None]) -> None:
    if rules.interpreter is not None:
        found = resolve_interpreter(rules.interpreter, Places(environ=env, **roots))
        if found is not None:
            env[rules.interpreter.var] = found

    def fill(placeholder: Placeholder) -> str | None:
        return env_value(placeholder, env) if placeholder.kind == "env" else None

    for name, value in rules.env:
        env[name] = substitute(value, fill)
