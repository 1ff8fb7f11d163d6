"""What an answer about ids depends on, and whether that is still as it was."""

from __future__ import annotations

from collections.abc import Iterable

from lilux.record import Record

from rye.spaces.folders import Stamp, is_settled, stamp_of
from rye.spaces.index import SpaceIndex


class Watch(Record, frozen=True):
    """The folders where a file could appear or go, and the whole trees where one of a stem could.

    While none of it changes, the same question has the same answer.
    """

    folders: tuple[tuple[str, Stamp], ...]
    trees: tuple[tuple[SpaceIndex, int], ...] = ()

    def is_unchanged(self) -> bool:
        """One ``stat`` for each folder, and what :meth:`SpaceIndex.refresh` costs for each tree."""
        for folder, stamp in self.folders:
            if stamp_of(folder) != stamp:
                return False
        return all(index.refresh() == state for index, state in self.trees)

    def is_settled(self) -> bool:
        """Whether a change from now on is sure to be seen; see :func:`folders.is_settled`."""
        return all(is_settled(stamp) for _, stamp in self.folders)


def watch_all(watches: Iterable[Watch]) -> Watch | None:
    """The union, each folder and tree once; ``None`` if one of them changed in between."""
    folders: dict[str, Stamp] = {}
    trees: dict[SpaceIndex, int] = {}
    for watch in watches:
        for folder, stamp in watch.folders:
            if folders.setdefault(folder, stamp) != stamp:
                return None
        for index, state in watch.trees:
            if trees.setdefault(index, state) != state:
                return None
    return Watch(tuple(folders.items()), tuple(trees.items()))
