"""The user's own settings: ``permissions`` and ``grants`` in ``~/.ai/config.yaml``.

::

    permissions: {unenforced: refuse}
    grants:
      - tools: ["rye/bash/*"]
        signer: d201459c78c73a0c
        net: ["api.github.com:443"]
        write: ["~/work"]

Only this file can widen what tools may do for good. A project has a file of the same name, which is
not read here.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lilux.record import Record

from rye.cache.disk import DiskCache
from rye.context import Context
from rye.errors import PermissionsError
from rye.items.permissions import Permissions, permissions_from
from rye.items.user_config import CORRECT_IT, UserConfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

REFUSE, ALLOW = "refuse", "allow"
WARN = "warn"
"""Run, and say what is not enforced: only for a person who waits for the result."""


class Grant(Record, frozen=True, kw_only=True):
    """What the user allows some tools in addition to their permissions."""

    tools: tuple[str, ...]
    """Ids and globs."""
    signer: str
    """The fingerprint of the key that must have signed the tool; empty for any key."""
    permissions: Permissions

    def covers(self, item_id: str, signer: str) -> bool:
        """True if the grant is for this tool."""
        from fnmatch import fnmatchcase

        if self.signer and self.signer != signer:
            return False
        return any(fnmatchcase(item_id, glob) for glob in self.tools)


class Settings(Record, frozen=True, kw_only=True):
    """What the user has decided."""

    unenforced: str = ""
    """``refuse`` or ``allow``; empty if the user has not decided."""
    grants: tuple[Grant, ...] = ()

    def granted(self, item_id: str, signer: str) -> list[Permissions]:
        """What the user grants to the tool."""
        return [one.permissions for one in self.grants if one.covers(item_id, signer)]


class UserSettings:
    """The settings, read again when the file changes."""

    def __init__(self, context: Context, disk_cache: DiskCache | None = None) -> None:
        self._config = UserConfig(context, disk_cache)
        self._source: object = None
        self._content = Settings()

    def current(self) -> Settings:
        """The settings now. Raises :class:`PermissionsError`."""
        config = self._config.current()
        if config is not self._source:
            self._content = _checked(config, self._config.path)
            self._source = config
        return self._content


def _checked(config: Mapping[str, Any], path: Path) -> Settings:
    grants = config.get("grants")
    if grants is None:
        grants = []
    if not isinstance(grants, list):
        raise PermissionsError(f"{path}: expected a list in 'grants'", hint=CORRECT_IT)
    return Settings(
        unenforced=_unenforced(config.get("permissions"), path),
        grants=tuple([_grant(one, f"grants[{at}]", path) for at, one in enumerate(grants)]),
    )


def _unenforced(section: object, path: Path) -> str:
    if section is None:
        return ""
    if not isinstance(section, dict) or set(section) - {"unenforced"}:
        raise PermissionsError(
            f"{path}: expected {{unenforced: …}} in 'permissions'", hint=CORRECT_IT
        )
    value = section.get("unenforced")
    if value not in (None, REFUSE, ALLOW):
        raise PermissionsError(
            f"{path}: expected refuse or allow in 'permissions.unenforced'", hint=CORRECT_IT
        )
    return value or ""


def _grant(value: object, where: str, path: Path) -> Grant:
    def refuse(reason: str) -> PermissionsError:
        return PermissionsError(f"{path}: {reason}", hint=CORRECT_IT)

    if not isinstance(value, dict):
        raise refuse(f"expected a mapping in '{where}'")
    rest = dict(value)
    tools, signer = rest.pop("tools", None), rest.pop("signer", "")
    if not isinstance(tools, list) or not tools or not all(isinstance(one, str) for one in tools):
        raise refuse(f"expected a list of tools, such as rye/bash/*, in '{where}.tools'")
    if not isinstance(signer, str):
        raise refuse(f"expected a fingerprint in quotes in '{where}.signer'")
    permissions, fault = permissions_from(rest, where)
    if fault:
        raise refuse(fault)
    return Grant(tools=tuple(tools), signer=signer, permissions=permissions)
