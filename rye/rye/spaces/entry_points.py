"""What installed packages announce, without paying for the announcement of those that do not.

Reading every distribution's metadata takes longer than a whole call, so the files are first
searched for the group's name; only if one has it is ``importlib.metadata`` asked.

What a folder holds that one merely works in is not installed: neither the working directory nor a
project announces anything, even if ``sys.path`` leads there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from lilux.record import Record

from rye.spaces.containment import is_below, real_folder

_MAX_BYTES = 256 * 1024


class Announcement(Record, frozen=True, kw_only=True):
    """One entry point: its name, the text that it points to, and the distribution it is from."""

    name: str
    value: str
    distribution: str


BUNDLES = "rye.bundles"
PRIMITIVES = "rye.primitives"
GROUPS = (BUNDLES, PRIMITIVES)

_Stamps = tuple[tuple[str, int, int], ...]
_Found = Mapping[str, tuple[Announcement, ...]]
_remembered: list[tuple[_Stamps, _Found]] = []
_projects: set[str] = set()


def leave_out(project: Path) -> None:
    """Never again take an announcement from this project; of the whole process, as ``sys.path``."""
    _projects.update((os.path.normpath(project), os.path.realpath(project)))


def installed_path() -> list[str]:
    """``sys.path`` without what leads to the working directory or into a project."""
    return [entry for entry in dict.fromkeys(sys.path) if is_installed(entry)]


def is_installed(folder: str) -> bool:
    """Whether a folder of modules is the machine's, not one that somebody works in."""
    if not folder.startswith(os.sep) or _is_current(folder):
        return False
    names = (os.path.normpath(folder), real_folder(folder))
    return not any(_is_in_a_project(name) for name in names)


def _is_current(folder: str) -> bool:
    try:
        return os.path.samefile(folder, os.curdir)  # noqa: PTH121 - on every start, for all of sys.path
    except OSError:
        return False


def _is_in_a_project(folder: str) -> bool:
    for project in _projects:
        if folder == project or is_below(folder, project):
            prefixes = (sys.prefix, os.path.realpath(sys.prefix))
            # The environment that Rye itself runs in may lie in the project: it has the say anyway.
            own = [prefix for prefix in prefixes if is_below(prefix, project)]
            if not any(is_below(folder, prefix) for prefix in own):
                return True
    return False


def announcements(group: str) -> tuple[Announcement, ...]:
    """The entry points of one of ``GROUPS``, sorted by name, value and distribution.

    Remembered for as long as no folder on the path changes. Imports nothing of theirs.
    """
    stamps = _path_stamps()
    if not _remembered or _remembered[0][0] != stamps:
        _remembered[:] = [(stamps, _looked_for(stamps))]
    return _remembered[0][1][group]


def _path_stamps() -> _Stamps:
    stamps = []
    for folder in installed_path():
        try:
            status = os.stat(folder)  # noqa: PTH116 - on every start, for all of sys.path
        except (OSError, ValueError):
            continue
        stamps.append((folder, status.st_mtime_ns, status.st_ino))
    return tuple(stamps)


def _looked_for(stamps: _Stamps) -> _Found:
    folders = [folder for folder, *_ in stamps]
    groups = {group for folder in folders for group in _mentioned(folder)}
    return _read(groups, folders) if groups else dict.fromkeys(GROUPS, ())


def _mentioned(folder: str) -> set[str]:
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.name.endswith("-info")]
    except NotADirectoryError:
        return set(GROUPS)  # an archive: only importlib.metadata can look into it
    except OSError:
        return set()
    heads = [_head(f"{folder}/{name}/entry_points.txt") for name in names]
    return {group for group in GROUPS if any(group.encode() in head for head in heads)}


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


def _read(groups: set[str], folders: list[str]) -> _Found:
    from importlib.metadata import distributions

    found: dict[str, dict[str, list[tuple[str, str, str]]]] = {group: {} for group in GROUPS}
    for one in distributions(path=folders):
        for group in groups:
            points = one.entry_points.select(group=group)
            if points:
                # Of two that bear one name, the first on the path is the one that is imported.
                found[group].setdefault(
                    one.name, [(each.name, each.value, one.name) for each in points]
                )
    return {
        group: _announcements(sorted({each for one in named.values() for each in one}))
        for group, named in found.items()
    }


def _announcements(rows: Iterable[Sequence[str]]) -> tuple[Announcement, ...]:
    return tuple(
        Announcement(name=name, value=value, distribution=distribution)
        for name, value, distribution in rows
    )
