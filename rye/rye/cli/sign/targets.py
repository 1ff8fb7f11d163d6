"""The files that the arguments ``PATH``, ``ITEM`` and ``GLOB`` name.

An argument is a path if that file exists, a glob if it contains ``*``, ``?`` or ``[``, and
otherwise an item id. A glob matches the ids and the paths of files below the ``tools`` directories,
and no other files. ``*`` matches within one part of a path, ``**`` matches any number of parts.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from rye.errors import ItemNotFoundError, RyeError
from rye.spaces.model import Resolution, Space
from rye.spaces.resolver import Resolver

_GLOB = frozenset("*?[")


class Target(NamedTuple):
    """One file."""

    item_id: str
    """The id if the file is below a ``tools`` directory; otherwise the path."""
    path: Path
    root: Path
    """The directory that must contain the file, also after symbolic links are followed."""


def find_targets(
    texts: Iterable[str], resolver: Resolver, cwd: Path, *, globbed: Sequence[Space]
) -> tuple[Target, ...]:
    """Return the files that the texts name, each once, in the order of the texts.

    Globs search the spaces in ``globbed``. Raises :class:`ItemNotFoundError` for a text that
    matches nothing, and the errors of resolving an id.
    """
    found: dict[str, Target] = {}
    for text in texts:
        for target in _targets_of(text, resolver, cwd, globbed):
            found.setdefault(os.path.realpath(target.path), target)
    return tuple(found.values())


def items_of(resolver: Resolver, spaces: Iterable[Space]) -> list[Target]:
    """Return every file in the spaces that is an item or may be used by one."""
    return [
        Target(found.item_id, found.path, found.space.root)
        for space in spaces
        for found in resolver.iter_items(space)
        if found.path is not None
    ]


def own_spaces(resolver: Resolver) -> tuple[Space, ...]:
    """The spaces that the user may change."""
    return tuple(space for space in resolver.spaces if space.name != "system")


def _targets_of(text: str, resolver: Resolver, cwd: Path, globbed: Sequence[Space]) -> list[Target]:
    path = Path(os.path.normpath(cwd / text)) if text and "\0" not in text else None
    if path is not None and path.is_file():
        return [_from_path(path, resolver)]
    if not _GLOB.isdisjoint(text):
        matching = [one for one in items_of(resolver, globbed) if _matches(one, text, cwd)]
        if not matching:
            raise ItemNotFoundError(
                f"nothing matches {text!r}",
                hint="a glob matches item ids and paths, for example '**' or 'team/*'",
            )
        return matching
    if path is not None and path.is_dir() and not _is_item(text, resolver):
        raise ItemNotFoundError(
            f"{path} is a directory", hint=f"to name the files in it, pass '{text}/**'"
        )
    if text.startswith(("/", "./", "../", "~")):
        raise ItemNotFoundError(f"file not found: {text}", hint="check the path")
    return [_from_item(resolver.resolve(text))]


def _from_path(path: Path, resolver: Resolver) -> Target:
    # A parent directory may be a symbolic link, even to the project itself.
    for name in (path, Path(os.path.realpath(path.parent), path.name)):
        for space in resolver.spaces:
            if name.is_relative_to(space.tools):
                item_id = name.relative_to(space.tools).with_suffix("").as_posix()
                return Target(item_id, name, space.root)
    return Target(str(path), path, Path(os.path.realpath(path)).parent)


def _is_item(text: str, resolver: Resolver) -> bool:
    try:
        resolver.resolve(text)
    except RyeError:
        return False
    return True


def _from_item(found: Resolution) -> Target:
    if found.path is None:
        raise ItemNotFoundError(
            f"{found.item_id} is a primitive without a file", hint="name another item"
        )
    return Target(found.item_id, found.path, found.space.root)


def _matches(target: Target, pattern: str, cwd: Path) -> bool:
    if _fits(target.item_id.split("/"), pattern.split("/")):
        return True
    absolute = os.path.normpath(cwd / pattern)
    return _fits(str(target.path).split("/"), absolute.split("/"))


def _fits(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    if not pattern:
        return not parts
    first, rest = pattern[0], pattern[1:]
    if first == "**":
        return any(_fits(parts[skipped:], rest) for skipped in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], first) and _fits(parts[1:], rest)
