"""Parsing of ``env_config`` into frozen rules."""

from __future__ import annotations

import os
from collections.abc import Mapping

from lilux.primitives.errors import ConfigurationError
from lilux.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

SPACES = ("project", "user", "system")
MANAGERS = ("pyenv", "nvm", "rbenv", "asdf", "mise")


class VenvPython(Record, frozen=True, kw_only=True):
    """The Python of a virtual environment, searched for in each space of ``search``."""

    venv_path: str = ".venv"
    search: tuple[str, ...] = ("project",)


class NodeModules(Record, frozen=True, kw_only=True):
    """The node in ``node_modules/.bin`` below each of ``search_paths``."""

    search_paths: tuple[str, ...] = (".",)


class SystemBinary(Record, frozen=True, kw_only=True):
    """A program on PATH, or its path."""

    binary: str


class VersionManager(Record, frozen=True, kw_only=True):
    """An interpreter of a version manager; without ``version``, the one that its files select."""

    manager: str
    version: str | None = None
    tool: str | None = None


Strategy = VenvPython | NodeModules | SystemBinary | VersionManager


class InterpreterRule(Record, frozen=True, kw_only=True):
    """Sets ``var`` to the path that ``strategy`` finds, or else to ``fallback``."""

    var: str
    strategy: Strategy
    fallback: str | None = None


class EnvConfig(Record, frozen=True, kw_only=True):
    """The rules, in the order in which they apply: the interpreter, then the variables."""

    interpreter: InterpreterRule | None = None
    env: tuple[tuple[str, str], ...] = ()


_KEYS = {
    "venv_python": ("venv_path", "search"),
    "node_modules": ("search_paths",),
    "system_binary": ("binary",),
    "version_manager": ("manager", "version", "tool"),
}


def parse_env_config(config: Mapping[str, Any] | None) -> EnvConfig:
    """Parse ``config``; raises :class:`ConfigurationError` naming the malformed field."""
    if config is None:
        return EnvConfig()
    fields = _mapping(config, "env_config", allowed=("interpreter", "env"))
    interpreter, env = fields.get("interpreter"), fields.get("env")
    return EnvConfig(
        interpreter=None if interpreter is None else _interpreter(interpreter),
        env=() if env is None else tuple(check_variables(env, "env_config.env").items()),
    )


def check_variables(variables: Any, where: str) -> dict[str, str]:
    """Return ``variables`` as a dict; every name and value must be valid in an environment."""
    return {
        _variable_name(name, where): _text(value, f"{where}.{name}", empty=True)
        for name, value in _mapping(variables, where).items()
    }


def _interpreter(config: Any) -> InterpreterRule:
    where = "env_config.interpreter"
    kind = _mapping(config, where).get("type")
    if not isinstance(kind, str) or kind not in _KEYS:
        _refuse(f"{where}.type", f"expected one of {', '.join(_KEYS)}")
    fields = _mapping(config, where, allowed=("type", "var", "fallback", *_KEYS[kind]))
    if "var" not in fields:
        _refuse(f"{where}.var", "missing", "name the variable to set")
    fallback = fields.get("fallback")
    return InterpreterRule(
        var=_variable_name(_text(fields["var"], f"{where}.var"), f"{where}.var"),
        strategy=_strategy(kind, fields, where),
        fallback=None if fallback is None else _text(fallback, f"{where}.fallback"),
    )


def _strategy(kind: str, fields: Mapping[str, Any], where: str) -> Strategy:
    given = {key: fields[key] for key in _KEYS[kind] if fields.get(key) is not None}
    if kind == "venv_python":
        search = _texts(given.get("search", VenvPython().search), f"{where}.search")
        for space in search:
            _one_of(space, SPACES, f"{where}.search")
        path = _path_text(given.get("venv_path", VenvPython().venv_path), f"{where}.venv_path")
        return VenvPython(venv_path=path, search=search)
    if kind == "node_modules":
        paths = given.get("search_paths", NodeModules().search_paths)
        return NodeModules(search_paths=_texts(paths, f"{where}.search_paths"))
    required = "binary" if kind == "system_binary" else "manager"
    if required not in given:
        _refuse(f"{where}.{required}", "missing", f"{kind} requires it")
    if kind == "system_binary":
        return SystemBinary(binary=_text(given["binary"], f"{where}.binary"))
    return _version_manager(given, where)


def _version_manager(given: Mapping[str, Any], where: str) -> VersionManager:
    version, tool = given.get("version"), given.get("tool")
    if type(version) is int:  # `version: 20` is exact; 3.10 as a number would be 3.1
        version = str(version)
    return VersionManager(
        manager=_one_of(given["manager"], MANAGERS, f"{where}.manager"),
        version=None if version is None else _text(version, f"{where}.version"),
        tool=None if tool is None else _text(tool, f"{where}.tool"),
    )


def _mapping(value: Any, where: str, allowed: tuple[str, ...] | None = None) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        _refuse(where, f"expected a mapping, got {type(value).__name__}")
    for key in value:
        if not isinstance(key, str):
            _refuse(
                where, f"expected names that are strings, got {type(key).__name__}", "quote them"
            )
        if allowed is not None and key not in allowed:
            _refuse(f"{where}.{key}", "unknown field", f"expected one of {', '.join(allowed)}")
    return value


def _text(value: Any, where: str, *, empty: bool = False) -> str:
    if not isinstance(value, str):
        _refuse(where, f"expected a string, got {type(value).__name__}", "quote it")
    if not value and not empty:
        _refuse(where, "expected a string, got an empty one")
    if "\0" in value:
        _refuse(where, "contains a NUL character", "remove it")
    return value


def _path_text(value: Any, where: str) -> str:
    return _text(os.fsdecode(value) if isinstance(value, os.PathLike) else value, where)


def _texts(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        _refuse(where, f"expected a list, got {type(value).__name__}")
    return tuple(_path_text(item, f"{where}[{index}]") for index, item in enumerate(value))


def _one_of(value: Any, choices: tuple[str, ...], where: str) -> str:
    if not isinstance(value, str) or value not in choices:
        _refuse(where, f"expected one of {', '.join(choices)}")
    return value


def _variable_name(name: str, where: str) -> str:
    if not name or "=" in name or "\0" in name:
        _refuse(where, f"{name!r} is not a valid variable name", "choose another")
    return name


def _refuse(where: str, reason: str, hint: str = "") -> NoReturn:
    raise ConfigurationError(f"{where}: {reason}", hint=hint)
