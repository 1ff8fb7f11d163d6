"""The catalogue of available items. Files are parsed, never verified and never run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from rye.catalogue.cache_file import CacheFile
from rye.catalogue.entry import CatalogueEntry, Summary
from rye.catalogue.index import (
    Index,
    IndexRecord,
    entry_of,
    metadata_of,
    read_record,
    stamp_of_file,
)
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

_MAX_RESOLVED = 50
_EMPTY = Index((), (), [], [])


class Catalogue:
    """The items of all spaces, each id as it resolves.

    Every query checks the files with a ``stat`` for each folder and each file. Unchanged files are
    taken from memory or from an index on disk. Use :meth:`summaries` instead of :meth:`entries`
    where schemas are not needed.
    """

    def __init__(self, context: Context, *, watch: Watch = lambda elements, _: elements) -> None:
        """``watch(elements, label)`` iterates over the elements; it may show progress."""
        self._watch = watch
        self._resolver = Resolver(context)
        self._file = CacheFile(context.user_space, self._resolver.spaces, primitive_ids())
        self._index: Index | None = None

    def entries(self) -> tuple[CatalogueEntry, ...]:
        """Return every item, sorted by id, without helper files and libraries."""
        return self._fresh().entries

    def summaries(self) -> tuple[Summary, ...]:
        """Return every item without schemas and annotations, which is faster."""
        return self._fresh().summaries

    def problems(self) -> tuple[str, ...]:
        """Return why ids and bundles cannot be resolved, and what to do."""
        faults = [str(fault) for fault in self._resolver.bundle_faults]
        return (*faults, *self._fresh().problems)

    def entry(self, item_id: str) -> CatalogueEntry:
        """Return one item, by its id or short id. Reads only the file of the item.

        Raises what ``Resolver.resolve`` raises, and :class:`NoMetadataError` for a helper file. A
        file with invalid metadata results in an entry with a fault.
        """
        resolution = self._resolver.resolve(item_id)
        record = read_record(resolution)
        if record is None or (record.hidden and record.summary.fault):
            metadata_of(resolution)
            return self.entry(item_id)
        return entry_of(record.summary, record.detail)

    def search(self, words: str, limit: int = 20, *, everything: bool = False) -> tuple[Hit, ...]:
        """Return the tools that match best, best first; see :mod:`rye.catalogue.search`.

        With ``everything``, runtimes and primitives are searched as well.
        """
        from rye.catalogue.search import search

        return search(self._fresh(), words, limit, everything=everything)

    def _fresh(self) -> Index:
        """Return the index for the current files."""
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
        """Read changed files again.

        Returns ``known`` itself if no file changed, and ``None`` if a file is missing or so many
        have changed that a walk is faster than resolving each of them.
        """
        outdated: list[Summary] = []
        for summary, _, stamp in known.rows:
            now = stamp_of_file(summary.path)
            if now is None or len(outdated) > _MAX_RESOLVED:
                return None
            if now != stamp:
                outdated.append(summary)
        changed: dict[str, IndexRecord] = {}
        for summary in outdated:
            record = self._read_again(summary)
            if record is None:
                return None
            changed[summary.path] = record
        if not changed:
            return known
        records = [changed.get(record.summary.path, record) for record in known.records()]
        return Index.of(known.folders, known.problems, records)

    def _read_again(self, summary: Summary) -> IndexRecord | None:
        try:
            record = read_record(self._resolver.resolve(summary.item_id))
        except RyeError:
            return None
        return record if record is not None and record.summary.path == summary.path else None

    def _rebuilt(self, known: Index) -> Index:
        """Return a new index from a walk through all spaces. Reads only changed files."""
        remembered = {record.summary.path: record for record in known.records()}
        # Stamps are taken before the walk, so that a change during the walk is noticed.
        indexes = [SpaceIndex(space) for space in self._resolver.spaces]
        folders = tuple([stamped for index in indexes for stamped in index.refresh().folders])
        walked = list(self._resolver.walk())
        found = [each for each in walked if isinstance(each, Resolution)]
        records = {each.item_id: _unchanged(each, remembered) for each in found}
        new = [each for each in found if records[each.item_id] is None]
        for each in self._watch(new, "reading tools"):
            records[each.item_id] = read_record(each)
        problems = [str(each) for each in walked if isinstance(each, RyeError)]
        existing = [record for record in records.values() if record is not None]
        return Index.of(folders, problems, existing)


def _same_folders(known: Index) -> bool:
    return bool(known.folders) and all(stamp_of(path) == stamp for path, stamp in known.folders)


def _unchanged(resolution: Resolution, remembered: dict[str, IndexRecord]) -> IndexRecord | None:
    record = remembered.get(str(resolution.path))
    if (
        record is None
        or record.stamp is None
        or record.stamp != stamp_of_file(str(resolution.path))
    ):
        return None
    # The file may have got another id, or belong to another space, since then.
    same = (resolution.item_id, resolution.space.name, resolution.space.bundle)
    return record if record.summary[:3] == same else None
