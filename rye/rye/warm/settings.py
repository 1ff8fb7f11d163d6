"""The user's settings: ``warm`` in ``~/.ai/config.yaml``.

::

    warm: {enabled: true, idle_seconds: 120, processes: 8, memory: 512MiB}
"""

from __future__ import annotations

from collections.abc import Mapping

from lilux.record import Record

from rye.cache.disk import DiskCache
from rye.context import Context
from rye.errors import SettingsError
from rye.items.permissions import size_of
from rye.items.user_config import CORRECT_IT, UserConfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

MAX_PROCESSES = 256


class WarmSettings(Record, frozen=True, kw_only=True):
    """How many prepared processes there may be, and how long."""

    enabled: bool = True
    idle_seconds: float = 120
    """A process ends after this long without a call."""
    processes: int = 8
    memory: int = 512 * 1024 * 1024
    """Bytes of all of them together."""


class WarmConfig:
    """The settings, read again when the file changes."""

    def __init__(self, context: Context, disk_cache: DiskCache | None = None) -> None:
        self._config = UserConfig(context, disk_cache)
        self._source: object = None
        self._settings = WarmSettings()

    def current(self) -> WarmSettings:
        """The settings. Raises :class:`SettingsError`, and what reading the file raises."""
        config = self._config.current()
        if config is not self._source:
            self._settings = warm_settings(config, self._config.path)
            self._source = config
        return self._settings


def warm_settings(config: Mapping[str, Any], path: Path) -> WarmSettings:
    """The settings in the user's config. Raises :class:`SettingsError` that names the key."""

    def refuse(reason: str) -> SettingsError:
        return SettingsError(f"{path}: {reason}", hint=CORRECT_IT)

    section = config.get("warm")
    if section is None:
        return WarmSettings()
    if not isinstance(section, dict):
        raise refuse("expected a mapping in 'warm'")
    unknown = sorted(set(section) - set(_CHECKS))
    if unknown:
        raise refuse(f"unknown key 'warm.{unknown[0]}'; known are {', '.join(_CHECKS)}")
    values: dict[str, Any] = {}
    for name, value in section.items():
        checked, expected = _CHECKS[name](value)
        if checked is None:
            raise refuse(f"expected {expected} in 'warm.{name}'")
        values[name] = checked
    return WarmSettings(**values)


def _enabled(value: object) -> tuple[object, str]:
    return value if isinstance(value, bool) else None, "true or false"


def _idle_seconds(value: object) -> tuple[object, str]:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 86400:
        value = None
    return value, "a number of seconds up to 86400"


def _processes(value: object) -> tuple[object, str]:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_PROCESSES:
        value = None
    return value, f"a number of processes from 0 to {MAX_PROCESSES}"


def _memory(value: object) -> tuple[object, str]:
    size = size_of(value) if isinstance(value, str) else value
    fits = isinstance(size, int) and not isinstance(size, bool) and size > 0
    return size if fits else None, "a size such as 512MiB"


_CHECKS = {
    "enabled": _enabled,
    "idle_seconds": _idle_seconds,
    "processes": _processes,
    "memory": _memory,
}
