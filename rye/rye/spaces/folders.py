"""What the file system has to say: whether a folder changed, and which files bear a stem."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

from lilux.record import Record

from rye.errors import UnsafePathError
from rye.formats import format_table, known_extensions, may_be_item
from rye.spaces.containment import (
    LOCATE,
    leaves_the_space,
    lies_within,
    not_a_plain_file,
    real_folder,
)

Stamp = tuple[int, int, int, int] | None
"""Device, inode, mtime and ctime of a folder; ``None`` if there is none. Any file that comes, goes
or changes its name makes it another, and nobody can set a ctime back."""

CLOCK_LAG_NS = 200_000_000
"""Kernels stamp by a clock that lags by a tick, or by many where a guest is not given its turns."""
_COARSE_NS = 2_000_000_000  # a time in whole seconds is from a file system that has no finer ones

_RELATIVE = os.access in os.supports_follow_symlinks and os.access in os.supports_dir_fd


def stamp_of(folder: str) -> Stamp:
    """Raises :class:`UnsafePathError` if the folder is there and may not be searched."""
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
    """Of what was already asked for."""
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns


def is_settled(stamp: Stamp, now_ns: int | None = None) -> bool:
    """Whether a later change is sure to give another stamp: not if the last was just now."""
    if stamp is None:
        return True
    changed = stamp[3]
    margin = CLOCK_LAG_NS if changed % 1_000_000_000 else _COARSE_NS
    return (time.time_ns() if now_ns is None else now_ns) - changed > margin


def files_bearing(folder: str, stem: str) -> list[str]:
    """The names in the folder that are ``stem`` and an extension of an item.

    Costs the same however many files there are, unless only a file whose extension is not in the
    table bears the stem, or none.
    """
    names = [stem + extension for extension in known_extensions()]
    present = [name for name in _present(folder, names) if not Path(folder, name).is_dir()]
    return present or list_folder(folder).stems.get(stem, [])


def checked_file(folder: str, name: str, space_root: Path) -> Path:
    """The path, if it is a plain file in the space; raises :class:`UnsafePathError` if not."""
    path = Path(folder, name)
    try:
        real = f"{real_folder(folder)}/{name}"
        if stat.S_ISLNK(_mode(real)):
            real = os.path.realpath(real)
    except OSError:
        # The link was there a moment ago: somebody is exchanging it.
        raise not_a_plain_file(path) from None
    if not lies_within(real, os.fspath(space_root)):
        raise leaves_the_space(path, space_root)
    if not stat.S_ISREG(_mode(real)):
        raise not_a_plain_file(path)
    return path


class Listing(Record, frozen=True):
    """The folder's own folders, and the files that may be items, by stem."""

    folders: list[str]
    stems: dict[str, list[str]]


def list_folder(folder: str) -> Listing:
    """Links to folders are left out: a walk must end. Of the files of one stem, those whose
    extension is in the table hide those whose is not."""
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
    """Those that are there. A dangling link counts: the id is taken, and an error must say so."""
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
