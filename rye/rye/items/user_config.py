"""The user's own config, ``~/.ai/config.yaml``, as a mapping.

Each room reads its own section: ``permissions`` and ``grants``, ``history``, and so on. A project
has a file of the same name, which is not read here.
"""

from __future__ import annotations

import os

from lilux.files.bounded_read import FileTooLargeError, read_bounded
from lilux.sha256 import sha256

from rye.cache.disk import DiskCache
from rye.context import CONFIG_NAME, Context
from rye.errors import ItemFormatError, PermissionsError
from rye.ownership import guard, guard_above

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

CORRECT_IT = "correct it"
_MAX_BYTES = 256 * 1024
_KIND = "user config"
_EMPTY: Mapping[str, Any] = {}


class UserConfig:
    """The config, read again when the file changes."""

    def __init__(self, context: Context, disk_cache: DiskCache | None = None) -> None:
        self.path = context.user_space / ".ai" / CONFIG_NAME
        self._name = str(self.path)
        self._disk_cache = disk_cache
        self._stamp: object = None
        self._content = _EMPTY

    def current(self) -> Mapping[str, Any]:
        """The content; the same object as long as the file is the same.

        Raises :class:`PermissionsError` if the file cannot be used, also for the reason that
        another user could have written it.
        """
        try:
            status = os.stat(self._name)  # noqa: PTH116 - on the way of each call
        except FileNotFoundError:
            self._stamp, self._content = None, _EMPTY
            return self._content
        except OSError as error:
            raise self._unusable((error.strerror or "cannot be read").lower()) from None
        stamp = (status.st_mtime_ns, status.st_size, status.st_ino, status.st_uid, status.st_mode)
        if stamp != self._stamp:
            fault = guard(self.path, status) or guard_above(self.path)
            if fault:
                raise PermissionsError.of_problem(fault)
            self._content = self._read()
            self._stamp = stamp
        return self._content

    def _read(self) -> Mapping[str, Any]:
        try:
            data = read_bounded(self._name, _MAX_BYTES)
        except (OSError, FileTooLargeError) as error:
            raise self._unusable(str(error)) from None
        digest = sha256(data).hexdigest()
        kept = None if self._disk_cache is None else self._disk_cache.recall(_KIND, digest)
        if isinstance(kept, dict):
            return kept
        content = _parsed(data, self.path)
        if self._disk_cache is not None:
            self._disk_cache.keep(_KIND, digest, content)
        return content

    def _unusable(self, reason: str) -> PermissionsError:
        return PermissionsError(f"{self.path}: {reason}", hint=CORRECT_IT)


def _parsed(data: bytes, path: Path) -> dict[str, Any]:
    from rye.items.strict_yaml import load_mapping

    if all(not line.strip() or line.lstrip().startswith(b"#") for line in data.splitlines()):
        return {}
    try:
        return load_mapping(data.decode(), path, hint=CORRECT_IT)[0]
    except UnicodeDecodeError:
        raise PermissionsError(f"{path}: is not UTF-8", hint="save it as UTF-8") from None
    except ItemFormatError as error:
        raise PermissionsError(error.reason, hint=error.hint) from None
