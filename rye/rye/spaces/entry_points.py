"""What installed packages announce, without paying for the announcement of those that do not.

Reading every distribution's metadata takes longer than a whole call, so the files are first
searched for the group's name; only if one has it is ``importlib.metadata`` asked.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

_MAX_BYTES = 256 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Announcement:
    """One entry point: its name, the text that it points to, and the distribution it is from."""

    name: str
    value: str
    distribution: str


_Stamps = tuple[tuple[str, int, int], ...]
_remembered: dict[str, tuple[_Stamps, tuple[Announcement, ...]]] = {}


def announcements(group: str) -> tuple[Announcement, ...]:
    """The entry points of a group, sorted by name, value and distribution.

    Remembered for as long as no folder on ``sys.path`` changes. Imports nothing of theirs.
    """
    stamps = _path_stamps()
    known = _remembered.get(group)
    if known is not None and known[0] == stamps:
        return known[1]
    found = _read(group) if any(_mentions(group, entry) for entry, *_ in stamps) else ()
    _remembered[group] = (stamps, found)
    return found


def _path_stamps() -> _Stamps:
    stamps = []
    for entry in dict.fromkeys(sys.path):
        folder = entry or os.curdir
        try:
            status = os.stat(folder)  # noqa: PTH116 - on every start, for all of sys.path
        except (OSError, ValueError):
            continue
        stamps.append((folder, status.st_mtime_ns, status.st_ino))
    return tuple(stamps)


def _mentions(group: str, folder: str) -> bool:
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.name.endswith("-info")]
    except NotADirectoryError:
        return True  # an archive: only importlib.metadata can look into it
    except OSError:
        return False
    wanted = group.encode()
    return any(wanted in _head(f"{folder}/{name}/entry_points.txt") for name in names)


def _head(path: str) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return b""
    try:
        return os.read(descriptor, _MAX_BYTES)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _read(group: str) -> tuple[Announcement, ...]:
    from importlib.metadata import entry_points

    found = {
        (point.name, point.value, point.dist.name if point.dist else "")
        for point in entry_points(group=group)
    }
    return tuple(
        Announcement(name=name, value=value, distribution=distribution)
        for name, value, distribution in sorted(found)
    )
