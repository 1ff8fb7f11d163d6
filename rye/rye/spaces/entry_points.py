"""The entry points of installed packages, found quickly when there are none.

Reading the metadata of every distribution takes longer than a whole call. So the entry point files
are first searched for the names of the groups; only a match loads ``importlib.metadata``.

The working directory and the projects that Rye works on are not installed packages: their entry
points are ignored, even if ``sys.path`` contains them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from lilux.record import Record

from rye.spaces.containment import is_below, real_path

_MAX_BYTES = 256 * 1024


class EntryPoint(Record, frozen=True, kw_only=True):
    """An entry point: its name, its value, and the distribution that has it."""

    name: str
    value: str
    distribution: str


BUNDLES = "rye.bundles"
PRIMITIVES = "rye.primitives"
GROUPS = (BUNDLES, PRIMITIVES)

_Stamps = tuple[tuple[str, int, int], ...]
_Found = Mapping[str, tuple[EntryPoint, ...]]
_remembered: list[tuple[_Stamps, _Found]] = []
_projects: set[str] = set()


def exclude_project(project: Path) -> None:
    """Ignore entry points in this project from now on, in the whole process."""
    _projects.update((os.path.normpath(project), os.path.realpath(project)))


def installed_path() -> list[str]:
    """Return ``sys.path`` without the working directory and the folders of projects."""
    return [entry for entry in dict.fromkeys(sys.path) if is_installed(entry)]


def is_installed(folder: str) -> bool:
    """True if a folder of modules is neither the working directory nor in a project."""
    if not folder.startswith(os.sep) or _is_current(folder):
        return False
    names = (os.path.normpath(folder), real_path(folder))
    return not any(_is_in_a_project(name) for name in names)


def _is_current(folder: str) -> bool:
    try:
        return os.path.samefile(folder, os.curdir)  # noqa: PTH121 - on every start, for all of sys.path
    except OSError:
        return False


def _is_in_a_project(folder: str) -> bool:
    # A copy: another thread may add a project meanwhile.
    for project in tuple(_projects):
        if folder == project or is_below(folder, project):
            prefixes = (sys.prefix, os.path.realpath(sys.prefix))
            # The environment that Rye runs in may be in the project. Its code is running already.
            own = [prefix for prefix in prefixes if is_below(prefix, project)]
            if not any(is_below(folder, prefix) for prefix in own):
                return True
    return False


def entry_points(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of one of ``GROUPS``, sorted by name, value and distribution.

    The answer is cached until a folder on the path changes. No package is imported.
    """
    stamps = _path_stamps()
    known = next(iter(_remembered), None)
    if known is None or known[0] != stamps:
        known = (stamps, _search(stamps))
        _remembered[:] = [known]
    return known[1][group]


def _path_stamps() -> _Stamps:
    stamps = []
    for folder in installed_path():
        try:
            status = os.stat(folder)  # noqa: PTH116 - on every start, for all of sys.path
        except (OSError, ValueError):
            continue
        stamps.append((folder, status.st_mtime_ns, status.st_ino))
    return tuple(stamps)


def _search(stamps: _Stamps) -> _Found:
    folders = [folder for folder, *_ in stamps]
    groups = {group for folder in folders for group in _mentioned(folder)}
    return _read(groups, folders) if groups else dict.fromkeys(GROUPS, ())


def _mentioned(folder: str) -> set[str]:
    """Return the groups that a distribution in the folder may have."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.name.endswith("-info")]
    except NotADirectoryError:
        return set(GROUPS)  # an archive: only importlib.metadata can read it
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
                # If two distributions have the same name, Python imports the first on the path.
                found[group].setdefault(
                    one.name, [(each.name, each.value, one.name) for each in points]
                )
    return {
        group: _from_rows(sorted({each for one in named.values() for each in one}))
        for group, named in found.items()
    }


def _from_rows(rows: Iterable[Sequence[str]]) -> tuple[EntryPoint, ...]:
    return tuple(
        EntryPoint(name=name, value=value, distribution=distribution)
        for name, value, distribution in rows
    )
