"""Compares a stored copy with its closure: the same files, the same bytes, and nothing else.

Each call does this before anything in the copy is run, since a program of the same user could have
changed it. It reads and hashes every file, so that no time stamp is believed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from lilux.record import Record
from lilux.sha256 import sha256

from rye.closure.manifest import (
    ANCHOR,
    LIBRARY,
    RUNTIME,
    RUNTIME_LIBRARY,
    TOOL,
    ClosureFile,
    Manifest,
)

MANIFEST = "manifest.json"
MAX_FILE_BYTES = 16 * 1024 * 1024

_SIGNED = frozenset((TOOL, LIBRARY, ANCHOR, RUNTIME, RUNTIME_LIBRARY))
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK a FIFO would make the call wait for a writer.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Plan(Record, frozen=True):
    """What a copy has to consist of: the names in each folder, and the files."""

    folders: Mapping[str, frozenset[str]]
    """By the path of the folder in the copy, parents first; the copy itself is ``""``."""
    files: Mapping[str, tuple[tuple[str, int, ClosureFile], ...]]
    """By the same path: name, index in the manifest, and file."""


def plan_of(manifest: Manifest) -> Plan:
    """The plan of every copy of a closure."""
    return plan_for(manifest.files, (MANIFEST,))


def plan_for(contents: Sequence[ClosureFile], others: Sequence[str]) -> Plan:
    """The plan of a folder with these files, and with ``others``, which are not compared."""
    names: dict[str, set[str]] = {"": set(others)}
    files: dict[str, list[tuple[str, int, ClosureFile]]] = {}
    for index, one in enumerate(contents):
        if one.place is None:
            continue
        folder, _, name = one.place.rpartition("/")
        files.setdefault(folder, []).append((name, index, one))
        names.setdefault(folder, set()).add(name)
        while folder:
            above, _, name = folder.rpartition("/")
            names.setdefault(above, set()).add(name)
            folder = above
    return Plan(
        {folder: frozenset(names[folder]) for folder in sorted(names)},
        {folder: tuple(found) for folder, found in files.items()},
    )


def is_intact(root: str, plan: Plan, read: Mapping[int, str]) -> bool:
    """True if the copy in ``root`` has exactly the files of the closure.

    ``read`` has, by index, the SHA-256 of all bytes of a signed file as this call read it, which
    saves looking for its signature line. Raises nothing.
    """
    try:
        for folder, names in plan.folders.items():
            descriptor = os.open(f"{root}/{folder}" if folder else root, _FOLDER)
            try:
                if frozenset(os.listdir(descriptor)) != names:  # noqa: PTH208 - a descriptor
                    return False
                for name, index, one in plan.files.get(folder, ()):
                    data = _read(name, descriptor, executable=one.executable)
                    if not _has_content(data, one, read.get(index)):
                        return False
            finally:
                os.close(descriptor)
    except OSError:
        return False
    return True


def _read(name: str, folder: int, *, executable: bool) -> bytes:
    """The bytes of a regular file with this mode; raises ``OSError``."""
    descriptor = os.open(name, _FILE, dir_fd=folder)
    try:
        status = os.fstat(descriptor)
        mode = status.st_mode
        if (
            not stat.S_ISREG(mode)
            or bool(mode & stat.S_IXUSR) != executable
            or status.st_size > MAX_FILE_BYTES
        ):
            raise OSError(f"{name} is not a file of a closure")
        return os.read(descriptor, status.st_size + 1)
    finally:
        os.close(descriptor)


def _has_content(data: bytes, one: ClosureFile, read: str | None) -> bool:
    digest = sha256(data).hexdigest()
    if one.role not in _SIGNED:
        return digest == one.sha256
    # Not the bytes that were read now: perhaps the same content, signed at another time.
    return digest == read or content_hash(data, one) == one.sha256


def content_hash(data: bytes, one: ClosureFile) -> str:
    """The SHA-256 that the manifest has for a file with these bytes."""
    if one.role not in _SIGNED:
        return sha256(data).hexdigest()
    from rye.formats import format_of
    from rye.trust.signature import split_signature

    return split_signature(data, format_of(Path(one.path)).comment).content_hash
