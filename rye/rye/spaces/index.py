"""Every id of one space, for short ids, listings and suggestions."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import count

from rye.errors import ItemIdError
from rye.spaces.folders import Listing, Stamp, are_unchanged, is_settled, list_folder, stamp_of
from rye.spaces.ids import check_item_id
from rye.spaces.model import Space

_MAX_FOLDER_DEPTH = 32
_YOUNG: Stamp = (0, 0, 0, 0)  # differs from every real stamp, so the folder is read again
_generations = count(1)


class SpaceTree:
    """The folders of a space as they were read. It never changes; a change makes a new tree."""

    def __init__(self, root: str, listings: Mapping[str, tuple[Stamp, Listing]]) -> None:
        """``listings`` has the folders by their path below ``root``."""
        self.generation = next(_generations)
        """A number that no other tree has."""
        self.listings = listings
        self.folders = tuple(
            [(_joined(root, folder), stamp) for folder, (stamp, _) in listings.items()]
        )
        """The path of every folder, and its stamp from before it was read."""
        self._items: dict[str, list[str]] | None = None

    @property
    def items(self) -> dict[str, list[str]]:
        """The item ids, sorted, each with the names of its files."""
        items = self._items
        if items is None:
            found = {
                _joined(folder, stem): names
                for folder, (_, listing) in self.listings.items()
                for stem, names in listing.stems.items()
            }
            items = {each: found[each] for each in sorted(found) if _is_id(each)}
            self._items = items
        return items

    def ids_with_stem(self, stem: str) -> list[str]:
        """Return the ids that end in ``stem``, sorted; a lookup for each folder, not each file."""
        ids = [
            _joined(folder, stem)
            for folder, (_, listing) in self.listings.items()
            if stem in listing.stems
        ]
        return sorted(filter(_is_id, ids))


class SpaceIndex:
    """The current tree of a space, built on first use.

    Threads may share an index: trees are replaced, never changed, and every tree is compared with
    the file system before it is returned.
    """

    def __init__(self, space: Space) -> None:
        self._root = os.fspath(space.tools)
        self._tree: SpaceTree | None = None

    def refresh(self) -> SpaceTree:
        """Return the tree as it is now: the same object as before if nothing changed.

        Costs a ``stat`` for each folder. Only folders that changed are read again.
        """
        tree = self._tree
        if tree is None or not are_unchanged(tree.folders):
            tree = self._read({} if tree is None else tree.listings)
            self._tree = tree
        return tree

    def _read(self, old: Mapping[str, tuple[Stamp, Listing]]) -> SpaceTree:
        listings: dict[str, tuple[Stamp, Listing]] = {}
        pending = [("", 0)]
        while pending:
            folder, depth = pending.pop()
            path = _joined(self._root, folder)
            stamp = stamp_of(path)
            known = old.get(folder)
            if known is None or known[0] != stamp:
                # The stamp is taken before the folder is read, so that a later change alters it.
                # A folder that changed just now could change again without a new stamp.
                known = (stamp if is_settled(stamp) else _YOUNG, list_folder(path))
            listings[folder] = known
            if depth < _MAX_FOLDER_DEPTH:
                pending += [(_joined(folder, name), depth + 1) for name in known[1].folders]
        return SpaceTree(self._root, listings)


def _joined(folder: str, name: str) -> str:
    """Join two parts of a path, of which one may be empty."""
    return f"{folder}/{name}" if folder and name else folder or name


def _is_id(text: str) -> bool:
    try:
        check_item_id(text)
    except ItemIdError:
        return False
    return True
