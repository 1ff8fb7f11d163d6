"""The section ``history`` of the user's config.

::

    history:
      enabled: true
      keep: {parameters: ["notes/*"], output: ["rye/bash/*"]}    nothing is kept by default
      retention: {days: 90, runs: 1000000, size: 2GiB}
"""

from __future__ import annotations

import time

from lilux.record import Record

from rye.cache.disk import DiskCache
from rye.context import Context
from rye.errors import HistoryError, PermissionsError
from rye.items.user_config import CORRECT_IT, UserConfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

_UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_MAX_DAYS = 36500
_FRESH_SECONDS = 1.0


class Retention(Record, frozen=True, kw_only=True):
    """How much is kept. What exceeds any of the three is removed, the oldest runs first."""

    days: float = 90
    runs: int = 1_000_000
    size: int = 2 * 2**30
    """Bytes of the database."""


class HistorySettings(Record, frozen=True, kw_only=True):
    """What the user has decided about history."""

    enabled: bool = True
    parameters: tuple[str, ...] = ()
    """Globs of the tools whose parameters are kept."""
    output: tuple[str, ...] = ()
    """Globs of the tools whose output is kept."""
    retention: Retention = Retention()

    def keeps_parameters(self, item_id: str) -> bool:
        """True if the values of the tool's parameters are kept."""
        return _matches(item_id, self.parameters)

    def keeps_output(self, item_id: str) -> bool:
        """True if the tool's output is kept."""
        return _matches(item_id, self.output)


class HistoryConfig:
    """The settings, read again when the file changes."""

    def __init__(self, context: Context, disk_cache: DiskCache | None = None) -> None:
        self._config = UserConfig(context, disk_cache)
        self._source: object = None
        self._settings = HistorySettings()
        self._read_at = -_FRESH_SECONDS

    def current(self) -> HistorySettings:
        """Return the settings of at most a second ago. Raises :class:`HistoryError`."""
        now = time.monotonic()
        if now - self._read_at < _FRESH_SECONDS:
            return self._settings
        try:
            config = self._config.current()
        except PermissionsError as error:
            raise HistoryError(error.reason, hint=error.hint) from None
        if config is not self._source:
            self._settings = _checked(config.get("history"), self._config.path)
            self._source = config
        self._read_at = now
        return self._settings


def _matches(item_id: str, globs: tuple[str, ...]) -> bool:
    if not globs:
        return False
    from fnmatch import fnmatchcase

    return any(fnmatchcase(item_id, glob) for glob in globs)


def _checked(section: object, path: Path) -> HistorySettings:
    def refuse(expected: str, where: str) -> HistoryError:
        return HistoryError(f"{path}: expected {expected} in '{where}'", hint=CORRECT_IT)

    def mapping(value: object, where: str, keys: tuple[str, ...]) -> Mapping[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, dict) or set(value) - set(keys):
            raise refuse(f"only {', '.join(keys)}", where)
        return value

    def globs(value: object, where: str) -> tuple[str, ...]:
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise refuse("a list of tools, such as rye/bash/*,", where)
        return tuple(value)

    history = mapping(section, "history", ("enabled", "keep", "retention"))
    enabled = history.get("enabled", True)
    if not isinstance(enabled, bool):
        raise refuse("true or false", "history.enabled")
    keep = mapping(history.get("keep"), "history.keep", ("parameters", "output"))
    kept = mapping(history.get("retention"), "history.retention", ("days", "runs", "size"))
    default = Retention()
    days, runs = kept.get("days", default.days), kept.get("runs", default.runs)
    if isinstance(days, bool) or not isinstance(days, int | float) or not 0 < days <= _MAX_DAYS:
        raise refuse("a number of days", "history.retention.days")
    if isinstance(runs, bool) or not isinstance(runs, int) or runs < 1:
        raise refuse("a number of runs", "history.retention.runs")
    size = parse_size(kept.get("size", default.size))
    if size is None:
        raise refuse("a size such as 500MiB or 2GiB", "history.retention.size")
    return HistorySettings(
        enabled=enabled,
        parameters=globs(keep.get("parameters"), "history.keep.parameters"),
        output=globs(keep.get("output"), "history.keep.output"),
        retention=Retention(days=days, runs=runs, size=size),
    )


def parse_size(value: object) -> int | None:
    """Return a number of bytes, or a text such as ``2GiB``, as bytes; ``None`` if it is neither."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value if value > 0 else None
    if not isinstance(value, str):
        return None
    number, unit = value[:-3].strip(), value[-3:]
    if unit not in _UNITS or not number.isascii() or not number.isdigit() or not int(number):
        return None
    return int(number) * _UNITS[unit]
