"""Folders of key files: safe reads, and a cheap check for changes."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Hashable
from pathlib import Path

from lilux.record import Record

from rye.ownership import guard, guard_above
from rye.spaces.folders import is_settled, stamp_from

MAX_ENTRY_BYTES = 16 * 1024
MAX_ENTRIES = 1000

# Non-blocking, so that opening a FIFO does not hang.
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_ABSENCE = frozenset({errno.ENOENT, errno.ENOTDIR})


class KeyFileProblem(ValueError):  # noqa: N818 - never leaves the package; becomes a KeyStoreError
    """Why a file cannot be used, with its path, and how to fix that."""


class KeyListing(Record, frozen=True, kw_only=True):
    """The files of a folder at one moment, or the problem with the folder."""

    path: Path
    guarded: bool
    stems: tuple[str, ...] = ()
    """The names of the files without ``.toml``, sorted."""
    problem: str = ""
    """Why no file of the folder can be used, and what to do; empty if they can."""
    identity: tuple[int, ...] = ()
    """Changes with the folder, but not with the content of its files."""
    settled: bool = False
    """True if a later change is certain to change ``identity``."""

    def read(self, stem: str) -> bytes:
        """Return the content of ``{stem}.toml``; raises :class:`KeyFileProblem`."""
        if self.problem:
            raise KeyFileProblem(self.problem)
        return read_key_file(self.path / f"{stem}.toml", guarded=self.guarded)


class KeyFolder:
    """The ``*.toml`` files of one folder, which may be missing.

    A ``guarded`` folder and its files are used only if their owner is the user or root, and nobody
    else can write to them.

    Threads may share a folder: a listing is replaced, never changed.
    """

    def __init__(self, path: Path, *, guarded: bool) -> None:
        self.path = path
        self.guarded = guarded
        self._text = str(path)
        self._parent = str(path.parent)
        self._empty = KeyListing(path=path, guarded=guarded)
        self._listing = self._empty
        self._absent = False

    def look(self) -> tuple[Hashable, KeyListing]:
        """Return a value that differs after any change in the folder, and the current listing."""
        # Most of these folders do not exist, and access() costs half of a failing stat().
        if self._absent and not os.access(self._text, os.F_OK):
            return "", self._empty
        try:
            status = os.stat(self._text)  # noqa: PTH116 - on every call of a tool
            parent = os.stat(self._parent) if self.guarded else None  # noqa: PTH116 - as above
        except OSError as error:
            self._absent = error.errno in _ABSENCE
            problem = "" if self._absent else _cannot_read(self.path, error)
            return problem, self._problem(problem)
        self._absent = False
        identity: tuple[int, ...] = (status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
        if parent is not None:
            identity += _access(parent)
        listing = self._listing
        if listing.identity != identity or not listing.settled:
            listing = self._list(status, identity)
            self._listing = listing
        files = [file_identity(f"{self._text}/{stem}.toml") for stem in listing.stems]
        return (identity, listing.problem, listing.stems, tuple(files)), listing

    def _problem(self, problem: str) -> KeyListing:
        return KeyListing(path=self.path, guarded=self.guarded, problem=problem)

    def _list(self, status: os.stat_result, identity: tuple[int, ...]) -> KeyListing:
        try:
            problem = guard(self.path, status) or guard_above(self.path) if self.guarded else ""
            names = []
            with os.scandir(self._text) as found:
                for entry in found:
                    if entry.name.endswith(".toml"):
                        names.append(entry.name)
                    if len(names) > MAX_ENTRIES:
                        names.clear()
                        problem = (
                            f"{self.path} has more than {MAX_ENTRIES} keys; "
                            "remove the ones that you do not need"
                        )
                        break
        except OSError as error:
            return self._problem(_cannot_read(self.path, error))
        return KeyListing(
            path=self.path,
            guarded=self.guarded,
            stems=tuple([name.removesuffix(".toml") for name in sorted(names)]),
            problem=problem,
            identity=identity,
            settled=is_settled(stamp_from(status)),
        )


def file_identity(path: str) -> Hashable:
    """Return a value that changes with the file, without reading it; ``None`` if it is missing."""
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
    """Return what :func:`guard` checks of a folder; ``None`` if the folder is missing."""
    try:
        return _access(os.stat(folder))  # noqa: PTH116 - on every call of a tool
    except OSError:
        return None


def _access(status: os.stat_result) -> tuple[int, ...]:
    return status.st_uid, status.st_gid, status.st_mode


def read_key_file(path: Path, *, guarded: bool, limit: int = MAX_ENTRY_BYTES) -> bytes:
    """Read a small regular file that is not a symlink; raises :class:`KeyFileProblem`."""
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
        data = os.read(descriptor, limit + 1)
    except OSError as error:
        raise KeyFileProblem(_cannot_read(path, error)) from error
    finally:
        os.close(descriptor)
    if len(data) > limit:
        raise KeyFileProblem(f"{path} is larger than {limit} bytes; restore or remove it")
    return data


def _cannot_read(path: Path, error: OSError) -> str:
    return f"cannot read {path}: {error.strerror}; make it readable"
