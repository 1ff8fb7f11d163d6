"""Remove a tool with its pins, and keep the pins of the tools that used its file."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from rye.context import Context
from rye.errors import ItemNotFoundError, RyeError
from rye.executor.chain.snapshot import Library
from rye.executor.pinning import Locking
from rye.spaces.model import Resolution


class Removed(NamedTuple):
    """What was removed."""

    item_id: str
    files: tuple[Path, ...]
    """The file of the tool, then its lockfiles."""
    updated: tuple[str, ...]
    """The tools whose pins were updated, because the file was one of theirs."""


def removable(item_id: str, context: Context) -> Resolution:
    """The file that an id leads to. Raises :class:`RyeError` for one that cannot be removed."""
    library = Library(context)
    found = library.resolver.resolve(item_id)
    if found.path is None or found.space.name == "system":
        raise RyeError(
            f"'{found.item_id}' is not a tool of the project or the user",
            hint="uninstall the package that contains it",
        )
    users = _users_of(found, library)
    if users:
        more = f" and {len(users) - 3} more" if users[3:] else ""
        raise RyeError(
            f"'{found.item_id}' runs {', '.join(users[:3])}{more}",
            hint="remove or change them first",
        )
    return found


def remove(found: Resolution, context: Context) -> Removed:
    """Remove the file of :func:`removable` and its lockfiles; empty folders go with them."""
    path = found.path
    assert path is not None, found.item_id  # noqa: S101 - see removable
    content_hash = Library(context).snapshot().verdict(found).content_hash
    locking = Locking(context)
    try:
        pins = locking.unpin(found.item_id)
    except ItemNotFoundError:
        pins = ()
    path.unlink()
    _remove_empty(path.parent, found.space.tools)
    for pin in pins:
        _remove_empty(pin.parent, context.project_path / ".ai" / "lockfiles")
    updated = [one.item_id for one in Locking(context).follow_removal(content_hash)]
    return Removed(found.item_id, (path, *pins), tuple(updated))


def _users_of(found: Resolution, library: Library) -> list[str]:
    """The other items that name this one as their executor."""
    snapshot = library.snapshot()
    users = []
    for one in library.resolver.iter_items():
        if one.item_id == found.item_id or one.space.name == "system":
            continue
        try:
            executor = snapshot.metadata(one).executor_id
            if executor and snapshot.resolve(executor, one.space).path == found.path:
                users.append(one.item_id)
        except RyeError:
            continue
    return users


def _remove_empty(folder: Path, root: Path) -> None:
    while folder != root and folder.is_relative_to(root):
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent
