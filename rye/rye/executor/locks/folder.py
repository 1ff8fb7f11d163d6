"""The lockfiles of a tool in one folder: found by name, and changed by one process at a time.

A lockfile is named ``{stem}@{version}.lock.json``. A stem may contain an ``@``, a version may not.
"""

from __future__ import annotations

import os
import time

from lilux.record import Record

from rye.executor.caches import BoundedDict
from rye.spaces.folders import Stamp, is_settled, stamp_from

SUFFIX = ".lock.json"
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
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


class Changing:
    """Waits until no other process changes the folder, and keeps others waiting until the end.

    Not a generator: importing contextlib takes a millisecond of every start.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._descriptor = -1

    def __enter__(self) -> None:
        self._descriptor = os.open(self._folder, _FLAGS)
        _acquire(self._descriptor, _WRITER_PATIENCE, exclusive=True)

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


def wait_until_changed(folder: str) -> None:
    """Wait for a process that is changing the folder, if there is one."""
    try:
        descriptor = os.open(folder, _FLAGS)
    except OSError:
        return
    try:
        _acquire(descriptor, _READER_PATIENCE, exclusive=False)
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, seconds: float, *, exclusive: bool) -> None:
    """Lock a folder; go on without a lock if the file system has none, or nobody releases it.

    What two processes then leave behind is reported by every later call.
    """
    import fcntl

    kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return
            time.sleep(0.005)
        except OSError:
            return
        else:
            return
