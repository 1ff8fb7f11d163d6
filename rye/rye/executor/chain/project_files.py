"""The files of the project that run with a chain and carry no signature: ``pins``.

::

    pins: [bin/gotool, "scripts/*.sh", "cmake/**"]

The globs are relative to the project: ``*`` and ``?`` match within one folder, ``**`` matches any
number of folders, and hidden files match like others. They are part of the signed file, so its
author decides which files belong to the tool. What these files contain is pinned by the lockfile.
The pins of all elements apply. A link may not lead out of the project.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from rye.errors import PinError
from rye.executor.caches import BoundedDict
from rye.executor.chain.dependencies import (
    FEW_ENTRIES,
    FEW_FILES,
    MAX_ENTRIES,
    MAX_FILES,
    PROJECT,
    ManyDependencies,
)
from rye.items.element import ChainElement
from rye.items.reader import actual_path
from rye.spaces.containment import is_below
from rye.spaces.folders import Stamp, is_settled, stamp_from

MAX_BYTES = 1024 * 1024 * 1024
_FEW_BYTES = 4 * 1024 * 1024
"""What is hashed on the thread of an event loop."""
_CHUNK = 1024 * 1024
_GLOB = frozenset("*?[")
# Without O_NONBLOCK a FIFO would make the call wait for a writer.
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


class PinnedFiles:
    """Finds and hashes the files in ``pins``.

    These can be large programs, so a file is hashed again only after its inode, size, mtime or
    ctime changed; a program cannot set a ctime back.
    """

    def __init__(self, project: Path) -> None:
        self._project = str(project)
        self._digests: dict[str, tuple[Stamp, int, str]] = BoundedDict()

    def digests(self, chain: Sequence[ChainElement], *, few: bool = False) -> dict[str, str]:
        """The SHA-256 of every file that an element pins, by ``{project_path}/`` and its path.

        Raises :class:`PinError` for a file that is missing, unreadable, not regular or outside
        the project, and for too many files; with ``few``, ``ManyDependencies`` before it would
        take long.
        """
        pinning = [element for element in chain if element.metadata.pins]
        if not pinning:
            return {}
        found: dict[str, str] = {}
        for element in pinning:
            walk = _Walk(self._project, f"pins of {element.path}", few=few)
            for pattern in element.metadata.pins:
                found.update(dict.fromkeys(walk.matches(pattern), walk.where))
                if few and len(found) > FEW_FILES:
                    raise ManyDependencies
                if len(found) > MAX_FILES:
                    raise PinError(
                        f"{walk.where}: more than {MAX_FILES} files match",
                        hint="narrow the patterns",
                    )
        return {
            f"{PROJECT}{name}": self._digest(name, where, few=few)
            for name, where in sorted(found.items())
        }

    def _digest(self, name: str, where: str, *, few: bool) -> str:
        path = f"{self._project}/{name}"
        known = self._digests.get(path)
        try:
            if known is not None:
                status = os.stat(path)  # noqa: PTH116 - in every call
                if known[:2] == (stamp_from(status), status.st_size):
                    return known[2]
            descriptor = os.open(path, _FLAGS)
            try:
                return self._hashed(descriptor, path, f"{where}: {name}", few=few)
            finally:
                os.close(descriptor)
        except OSError as error:
            reason = (error.strerror or "unknown error").lower()
            raise PinError(
                f"{where}: {name} cannot be read ({reason})", hint="restore it, or correct the pins"
            ) from None

    def _hashed(self, descriptor: int, path: str, label: str, *, few: bool) -> str:
        import hashlib  # OpenSSL: these files may be large

        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise PinError(f"{label} is not a regular file", hint="correct the pins")
        if not is_below(actual_path(descriptor, path), os.path.realpath(self._project)):
            raise PinError(
                f"{label} leads out of the project", hint="put the file itself there, not a link"
            )
        if few and status.st_size > _FEW_BYTES:
            raise ManyDependencies
        digest, size = hashlib.sha256(), 0
        while chunk := os.read(descriptor, _CHUNK):
            digest.update(chunk)
            size += len(chunk)
            if size > MAX_BYTES:
                raise PinError(f"{label} is larger than {MAX_BYTES} bytes", hint="do not pin it")
        stamp, text = stamp_from(status), digest.hexdigest()
        if stamp == stamp_from(os.fstat(descriptor)) and is_settled(stamp):
            self._digests[path] = (stamp, size, text)
        return text


class _Walk:
    """Finds the files that match the pins of one element."""

    def __init__(self, project: str, where: str, *, few: bool) -> None:
        self._project = project
        self._few = few
        self._seen = 0
        self.where = where

    def matches(self, pattern: str) -> Iterator[str]:
        """The paths of matching files, relative to the project; a plain path always matches."""
        if _GLOB.isdisjoint(pattern) or os.path.lexists(f"{self._project}/{pattern}"):
            if not os.path.lexists(f"{self._project}/{pattern}"):
                raise PinError(
                    f"{self.where}: {pattern} does not exist in {self._project}",
                    hint="create it, or correct the pins",
                )
            yield pattern
        if not _GLOB.isdisjoint(pattern):
            yield from self._below("", pattern.split("/"))

    def _below(self, folder: str, parts: list[str]) -> Iterator[str]:
        from fnmatch import fnmatchcase

        first, rest = parts[0], parts[1:]
        if first == "**":
            yield from self._below(folder, rest or ["*"])
        for entry in self._entries(folder):
            path = f"{folder}/{entry.name}" if folder else entry.name
            if first == "**":
                # Links to folders are left out, so that a walk ends.
                if entry.is_dir(follow_symlinks=False):
                    yield from self._below(path, parts)
            elif fnmatchcase(entry.name, first):
                if rest and entry.is_dir():
                    yield from self._below(path, rest)
                elif not rest and not entry.is_dir():
                    yield path

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(f"{self._project}/{folder}") as entries:
                found = []
                for entry in entries:
                    self._seen += 1
                    if self._few and self._seen > FEW_ENTRIES:
                        raise ManyDependencies
                    if self._seen > MAX_ENTRIES:
                        raise PinError(
                            f"{self.where}: more than {MAX_ENTRIES} files to search",
                            hint="narrow the patterns",
                        )
                    found.append(entry)
                return found
        except OSError as error:
            reason = (error.strerror or "unknown error").lower()
            raise PinError(
                f"{self.where}: {self._project}/{folder} cannot be searched ({reason})",
                hint="check its permissions",
            ) from None
