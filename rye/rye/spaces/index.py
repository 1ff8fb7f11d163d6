"""Every id of one space, for short ids, lists and "did you mean"."""

from __future__ import annotations

import os

from rye.errors import ItemIdError
from rye.spaces.folders import Listing, Stamp, is_settled, list_folder, stamp_of
from rye.spaces.ids import check_item_id
from rye.spaces.model import Space
from rye.spaces.tree_watch import TreeWatch

_MAX_FOLDER_DEPTH = 32
_YOUNG: Stamp = (0, 0, 0, 0)  # equal to no folder's, so that the folder is read again


class SpaceIndex:
    """Built on first use; afterwards only folders that changed are read again."""

    def __init__(self, space: Space) -> None:
        self._root = os.fspath(space.tools)
        self._listings: dict[str, tuple[Stamp, Listing]] = {}
        self._items: dict[str, list[str]] | None = None
        self._state = 0
        self._watch = TreeWatch(self._root)

    def refresh(self) -> int:
        """Brings the index up to date; gives a number that is another one after any change.

        Costs the same for any number of folders where the system tells of changes, or else a
        ``stat`` for each folder, but not for each file.
        """
        if self._watch.is_quiet():
            return self._state
        if self._scan():
            self._state += 1
            self._watch.after_change()
        else:
            self._watch.after_calm([self._path(folder) for folder in self._listings])
        return self._state

    def _scan(self) -> bool:
        """Look at every folder, and read those that changed; whether there were any."""
        seen: dict[str, tuple[Stamp, Listing]] = {}
        changed = False
        pending = [("", 0)]
        while pending:
            folder, depth = pending.pop()
            path = self._path(folder)
            stamp = stamp_of(path)
            known = self._listings.get(folder)
            if known is None or known[0] != stamp:
                # The stamp was taken before the folder is read, so a later change alters it;
                # one that is too young to tell is not kept.
                known = (stamp if is_settled(stamp) else _YOUNG, list_folder(path))
                changed = True
            seen[folder] = known
            if depth < _MAX_FOLDER_DEPTH:
                prefix = f"{folder}/" if folder else ""
                pending += [(prefix + name, depth + 1) for name in known[1].folders]
        if changed or len(seen) != len(self._listings):
            self._listings, self._items = seen, None
            return True
        return False

    def _path(self, folder: str) -> str:
        return f"{self._root}/{folder}" if folder else self._root

    @property
    def folders(self) -> list[tuple[str, Stamp]]:
        """Every folder, with its stamp from before it was read."""
        return [(self._path(folder), stamp) for folder, (stamp, _) in self._listings.items()]

    @property
    def items(self) -> dict[str, list[str]]:
        """Item ids, sorted, with the names of the files that bear them."""
        if self._items is None:
            found = {
                _joined(folder, stem): names
                for folder, (_, listing) in self._listings.items()
                for stem, names in listing.stems.items()
            }
            self._items = {each: found[each] for each in sorted(found) if _is_id(each)}
        return self._items

    def ids_bearing(self, stem: str) -> list[str]:
        """The ids that end in ``stem``, sorted; a lookup for each folder, not for each file."""
        ids = [
            _joined(folder, stem)
            for folder, (_, listing) in self._listings.items()
            if stem in listing.stems
        ]
        return sorted(filter(_is_id, ids))


def _joined(folder: str, stem: str) -> str:
    return f"{folder}/{stem}" if folder else stem


def _is_id(text: str) -> bool:
    try:
        check_item_id(text)
    except ItemIdError:
        return False
    return True
