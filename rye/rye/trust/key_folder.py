"""A folder of small files that decide about trust: safe reads, and a cheap look for changes."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Hashable
from pathlib import Path

from rye.ownership import guard, guard_above
from rye.spaces.folders import is_settled, stamp_from

MAX_ENTRY_BYTES = 16 * 1024
MAX_ENTRIES = 1000

# Non-blocking, so that a FIFO in the place of a key cannot hold the caller up.
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_ABSENCE = frozenset({errno.ENOENT, errno.ENOTDIR})


class KeyFileProblem(ValueError):  # noqa: N818 - never leaves the package; becomes a KeyStoreError
    """What keeps a file from being used, naming it, and what mends that."""


class KeyFolder:
    """The ``*.toml`` files of one folder, which need not be there.

    A ``guarded`` folder counts only while nobody but its owner may write to it, and the owner is
    the user or root; the same holds for its files. :meth:`look` sees changes; everything else
    answers from the last look.
    """

    def __init__(self, path: Path, *, guarded: bool) -> None:
        self.path = path
        self.guarded = guarded
        self.stems: tuple[str, ...] = ()
        self.problem = ""
        self._text = str(path)
        self._above = str(path.parent)
        self._files: tuple[str, ...] = ()
        self._listed: tuple[int, ...] | None = None
        self._settled = False
        self._absent = False

    def look(self) -> Hashable:
        """See what is there; gives a value that is another one after any change."""
        # Most of these folders are not there, and this question costs half of a failing stat.
        if self._absent and not os.access(self._text, os.F_OK):
            return ""
        try:
            status = os.stat(self._text)  # noqa: PTH116 - every call of a tool pays for it
            above = os.stat(self._above) if self.guarded else None  # noqa: PTH116 - as above
        except OSError as error:
            absent = self._absent = error.errno in _ABSENCE
            if self._listed is not None or self.problem or not absent:
                self._forget("" if absent else _cannot_read(self.path, error))
            return self.problem
        self._absent = False
        listed: tuple[int, ...] = (status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
        if above is not None:
            listed += _access(above)
        if listed != self._listed or not self._settled:
            self._list(status)
            self._listed = listed
            self._settled = is_settled(stamp_from(status))
        return (listed, self._files, tuple([file_identity(path) for path in self._files]))

    def read(self, stem: str) -> bytes:
        """The bytes of ``{stem}.toml``; raises :class:`KeyFileProblem`."""
        if self.problem:
            raise KeyFileProblem(self.problem)
        return read_key_file(self.path / f"{stem}.toml", guarded=self.guarded)

    def _forget(self, problem: str) -> None:
        self.stems, self._files, self._listed, self.problem = (), (), None, problem

    def _list(self, status: os.stat_result) -> None:
        problem = guard(self.path, status) or guard_above(self.path) if self.guarded else ""
        self._forget(problem)
        try:
            with os.scandir(self._text) as found:
                names = []
                for entry in found:
                    if entry.name.endswith(".toml"):
                        names.append(entry.name)
                    if len(names) > MAX_ENTRIES:
                        self._forget(
                            f"{self.path} holds more than {MAX_ENTRIES} keys; "
                            "remove those that are not needed"
                        )
                        return
        except OSError as error:
            self._forget(_cannot_read(self.path, error))
            return
        names.sort()
        self.stems = tuple(name.removesuffix(".toml") for name in names)
        self._files = tuple(f"{self._text}/{name}" for name in names)


def file_identity(path: str) -> Hashable:
    """What tells one state of a file from another without reading it; ``None`` if it is absent."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return (
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_mode,
    )


def access_to(folder: str) -> Hashable:
    """What :func:`guard` and :func:`guard_above` judge a folder by; ``None`` if it is absent."""
    try:
        return _access(os.stat(folder))  # noqa: PTH116 - every call of a tool pays for it
    except OSError:
        return None


def _access(status: os.stat_result) -> tuple[int, ...]:
    return status.st_uid, status.st_gid, status.st_mode


def read_key_file(path: Path, *, guarded: bool) -> bytes:
    """Read a small regular file that is no symlink; raises :class:`KeyFileProblem`."""
    try:
        descriptor = os.open(path, _OPEN)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise KeyFileProblem(f"{path} is a symlink; put the file itself there") from None
        raise KeyFileProblem(_cannot_read(path, error)) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise KeyFileProblem(f"{path} is not a regular file; put the key itself there")
        if guarded and (problem := guard(path, status)):
            raise KeyFileProblem(problem)
        data = os.read(descriptor, MAX_ENTRY_BYTES + 1)
    except OSError as error:
        raise KeyFileProblem(_cannot_read(path, error)) from error
    finally:
        os.close(descriptor)
    if len(data) > MAX_ENTRY_BYTES:
        raise KeyFileProblem(f"{path} is larger than {MAX_ENTRY_BYTES} bytes; restore or remove it")
    return data


def _cannot_read(path: Path, error: OSError) -> str:
    return f"cannot read {path}: {error.strerror}; make it readable for you"
