"""The spool: one line is appended for each call, before its result is returned.

Any number of processes append to ``spool.jsonl``. A line is written by one system call and begins
with a newline, so that a line that was cut off, as by a full disk, does not spoil the next one.
Whoever moves lines into the database renames the file first, and so does a writer that finds it
too large. A writer holds a shared lock while it appends, and the mover an exclusive one until the
file is removed, so no line is appended to a file that was already read::

    writer   open → shared lock → still linked? → append
    mover    rename → exclusive lock → read → insert, commit → remove
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat

from rye.errors import HistoryError
from rye.recording.run_ids import is_run_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

SPOOL = "spool.jsonl"
_SEGMENT = "spool-"
_SEGMENT_BYTES = 8 * 1024 * 1024
_OPEN = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_ATTEMPTS = 1000
_TURN_OFF = "or turn history off in ~/.ai/config.yaml: history: {enabled: false}"


def history_folder(user_space: Path) -> str:
    """Return the folder of the spool and of the database."""
    return f"{user_space}/.ai/history"


class Spool:
    """The spool of a user, open for appending. One thread at a time may use it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._fd: int | None = None
        self._pid = 0

    def __del__(self) -> None:
        self.close()

    def append(self, run_id: str, line: bytes, *, max_bytes: int) -> None:
        """Append a line. Raises :class:`HistoryError` if it was not written as a whole.

        ``max_bytes`` is how much the spool may hold if nothing ever moves its lines.
        """
        try:
            size = self._append(b"\n" + line + b"\n")
            if size > _SEGMENT_BYTES:
                self.close()
                _rotate(self.folder, run_id, max_bytes)
        except OSError as error:
            self.close()
            reason = (error.strerror or type(error).__name__).lower()
            raise HistoryError(
                f"{self.folder}: {reason}", hint=f"make it writable, {_TURN_OFF}"
            ) from None

    def _append(self, data: bytes) -> int:
        """Append the data, and return the size of the file."""
        for _ in range(_ATTEMPTS):
            fd = self._opened()
            try:
                fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                self.close()  # it is being moved: there is, or will be, a new file
                continue
            status = os.fstat(fd)
            if not status.st_nlink:
                self.close()
                continue
            if status.st_uid != os.geteuid() or not stat.S_ISREG(status.st_mode):
                self.close()
                raise HistoryError(
                    f"{self.folder}/{SPOOL} does not belong to you", hint=f"remove it, {_TURN_OFF}"
                )
            written = os.write(fd, data)
            fcntl.flock(fd, fcntl.LOCK_UN)
            if written < len(data):
                # The rest would follow a line of another process by now.
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return status.st_size + written
        raise HistoryError(
            f"{self.folder}/{SPOOL} is locked by another program", hint="find it with lsof"
        )

    def _opened(self) -> int:
        # A forked child shares the lock of its parent, so it opens the file for itself.
        if self._fd is None or self._pid != os.getpid():
            self.close()
            self._fd, self._pid = _open(self.folder), os.getpid()
        return self._fd

    def close(self) -> None:
        """Close the file; the next line opens it again."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)


def _open(folder: str) -> int:
    path = f"{folder}/{SPOOL}"
    try:
        return os.open(path, _OPEN, 0o600)
    except FileNotFoundError:
        make_folder(folder)
        return os.open(path, _OPEN, 0o600)


def make_folder(folder: str) -> None:
    """Create the folder, for this user only; raises ``OSError`` or :class:`HistoryError`."""
    above = os.path.dirname(folder)  # noqa: PTH120 - a text
    while not os.path.isdir(above):  # noqa: PTH112 - a text
        above = os.path.dirname(above)  # noqa: PTH120 - a text
    # Under sudo, root must not leave files in the home of another user.
    owner = os.stat(above).st_uid  # noqa: PTH116 - a text
    if owner != os.geteuid():
        raise HistoryError(
            f"{above} belongs to another user (uid {owner})",
            hint="set USER_SPACE to a folder of your own",
        )
    os.makedirs(os.path.dirname(folder), exist_ok=True)  # noqa: PTH103, PTH120 - texts
    try:
        os.mkdir(folder, 0o700)  # noqa: PTH102 - a text
    except FileExistsError:
        return


def segments(folder: str) -> list[str]:
    """The files that wait to be moved into the database, the oldest first."""
    try:
        names = os.listdir(folder)  # noqa: PTH208 - a text
    except FileNotFoundError:
        return []
    return [f"{folder}/{name}" for name in sorted(names) if _is_segment(name)]


def set_aside(folder: str, run_id: str) -> None:
    """Rename the current spool, so that :func:`segments` lists it."""
    try:
        os.rename(f"{folder}/{SPOOL}", f"{folder}/{_SEGMENT}{run_id}.jsonl")  # noqa: PTH104 - texts
    except FileNotFoundError:
        return


def _is_segment(name: str) -> bool:
    middle = name.removeprefix(_SEGMENT).removesuffix(".jsonl")
    return len(name) == len(middle) + len(_SEGMENT) + len(".jsonl") and is_run_id(middle)


def _rotate(folder: str, run_id: str, max_bytes: int) -> None:
    """Begin a new spool, and remove the oldest segments if nothing moves them."""
    set_aside(folder, run_id)
    waiting = segments(folder)
    excess = len(waiting) - max(1, max_bytes // _SEGMENT_BYTES)
    for one in waiting[: max(0, excess)]:
        os.unlink(one)  # noqa: PTH108 - a text
