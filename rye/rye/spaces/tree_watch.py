"""Whether anything came or went below a folder, without a look at each of its folders.

Linux tells by inotify: an event is queued before the call that made the change returns, so a look
at an empty queue proves that nothing changed. That holds where all changes pass through this
machine's kernel, so only file systems that are known to be local are watched. Everywhere else, and
whenever anything is in doubt, the watch is not quiet, and each folder is looked at instead.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Collection
from enum import Enum
from functools import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MIN_FOLDERS = 8
"""With fewer, a ``stat`` of each costs no more than the watch."""
PATIENCE = 3
"""Looks in a row that found nothing new; a process that asks once should not pay for watches."""

# Whatever changes the names in a folder, or whether it may be searched; see inotify(7).
_ATTRIB, _MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x4, 0x40, 0x80, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF, _ONLY_FOLDERS = 0x400, 0x800, 0x0100_0000
_MASK = (
    _ATTRIB | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF
    | _ONLY_FOLDERS
)  # fmt: skip
# ext2 to ext4, xfs, btrfs, tmpfs, f2fs, zfs, bcachefs, overlay; see statfs(2).
_LOCAL = frozenset((
    0xEF53, 0x58465342, 0x9123683E, 0x01021994, 0xF2F52010, 0x2FC12FC1, 0xCA451A4E, 0x794C7630,
))  # fmt: skip
_QUEUE_BYTES = 64 * 1024


class _State(Enum):
    IDLE = "nothing is watched"
    PLACED = "watched, but a change just before that may have been missed"
    ARMED = "all is known up to what is in the queue"
    GIVEN_UP = "it cannot be watched as it is now"


class TreeWatch:
    """The watch over one tree, kept by who looks at all of its folders when it is not quiet."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._state = _State.IDLE
        self._calm = 0
        self._queue: _Queue | None = None
        self._identity: tuple[int, int] | None = None

    def is_quiet(self) -> bool:
        """Whether it is sure that nothing has changed since :meth:`after_calm`."""
        if self._state is not _State.ARMED:
            return False
        queue = self._queue
        if queue is not None and queue.is_empty() and _identity(self._root) == self._identity:
            return True
        self.after_change()
        return False

    def after_change(self) -> None:
        """To be called when a look at the folders found a change."""
        self._state, self._calm = _State.IDLE, 0

    def after_calm(self, folders: Collection[str]) -> None:
        """To be called when a look at all of ``folders``, the whole tree, found nothing new."""
        self._calm += 1
        if self._state is _State.PLACED:
            # What changed before the watches were placed would have been found by this look.
            self._state = _State.ARMED
        elif self._state is _State.IDLE and self._calm >= PATIENCE and len(folders) >= MIN_FOLDERS:
            self._state = _State.PLACED if self._place(folders) else _State.GIVEN_UP
            if self._state is _State.GIVEN_UP:
                self._queue = None

    def _place(self, folders: Collection[str]) -> bool:
        self._identity = _identity(self._root)
        if self._identity is None or not _is_local(self._root):
            return False
        if self._queue is None or not self._queue.is_ours():
            self._queue = _Queue.open()
        if self._queue is None:
            return False
        self._queue.is_empty()  # what happened up to now, the next look will see
        for folder in folders:
            device, _ = _identity(folder) or (None, None)
            # A folder of another device may be on a file system that tells nothing.
            if device != self._identity[0] or not self._queue.add(folder):
                return False
        return True


class _Queue:
    """An inotify instance; it ends with this object."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._owner = os.getpid()
        weakref.finalize(self, os.close, descriptor).atexit = False

    @classmethod
    def open(cls) -> _Queue | None:
        """``None`` if the system has no more of them to give."""
        descriptor = _libc().inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        return None if descriptor < 0 else cls(descriptor)

    def is_ours(self) -> bool:
        """A fork shares the queue, and what one process takes from it the other does not see."""
        return os.getpid() == self._owner

    def add(self, folder: str) -> bool:
        """Whether events of the folder arrive from now on; also if they did before."""
        watch: int = _libc().inotify_add_watch(self._descriptor, os.fsencode(folder), _MASK)
        return watch >= 0

    def is_empty(self) -> bool:
        """Whether nothing happened; what did is taken out."""
        if not self.is_ours():
            return False
        try:
            os.read(self._descriptor, _QUEUE_BYTES)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False


def _identity(folder: str) -> tuple[int, int] | None:
    try:
        status = os.stat(folder)  # noqa: PTH116 - on every call
    except OSError:
        return None
    return status.st_dev, status.st_ino


@cache
def _libc() -> Any:
    """The C library, where it has what is needed; else ``None``."""
    # The first field of `struct statfs` is the type only where a word has 64 bits.
    if not sys.platform.startswith("linux") or sys.maxsize < 2**32:
        return None
    import ctypes

    library = ctypes.CDLL(None)
    wanted = ("inotify_init1", "inotify_add_watch", "statfs")
    return library if all(hasattr(library, name) for name in wanted) else None


def _is_local(folder: str) -> bool:
    if _libc() is None:
        return False
    import ctypes

    found = ctypes.create_string_buffer(1024)  # several times what the structure takes
    if _libc().statfs(os.fsencode(folder), found) != 0:
        return False
    return int.from_bytes(found.raw[:8], sys.byteorder) in _LOCAL
