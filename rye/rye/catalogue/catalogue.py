"""What tools there are. Files are parsed, never verified and never run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from rye.catalogue.cache_file import CacheFile
from rye.catalogue.entry import CatalogueEntry, Summary
from rye.catalogue.index import Index, entry_of
from rye.catalogue.record import Record, metadata_of, read_record, stamp_of_file
from rye.context import Context
from rye.errors import RyeError
from rye.spaces.folders import stamp_of
from rye.spaces.ids import primitive_ids
from rye.spaces.index import SpaceIndex
from rye.spaces.model import Resolution
from rye.spaces.resolver import Resolver

if TYPE_CHECKING:
    from rye.catalogue.search import Hit

Watch = Callable[[Sequence[Resolution], str], Iterable[Resolution]]

_EMPTY = Index((), (), [], [])


class Catalogue:
    """The items of all spaces, as ids lead to them.

    Every question looks at the files anew: a ``stat`` for each folder and each file; what did not
    change is taken from memory, or from an index on disk. Ask :meth:`summaries` rather than
    :meth:`entries` where schemas are not needed.
    """

    def __init__(self, context: Context, *, watch: Watch = lambda elements, _: elements) -> None:
        """``watch(elements, label)`` gives the elements; it may show how many are done."""
        self._watch = watch
        self._resolver = Resolver(context)
        self._file = CacheFile(context.user_space, self._resolver.spaces, primitive_ids())
        self._index: Index | None = None

    def entries(self) -> tuple[CatalogueEntry, ...]:
        """Every item, sorted by id; helper files and libraries are left out."""
        return self._fresh().entries

    def summaries(self) -> tuple[Summary, ...]:
        """The same without schemas and annotations, which costs less."""
        return self._fresh().summaries

    def problems(self) -> tuple[str, ...]:
        """What keeps ids and bundles from leading anywhere, and what to do."""
        faults = [str(fault) for fault in self._resolver.bundle_faults]
        return (*faults, *self._fresh().problems)

    def entry(self, item_id: str) -> CatalogueEntry:
        """The one item; short ids are accepted. Only its own file is read.

        Raises what ``Resolver.resolve`` raises, and :class:`NoMetadataError` for a helper file. A
        file whose metadata cannot be read gives an entry with a fault.
        """
        resolution = self._resolver.resolve(item_id)
        record = read_record(resolution)
        if record is None or (record.hidden and record.summary.fault):
            metadata_of(resolution)
            return self.entry(item_id)
        return entry_of(record.summary, record.detail)

    def search(self, words: str, limit: int = 20, *, everything: bool = False) -> tuple[Hit, ...]:
        """The tools that fit best, best first; see :mod:`rye.catalogue.search`.

        ``everything`` looks at runtimes and primitives as well.
        """
        from rye.catalogue.search import search

        return search(self._fresh(), words, limit, everything=everything)

    def _fresh(self) -> Index:
        """The index as the files are now."""
        known = self._index if self._index is not None else self._stored()
        fresh = self._with_files_read_again(known) if _same_folders(known) else None
        if fresh is None:
            fresh = self._rebuilt(known)
        if fresh is not known:
            self._file.write(fresh.to_bytes())
        self._index = fresh
        return fresh

    def _stored(self) -> Index:
        data = self._file.read()
        if data is None:
            return _EMPTY
        try:
            return Index.from_bytes(data)
        except (ValueError, TypeError):
            return _EMPTY

    def _with_files_read_again(self, known: Index) -> Index | None:
        """``known`` itself if no file changed; ``None`` if one is no file any more."""
        changed: dict[str, Record] = {}
        for summary, _, stamp in known.rows:
            now = stamp_of_file(summary.path)
            if now is None:
                return None
            if now != stamp:
                record = self._read_again(summary)
                if record is None:
                    return None
                changed[summary.path] = record
        if not changed:
            return known
        records = [changed.get(record.summary.path, record) for record in known.records()]
        return Index.of(known.folders, known.problems, records)

    def _read_again(self, summary: Summary) -> Record | None:
        try:
            record = read_record(self._resolver.resolve(summary.item_id))
        except RyeError:
            return None
        return record if record is not None and record.summary.path == summary.path else None

    def _rebuilt(self, known: Index) -> Index:
        """From a walk through all spaces; files that did not change are not read again."""
        remembered = {record.summary.path: record for record in known.records()}
        # Before the walk, so that what changes meanwhile alters them.
        indexes = [SpaceIndex(space) for space in self._resolver.spaces]
        folders = tuple([stamped for index in indexes for stamped in index.refresh().folders])
        found = list(self._resolver.iter_items())
        records = {each.item_id: _unchanged(each, remembered) for each in found}
        new = [each for each in found if records[each.item_id] is None]
        for each in self._watch(new, "reading tools"):
            records[each.item_id] = read_record(each)
        problems = [str(error) for error in self._resolver.conflicts()]
        there = [record for record in records.values() if record is not None]
        return Index.of(folders, problems, there)


def _same_folders(known: Index) -> bool:
    return bool(known.folders) and all(stamp_of(path) == stamp for path, stamp in known.folders)


def _unchanged(resolution: Resolution, remembered: dict[str, Record]) -> Record | None:
    record = remembered.get(str(resolution.path))
    if (
        record is None
        or record.stamp is None
        or record.stamp != stamp_of_file(str(resolution.path))
    ):
        return None
    # The same file may be reached by another id, or as another space, since then.
    same = (resolution.item_id, resolution.space.name, resolution.space.bundle)
    return record if record.summary[:3] == same else None
