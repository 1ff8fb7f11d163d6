"""The lockfiles of a tool in one folder: found by name, and changed by one process at a time.

A lockfile is named ``{stem}@{version}.lock.json``. A stem may contain an ``@``, a version may not.
"""

from __future__ import annotations

import os

from lilux.files.folder_lock import FolderLock
from lilux.record import Record

from rye.executor.caches import BoundedDict
from rye.spaces.folders import Stamp, is_settled, stamp_from

SUFFIX = ".lock.json"
_WRITER_PATIENCE, _READER_PATIENCE = 5.0, 1.0
"""Seconds to wait for a process that changes the folder; it may be stopped."""


class _Listed(Record, frozen=True):
    stamp: Stamp
    names: list[str]
    found: dict[str, list[str]]
    """The names of each tool that was asked for."""


class LockfileNames:
    """Finds the lockfiles of a tool. A folder is listed again only after it changed."""

    def __init__(self) -> None:
        self._listed: dict[str, _Listed] = BoundedDict()

    def find(self, folder: str, stem: str) -> list[str]:
        """The names of the lockfiles of one tool, sorted; raises the ``OSError`` of the system."""
        try:
            stamp = stamp_from(os.stat(folder))  # noqa: PTH116 - in every call
            listed = self._listed.get(folder)
            if listed is None or listed.stamp != stamp:
                # The stamp is older than the list, so that a later change is noticed.
                names = os.listdir(folder)  # noqa: PTH208 - only the names are needed
                listed = _Listed(stamp, names, BoundedDict())
                if is_settled(stamp):
                    self._listed[folder] = listed
        except (FileNotFoundError, NotADirectoryError):
            return []
        found = listed.found.get(stem)
        if found is None:
            found = sorted(name for name in listed.names if _is_lockfile_of(stem, name))
            listed.found[stem] = found
        return found


def _is_lockfile_of(stem: str, name: str) -> bool:
    if not name.startswith(stem) or not name.endswith(SUFFIX):
        return False
    return name[: -len(SUFFIX)].rpartition("@")[0] == stem


class Changing(FolderLock):
    """Waits until no other process changes the folder, and keeps others waiting until the end.

    What two processes leave behind that both went on is reported by every later call.
    """

    def __init__(self, folder: str) -> None:
        super().__init__(folder, _WRITER_PATIENCE)


def wait_until_changed(folder: str) -> None:
    """Wait for a process that is changing the folder, if there is one."""
    try:
        with FolderLock(folder, _READER_PATIENCE, exclusive=False):
            return
    except OSError:
        return
