"""Folders of items: whether one has changed, and which files in it have a given stem."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable
from pathlib import Path

from lilux.record import Record

from rye.errors import UnsafePathError
from rye.formats import format_table, known_extensions, may_be_item
from rye.spaces.containment import (
    LOCATE,
    is_in_space,
    not_a_regular_file_error,
    outside_space_error,
    real_path,
)

Stamp = tuple[int, int, int, int] | None
"""Device, inode, mtime and ctime of a folder; ``None`` if it does not exist. Adding, removing or
renaming a file changes it, and a program cannot set a ctime back."""

CLOCK_LAG_NS = 200_000_000
"""How far the clock of file times may lag: a tick, or many in a virtual machine that is starved."""
_COARSE_NS = 2_000_000_000  # a time in whole seconds comes from a file system without finer times

_RELATIVE = os.access in os.supports_follow_symlinks and os.access in os.supports_dir_fd


def stamp_of(folder: str) -> Stamp:
    """Return the stamp of a folder.

    Raises :class:`UnsafePathError` if the folder exists and cannot be searched.
    """
    try:
        status = os.stat(folder)  # noqa: PTH116 - on every call, for every folder
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unsearchable(folder, error) from None
    if not stat.S_ISDIR(status.st_mode):
        return None
    return stamp_from(status)


def stamp_from(status: os.stat_result) -> tuple[int, int, int, int]:
    """Return the stamp that a ``stat`` result contains."""
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns


def are_unchanged(folders: Iterable[tuple[str, Stamp]]) -> bool:
    """True if every folder still has its stamp. Raises what :func:`stamp_of` raises."""
    for folder, stamp in folders:
        try:
            status = os.stat(folder)  # noqa: PTH116 - on every call, for every folder
        except OSError:
            if stamp_of(folder) != stamp:
                return False
        else:
            # Written out: with hundreds of folders, the calls would take most of the time.
            found = (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
            if found != stamp and stamp_of(folder) != stamp:
                return False
    return True


def is_settled(stamp: Stamp, now_ns: int | None = None) -> bool:
    """True if a later change is certain to change the stamp; false if the last was just now."""
    if stamp is None:
        return True
    changed = stamp[3]
    margin = CLOCK_LAG_NS if changed % 1_000_000_000 else _COARSE_NS
    return (time.time_ns() if now_ns is None else now_ns) - changed > margin


def files_with_stem(folder: str, stem: str) -> list[str]:
    """Return the names of the files in the folder that have this stem and may be items.

    Files with a known extension are looked up by name. The folder is listed only if there are none.
    """
    names = [stem + extension for extension in known_extensions()]
    present = [name for name in _present(folder, names) if not Path(folder, name).is_dir()]
    return present or list_folder(folder).stems.get(stem, [])


def checked_file(folder: str, name: str, space_root: Path) -> Path:
    """Return the path of a regular file in the space; raise :class:`UnsafePathError` otherwise."""
    path = Path(folder, name)
    try:
        real = f"{real_path(folder)}/{name}"
        if stat.S_ISLNK(_mode(real)):
            real = os.path.realpath(real)
    except OSError:
        # The link existed a moment ago: it is being replaced.
        raise not_a_regular_file_error(path) from None
    if not is_in_space(real, os.fspath(space_root)):
        raise outside_space_error(path, space_root)
    if not stat.S_ISREG(_mode(real)):
        raise not_a_regular_file_error(path)
    return path


class Listing(Record, frozen=True):
    """The subfolders of a folder, and the names of the files that may be items, by stem."""

    folders: list[str]
    stems: dict[str, list[str]]


def list_folder(folder: str) -> Listing:
    """List a folder. Links to folders are left out, so that a walk ends.

    Files with a known extension hide files of the same stem with an unknown one.
    """
    table = format_table()
    folders: list[str] = []
    known: dict[str, list[str]] = {}
    others: dict[str, list[str]] = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                name = entry.name
                if name[0] == ".":
                    continue
                if entry.is_dir():
                    if not entry.is_symlink() and name not in table.skipped:
                        folders.append(name)
                    continue
                stem, dot, suffix = name.rpartition(".")
                stem, extension = (stem, dot + suffix) if dot else (name, "")
                if extension in table.formats:
                    known.setdefault(stem, []).append(name)
                elif may_be_item(extension):
                    others.setdefault(stem, []).append(name)
    except (FileNotFoundError, NotADirectoryError):
        return Listing([], {})
    except OSError as error:
        raise _unsearchable(folder, error) from None
    stems = others | known
    for names in stems.values():
        if len(names) > 1:
            names.sort()
    return Listing(sorted(folders), stems)


def _present(folder: str, names: list[str]) -> list[str]:
    """Return the names that exist. That includes dangling links, which must give an error."""
    if not _RELATIVE:
        return [name for name in names if os.path.lexists(f"{folder}/{name}")]
    try:
        descriptor = os.open(folder, LOCATE)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _unsearchable(folder, error) from None
    try:
        return [
            name
            for name in names
            if os.access(name, os.F_OK, dir_fd=descriptor, follow_symlinks=False)
        ]
    finally:
        os.close(descriptor)


def _mode(path: str) -> int:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0


def _unsearchable(folder: str, error: OSError) -> UnsafePathError:
    reason = (error.strerror or "unknown error").lower()
    return UnsafePathError(
        f"{folder}: cannot be searched ({reason})", hint="check its permissions and its links"
    )
