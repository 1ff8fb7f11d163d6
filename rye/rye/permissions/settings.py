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

import os
from pathlib import Path

from lilux.files.bounded_read import FileTooLargeError, read_bounded
from lilux.record import Record
from lilux.sha256 import sha256

from rye.cache.disk import DiskCache
from rye.context import Context
from rye.errors import ItemFormatError, PermissionsError
from rye.items.permissions import (
    Permissions,
    permissions_from,
    permissions_from_json,
    permissions_to_json,
)
from rye.ownership import guard, guard_above

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

REFUSE, ALLOW = "refuse", "allow"
WARN = "warn"
"""Run, and say what is not enforced: only for a person who waits for the result."""

_MAX_BYTES = 256 * 1024
_KIND = "grants"
_HINT = "correct it"


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


class _Content(Record, frozen=True, kw_only=True):
    unenforced: str = ""
    grants: tuple[Grant, ...] = ()


class UserSettings:
    """The settings, read again when the file changes."""

    def __init__(self, context: Context, disk_cache: DiskCache | None = None) -> None:
        self.path = context.user_space / ".ai" / "config.yaml"
        self._name = str(self.path)
        self._disk_cache = disk_cache
        self._stamp: object = None
        self._content = _Content()

    @property
    def unenforced(self) -> str:
        """``refuse`` or ``allow``; empty if the user has not decided."""
        return self._current().unenforced

    def granted(self, item_id: str, signer: str) -> list[Permissions]:
        """What the user grants to the tool. Raises :class:`PermissionsError`."""
        grants = self._current().grants
        return [one.permissions for one in grants if one.covers(item_id, signer)]

    def _current(self) -> _Content:
        try:
            status = os.stat(self._name)  # noqa: PTH116 - on the way of each call
        except FileNotFoundError:
            self._stamp, self._content = None, _Content()
            return self._content
        except OSError as error:
            raise self._unusable((error.strerror or "cannot be read").lower()) from None
        stamp = (status.st_mtime_ns, status.st_size, status.st_ino, status.st_uid, status.st_mode)
        if stamp != self._stamp:
            fault = guard(self.path, status) or guard_above(self.path)
            if fault:
                raise PermissionsError(fault)
            self._content = self._read()
            self._stamp = stamp
        return self._content

    def _read(self) -> _Content:
        try:
            data = read_bounded(self._name, _MAX_BYTES)
        except (OSError, FileTooLargeError) as error:
            raise self._unusable(str(error)) from None
        digest = sha256(data).hexdigest()
        kept = None if self._disk_cache is None else self._disk_cache.recall(_KIND, digest)
        if isinstance(kept, dict):
            return _from_json(kept)
        content = _parsed(data, self.path)
        if self._disk_cache is not None:
            self._disk_cache.keep(_KIND, digest, _to_json(content))
        return content

    def _unusable(self, reason: str) -> PermissionsError:
        return PermissionsError(f"{self.path}: {reason}", hint=_HINT)


def _parsed(data: bytes, path: Path) -> _Content:
    from rye.items.strict_yaml import load_mapping

    if all(not line.strip() or line.lstrip().startswith(b"#") for line in data.splitlines()):
        return _Content()
    try:
        config, _ = load_mapping(data.decode(), path, hint=_HINT)
    except UnicodeDecodeError:
        raise PermissionsError(f"{path}: is not UTF-8", hint="save it as UTF-8") from None
    except ItemFormatError as error:
        raise PermissionsError(error.reason, hint=error.hint) from None
    grants = config.get("grants")
    if grants is None:
        grants = []
    if not isinstance(grants, list):
        raise PermissionsError(f"{path}: expected a list in 'grants'", hint=_HINT)
    return _Content(
        unenforced=_unenforced(config.get("permissions"), path),
        grants=tuple([_grant(one, f"grants[{at}]", path) for at, one in enumerate(grants)]),
    )


def _unenforced(section: object, path: Path) -> str:
    if section is None:
        return ""
    if not isinstance(section, dict) or set(section) - {"unenforced"}:
        raise PermissionsError(f"{path}: expected {{unenforced: …}} in 'permissions'", hint=_HINT)
    value = section.get("unenforced")
    if value not in (None, REFUSE, ALLOW):
        raise PermissionsError(
            f"{path}: expected refuse or allow in 'permissions.unenforced'", hint=_HINT
        )
    return value or ""


def _grant(value: object, where: str, path: Path) -> Grant:
    def refuse(reason: str) -> PermissionsError:
        return PermissionsError(f"{path}: {reason}", hint=_HINT)

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


def _to_json(content: _Content) -> dict[str, Any]:
    grants = [
        {
            "tools": list(one.tools),
            "signer": one.signer,
            "permissions": permissions_to_json(one.permissions),
        }
        for one in content.grants
    ]
    return {"unenforced": content.unenforced, "grants": grants}


def _from_json(value: dict[str, Any]) -> _Content:
    grants = [
        Grant(
            tools=tuple(one["tools"]),
            signer=one["signer"],
            permissions=permissions_from_json(one["permissions"]) or Permissions(),
        )
        for one in value["grants"]
    ]
    return _Content(unenforced=value["unenforced"], grants=tuple(grants))
