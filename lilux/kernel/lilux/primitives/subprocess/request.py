"""What ``SubprocessPrimitive.execute`` is asked for, checked and rendered into a request."""

from __future__ import annotations

import os
from collections.abc import Mapping

from lilux.primitives.subprocess.current_environ import current_environ
from lilux.record import Record
from lilux.templating import param_text, render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEFAULT_TIMEOUT = 300
# An environment of at least this many variables is taken to be complete (the specification).
COMPLETE_ENV_SIZE = 50
_PASSED_ON = ("output_limit", "background", "grace", "stdout_file", "stderr_file")
_NUMBER = (int, float)
_KEYS = frozenset(
    ("command", "args", "cwd", "input_data", "env", "env_mode", "timeout", "render", *_PASSED_ON)
)


class ExecRequest(Record, frozen=True, kw_only=True):
    """A request for the helper."""

    fields: Mapping[str, Any]
    input_data: bytes


def exec_request(config: Mapping[str, Any], params: Mapping[str, Any]) -> ExecRequest:
    """Raises ``ValueError`` whose message names the key that is wrong, and no value."""
    for name, given in (("config", config), ("params", params)):
        if not isinstance(given, Mapping):
            raise ValueError(f"{name} must be a mapping, got {type(given).__name__}")
    if not config.keys() <= _KEYS:
        unknown = min(str(key) for key in config if key not in _KEYS)
        raise ValueError(f"unknown config key {unknown!r}; known are {', '.join(sorted(_KEYS))}")
    env = effective_env(config.get("env"), config.get("env_mode"))
    wanted = config
    if config.get("render", True):
        templates = {key: config.get(key) for key in ("command", "args", "cwd", "input_data")}
        wanted = render(templates, params=params, env=env)
    command = _text("command", wanted.get("command"))
    if not command:
        raise ValueError("No command specified")
    fields: dict[str, Any] = {
        "op": "exec",
        "command": command,
        "args": arguments(wanted.get("args")),
        "env": env,
        "env_mode": "exact",
        "timeout": config.get("timeout", DEFAULT_TIMEOUT),
    }
    check_seconds("timeout", fields["timeout"])
    if (cwd := wanted.get("cwd")) not in (None, ""):
        fields["cwd"] = _text("cwd", cwd)
    for key in _PASSED_ON:
        if config.get(key) is not None:
            fields[key] = _passed_on(key, config[key])
    return ExecRequest(fields=fields, input_data=_input(wanted.get("input_data")))


_last_exact: dict[str, str] = {}


def effective_env(env: Any, mode: Any = None) -> Mapping[str, str]:
    """The whole environment of a process; not to be changed.

    ``merge`` lays ``env`` over this process's own, ``exact`` takes it alone; without a mode, an
    environment of 50 variables or more is taken to be exact. One that equals the last is that very
    object, so that it need not be checked or spelled again.
    """
    global _last_exact  # noqa: PLW0603 - a memory of one entry
    if env is None:
        env = {}
    if not isinstance(env, Mapping):
        raise ValueError(f"env must be a mapping of strings, got {type(env).__name__}")
    if mode == "exact" and env == _last_exact:
        return _last_exact
    _check_env(env)
    if mode not in (None, "merge", "exact"):
        raise ValueError("env_mode must be 'merge' or 'exact'")
    if mode == "exact" or (mode is None and len(env) >= COMPLETE_ENV_SIZE):
        _last_exact = dict(env)
        return _last_exact
    return {**current_environ(), **env} if env else current_environ()


def _check_env(env: Mapping[Any, Any]) -> None:
    for name, value in env.items():
        if not isinstance(name, str) or not isinstance(value, str):
            shown = name if isinstance(name, str) else type(name).__name__
            raise ValueError(f"env[{shown!r}] must be a string, got {type(value).__name__}")


def _text(key: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str | os.PathLike):
        return os.fspath(value) if isinstance(value, str) else os.fsdecode(value)
    if isinstance(value, bool | int | float | list | dict):
        return param_text(key, value)
    raise ValueError(f"{key} must be a string, got {type(value).__name__}")


def arguments(args: Any) -> list[str]:
    """The arguments as text; ``ValueError`` names the one that is none."""
    if args is None:
        return []
    if not isinstance(args, list | tuple):
        raise ValueError(f"args must be a list of strings, got {type(args).__name__}")
    return [_text(f"args[{index}]", arg) for index, arg in enumerate(args)]


def _input(data: Any) -> bytes:
    if data is None:
        return b""
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data)
    try:
        return _text("input_data", data).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ValueError("input_data has a lone surrogate, which is no text; pass bytes") from None


def _passed_on(key: str, value: Any) -> Any:
    if key.endswith("file"):
        return path_text(key, value)
    if key == "grace":
        check_seconds(key, value)
    elif key == "output_limit" and (isinstance(value, bool) or not isinstance(value, int)):
        raise ValueError(f"output_limit must be a number of bytes, got {type(value).__name__}")
    elif key == "output_limit" and value < 0:
        raise ValueError("output_limit must be a number of bytes of at least 0")
    elif key == "background" and value not in ("end", "keep"):
        raise ValueError("background must be 'end' or 'keep'")
    return value


def path_text(key: str, value: Any) -> str:
    """A path as text; ``ValueError`` names the key if it is none."""
    if not isinstance(value, str | os.PathLike):
        raise ValueError(f"{key} must be a path, got {type(value).__name__}")
    return os.fsdecode(value)


def check_seconds(key: str, value: Any) -> None:
    """``ValueError`` unless it is a finite number or ``None``; the helper knows the bounds."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, _NUMBER):
        raise ValueError(f"{key} must be a number of seconds, got {type(value).__name__}")
    # Also what JSON has a spelling for, but no number type holds.
    if not -1e15 < value < 1e15:
        raise ValueError(f"{key} must be a finite number of seconds")


def check_pid(pid: Any) -> None:
    """``ValueError`` unless it is a number; the helper knows which numbers are pids."""
    if isinstance(pid, bool) or not isinstance(pid, int):
        raise ValueError(f"pid must be a number, got {type(pid).__name__}")
    if not 0 < pid < 2**31:
        raise ValueError(f"pid must be a positive number below 2147483648, got {pid}")
