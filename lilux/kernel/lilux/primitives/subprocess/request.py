"""Checks the arguments of the process primitive and renders them into requests."""

from __future__ import annotations

import os
from collections.abc import Mapping

from lilux.primitives.subprocess.wire import Encoded
from lilux.record import Record
from lilux.templating import param_text, render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEFAULT_TIMEOUT = 300
# The specification takes an environment of at least this many variables to be complete.
COMPLETE_ENV_SIZE = 50
_OPTIONS = (
    "output_limit",
    "background",
    "grace",
    "stdout_file",
    "stderr_file",
    "autopsy",
    "autopsy_budget",
)
_NUMBER = (int, float)
_TEMPLATES = ("command", "args", "cwd", "input_data")
_KEYS = frozenset(
    (
        *(*_TEMPLATES, "env", "env_mode", "timeout", "render"),
        *("confinement", "observe", *_OPTIONS),
    )
)


class ExecRequest(Record, frozen=True, kw_only=True):
    """A request to run a command."""

    fields: Mapping[str, Any]
    input_data: bytes


def exec_request(config: Mapping[str, Any], params: Mapping[str, Any]) -> ExecRequest:
    """Return the request for ``config``.

    Raises ``ValueError`` whose message names the invalid key, but never its value.
    """
    for name, given in (("config", config), ("params", params)):
        if not isinstance(given, Mapping):
            raise ValueError(f"{name} must be a mapping, got {type(given).__name__}")
    if not config.keys() <= _KEYS:
        unknown = min(str(key) for key in config if key not in _KEYS)
        raise ValueError(f"unknown config key {unknown!r}; known are {', '.join(sorted(_KEYS))}")
    env = effective_env(config.get("env"), config.get("env_mode"))
    rendered = config
    if config.get("render", True):
        templates = {key: config[key] for key in _TEMPLATES if key in config}
        rendered = render(templates, params=params, env=env)
    command = _text("command", rendered.get("command"))
    if not command:
        raise ValueError("No command specified")
    fields: dict[str, Any] = {
        "op": "exec",
        "command": command,
        "args": arguments(rendered.get("args")),
        "env": env,
        "env_mode": "exact",
        "timeout": config.get("timeout", DEFAULT_TIMEOUT),
    }
    check_seconds("timeout", fields["timeout"])
    if (cwd := rendered.get("cwd")) not in (None, ""):
        fields["cwd"] = _text("cwd", cwd)
    for key in _OPTIONS:
        if config.get(key) is not None:
            fields[key] = _checked_option(key, config[key])
    if (confinement := config.get("confinement")) is not None:
        # Imported here, because few jobs are confined and a short program imports little.
        from lilux.primitives.subprocess.confinement import confinement_fields

        fields["confinement"] = confinement_fields(confinement)
    if (observe := config.get("observe")) is not None:
        if not isinstance(observe, bool):
            raise ValueError(f"observe must be true or false, got {type(observe).__name__}")
        fields["observe"] = observe
    return ExecRequest(fields=fields, input_data=_input(rendered.get("input_data")))


def asking_for_autopsy(fields: Mapping[str, Any], receiver: object) -> Mapping[str, Any]:
    """Ask for an autopsy also before a cancelled job is ended, if there is a receiver for it."""
    return fields if receiver is None else {"autopsy": "always", **fields}


def effective_env(env: Any, mode: Any = None) -> Encoded:
    """Return the complete environment of a process; it must not be changed.

    ``merge`` updates the environment of this process with ``env``; ``exact`` takes ``env`` alone.
    Without a mode, an environment of 50 variables or more is exact.
    """
    if env is None:
        env = {}
    if not isinstance(env, Mapping):
        raise ValueError(f"env must be a mapping of strings, got {type(env).__name__}")
    # A copy: the caller may change the original, also while it is compared.
    own = dict(env)
    last = _kept.last
    is_last = own == last
    if not is_last:
        _check_env(own)
    if mode not in (None, "merge", "exact"):
        raise ValueError("env_mode must be 'merge' or 'exact'")
    if mode != "exact" and (mode is not None or len(own) < COMPLETE_ENV_SIZE):
        inherited = _own_env()
        if not own:
            return inherited
        own = {**inherited, **own}
        is_last = own == last
    if is_last:
        return last
    _kept.last = complete = Encoded(own)
    return complete


class _Kept:
    """Environments that stay encoded, because consecutive jobs often have the same one."""

    __slots__ = ("inherited", "last")

    def __init__(self) -> None:
        self.last = Encoded({})
        self.inherited: tuple[dict[bytes, bytes], Encoded] = ({}, Encoded({}))


_kept = _Kept()


def _own_env() -> Encoded:
    """Return the environment of this process, decoded and encoded again only after a change."""
    # `os.environ` decodes each value on each access, and has no other way to notice a change.
    data = getattr(os.environ, "_data", None)
    if not isinstance(data, dict):
        return Encoded(os.environ)
    before, decoded = _kept.inherited
    if data != before:
        before = data.copy()
        decoded = Encoded({os.fsdecode(name): os.fsdecode(value) for name, value in before.items()})
        _kept.inherited = (before, decoded)
    return decoded


def _check_env(env: dict[Any, Any]) -> None:
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
    """Return the arguments as text. Raises ``ValueError`` that names an invalid one."""
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
        raise ValueError("input_data has a lone surrogate; pass bytes") from None


def _checked_option(key: str, value: Any) -> Any:
    if key.endswith("file"):
        return path_text(key, value)
    if key in ("grace", "autopsy_budget"):
        check_seconds(key, value)
    elif key == "output_limit" and (isinstance(value, bool) or not isinstance(value, int)):
        raise ValueError(f"output_limit must be a number of bytes, got {type(value).__name__}")
    elif key == "output_limit" and value < 0:
        raise ValueError("output_limit must be a number of bytes of at least 0")
    elif key == "background" and value not in ("end", "keep"):
        raise ValueError("background must be 'end' or 'keep'")
    elif key == "autopsy" and value not in ("timeout", "always", "never"):
        raise ValueError("autopsy must be 'timeout', 'always' or 'never'")
    return value


def path_text(key: str, value: Any) -> str:
    """Return a path as text. Raises ``ValueError`` that names the key."""
    if not isinstance(value, str | os.PathLike):
        raise ValueError(f"{key} must be a path, got {type(value).__name__}")
    return os.fsdecode(value)


def check_seconds(key: str, value: Any) -> None:
    """Raise ``ValueError`` unless it is finite or ``None``; the helper checks the range."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, _NUMBER):
        raise ValueError(f"{key} must be a number of seconds, got {type(value).__name__}")
    # Also excludes integers that the helper cannot represent.
    if not -1e15 < value < 1e15:
        raise ValueError(f"{key} must be a finite number of seconds")


def check_pid(pid: Any) -> None:
    """Raise ``ValueError`` unless it is a number that can be a pid."""
    if isinstance(pid, bool) or not isinstance(pid, int):
        raise ValueError(f"pid must be a number, got {type(pid).__name__}")
    if not 0 < pid < 2**31:
        raise ValueError(f"pid must be a positive number below 2147483648, got {pid}")
