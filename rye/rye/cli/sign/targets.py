"""The files that arguments like ``PATH``, ``ITEM`` and ``GLOB`` mean.

An existing file is a path; otherwise what has ``*``, ``?`` or ``[`` in it is a glob, and anything
else is an item id. A glob is held against the ids and against the paths of the files below the
``tools`` folders, and never leads to a file elsewhere. ``*`` stays within one part, ``**`` stands
for any number of parts.
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
    """The id, if the file lies where items do; otherwise the path."""
    path: Path
    root: Path
    """The folder that the file must not leave."""


def find_targets(
    texts: Iterable[str], resolver: Resolver, cwd: Path, *, globbed: Sequence[Space]
) -> tuple[Target, ...]:
    """Every file that the texts mean, each once, in the order of the texts.

    Globs look into the spaces of ``globbed``. Raises :class:`ItemNotFoundError` for what means
    nothing, and what resolving an id raises.
    """
    found: dict[str, Target] = {}
    for text in texts:
        for target in _meant(text, resolver, cwd, globbed):
            found.setdefault(os.path.realpath(target.path), target)
    return tuple(found.values())


def items_of(resolver: Resolver, spaces: Iterable[Space]) -> list[Target]:
    """Every file of the spaces that may be an item, or be needed by one."""
    return [
        Target(found.item_id, found.path, found.space.root)
        for space in spaces
        for found in resolver.iter_items(space)
        if found.path is not None
    ]


def own_spaces(resolver: Resolver) -> tuple[Space, ...]:
    """Those that are the user's to change."""
    return tuple(space for space in resolver.spaces if space.name != "system")


def _meant(text: str, resolver: Resolver, cwd: Path, globbed: Sequence[Space]) -> list[Target]:
    path = Path(os.path.normpath(cwd / text)) if text and "\0" not in text else None
    if path is not None and path.is_file():
        return [_at(path, resolver)]
    if not _GLOB.isdisjoint(text):
        matching = [one for one in items_of(resolver, globbed) if _matches(one, text, cwd)]
        if not matching:
            raise ItemNotFoundError(
                f"nothing matches {text!r}",
                hint="a glob is held against item ids and paths: '**' is all, 'team/*' a folder",
            )
        return matching
    if path is not None and path.is_dir() and not _is_item(text, resolver):
        raise ItemNotFoundError(
            f"{path} is a folder, and no item", hint=f"for what is in it, pass '{text}/**'"
        )
    if text.startswith(("/", "./", "../", "~")):
        raise ItemNotFoundError(f"there is no file {text}", hint="check the path")
    return [_of_item(resolver.resolve(text))]


def _at(path: Path, resolver: Resolver) -> Target:
    # A folder on the way may be a link, also to the project itself.
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


def _of_item(found: Resolution) -> Target:
    if found.path is None:
        raise ItemNotFoundError(
            f"{found.item_id} is a primitive without a file", hint="name an item that has one"
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
