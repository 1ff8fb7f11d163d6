"""What a resolution depends on, and whether that has changed."""

from __future__ import annotations

from collections.abc import Iterable

from lilux.record import Record

from rye.spaces.folders import Stamp, are_unchanged, is_settled
from rye.spaces.index import SpaceIndex


class Watch(Record, frozen=True):
    """The folders and the whole spaces that a resolution depends on.

    While none of them changes, the same question has the same answer.
    """

    folders: tuple[tuple[str, Stamp], ...]
    spaces: tuple[tuple[SpaceIndex, int], ...] = ()
    """The index of each space in which any folder matters, and the generation of its tree."""

    def is_unchanged(self) -> bool:
        """True if nothing has changed. Costs one ``stat`` for each folder, also of the spaces."""
        if not are_unchanged(self.folders):
            return False
        return all(index.refresh().generation == number for index, number in self.spaces)

    def is_settled(self) -> bool:
        """True if a later change is certain to be noticed; see :func:`folders.is_settled`."""
        return all(is_settled(stamp) for _, stamp in self.folders)


def watch_all(watches: Iterable[Watch]) -> Watch | None:
    """Return the union of ``watches``; ``None`` if two of them saw different states."""
    folders: dict[str, Stamp] = {}
    spaces: dict[SpaceIndex, int] = {}
    for watch in watches:
        for folder, stamp in watch.folders:
            if folders.setdefault(folder, stamp) != stamp:
                return None
        for index, generation in watch.spaces:
            if spaces.setdefault(index, generation) != generation:
                return None
    return Watch(tuple(folders.items()), tuple(spaces.items()))
