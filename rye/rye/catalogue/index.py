"""The index of all items: one record per file, stored as a table that is decoded only in parts.

Serialized, the index is a line of JSON with folders and problems, a line of JSON with one row per
file, then one line of details per file, then one line per file for each field of the search texts.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from rye.catalogue.entry import CatalogueEntry, Summary
from rye.catalogue.words import NO_TEXTS, Texts, texts_of
from rye.errors import ItemFormatError, ItemNotFoundError, NoMetadataError, RyeError
from rye.items.element import Metadata
from rye.spaces.folders import Stamp, is_settled
from rye.spaces.model import Resolution

FileStamp = tuple[int, int, int, int, int]
"""Device, inode, mtime, ctime and size. An edit in place does not change the stamp of the folder,
so each file has a stamp."""
FolderStamps = tuple[tuple[str, Stamp], ...]
Row = tuple[Summary, bool, FileStamp | None]
"""The first three fields of an :class:`IndexRecord`."""

_NO_DETAIL = "[null, {}, [], false, false]"
_FIELDS = len(Texts._fields)


class IndexRecord(NamedTuple):
    """What the index remembers of one file."""

    summary: Summary
    hidden: bool
    """True for a library, and for a helper file that declares no metadata."""
    stamp: FileStamp | None
    """``None`` if a later change might keep the stamp; the file is read again next time."""
    detail: str
    """Schema, annotations, examples, ``stdin`` and ``needs_user`` as one line of JSON, decoded only
    when needed."""
    texts: Texts
    """The texts that a search looks through."""


def stamp_of_file(path: str) -> FileStamp | None:
    """Return the stamp; ``None`` if the path is not an accessible regular file."""
    try:
        status = os.stat(path)  # noqa: PTH116 - faster, and called for every item of every list
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return (
        status.st_dev,
        status.st_ino,
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_size,
    )


def read_record(resolution: Resolution) -> IndexRecord | None:
    """Read the item; invalid metadata results in a record with a fault.

    Returns ``None`` if the file has disappeared.
    """
    path = Path() if resolution.path is None else resolution.path
    # Taken before the file is read, so that a later change results in another stamp.
    stamp = stamp_of_file(os.fspath(path))
    if stamp is not None and not is_settled(stamp[:4]):
        stamp = None
    try:
        metadata = metadata_of(resolution)
    except NoMetadataError as error:
        summary = _summary(resolution, fault=str(error))
        return IndexRecord(summary, True, stamp, _NO_DETAIL, NO_TEXTS)
    except ItemNotFoundError:
        return None
    except RyeError as error:
        summary = _summary(resolution, fault=str(error))
        return IndexRecord(summary, False, stamp, _NO_DETAIL, texts_of(summary, None))
    summary = _summary(resolution, metadata)
    detail = json.dumps(
        [
            metadata.config_schema,
            metadata.annotations,
            metadata.examples,
            metadata.stdin,
            metadata.needs_user,
        ],
        default=dict,
    )
    texts = texts_of(summary, metadata.config_schema)
    return IndexRecord(summary, metadata.tool_type == "library", stamp, detail, texts)


def metadata_of(resolution: Resolution) -> Metadata:
    """Return what the file declares. Raises what reading and parsing an item raise.

    A resolution without a file is a built-in primitive.
    """
    if resolution.path is None:
        return Metadata(tool_type="primitive", executor_id=None)
    from rye.items.metadata import parse_metadata
    from rye.items.reader import read_item

    try:
        return parse_metadata(read_item(resolution.path, resolution.space.root))
    except RecursionError:
        raise ItemFormatError(
            resolution.path, "is nested too deeply", hint="simplify it and sign again"
        ) from None


def _summary(
    resolution: Resolution, metadata: Metadata | None = None, *, fault: str = ""
) -> Summary:
    return Summary(
        item_id=resolution.item_id,
        space=resolution.space.name,
        bundle=resolution.space.bundle,
        path="" if resolution.path is None else str(resolution.path),
        version="" if metadata is None else metadata.version or "0.0.0",
        tool_type="" if metadata is None else metadata.tool_type or _default_type(metadata),
        executor_id=None if metadata is None else metadata.executor_id,
        category="" if metadata is None else metadata.category or _folder(resolution.item_id),
        description="" if metadata is None else metadata.description,
        confined=metadata is not None and metadata.permissions is not None,
        fault=fault,
    )


def _default_type(metadata: Metadata) -> str:
    """The type of a tool that declares none: its runtime without the suffix, such as ``python``."""
    if metadata.executor_id is None:
        return ""
    return metadata.executor_id.rpartition("/")[2].removesuffix("_runtime")


def _folder(item_id: str) -> str:
    return item_id.rpartition("/")[0].rpartition("/")[2]


class Index:
    """The table of records. ``folders`` are the stamps of all folders that contain items."""

    def __init__(
        self,
        folders: FolderStamps,
        problems: Sequence[str],
        rows: list[Row],
        rest: list[str] | bytes,
    ) -> None:
        self.folders = folders
        self.problems = tuple(problems)
        self.rows = rows
        self._rest = rest

    @classmethod
    def of(
        cls, folders: FolderStamps, problems: Sequence[str], records: Sequence[IndexRecord]
    ) -> Index:
        """Create an index from the records of all files, sorted by id."""
        lines = [record.detail for record in records]
        for field in range(_FIELDS):
            lines += [record.texts[field] for record in records]
        rows = [(record.summary, record.hidden, record.stamp) for record in records]
        return cls(folders, problems, rows, lines)

    @classmethod
    def from_bytes(cls, data: bytes) -> Index:
        """Load what :meth:`to_bytes` wrote. Raises ``ValueError`` or ``TypeError`` if invalid."""
        head, table, rest = data.split(b"\n", 2)
        folders, problems = json.loads(head)
        rows: list[Row] = [
            (Summary._make(fields), hidden, None if stamp is None else tuple(stamp))
            for fields, hidden, stamp in json.loads(table)
        ]
        if rows and rest.count(b"\n") + 1 != len(rows) * (1 + _FIELDS):
            raise ValueError("the number of lines does not match the number of rows")
        stamps = tuple([(path, None if stamp is None else tuple(stamp)) for path, stamp in folders])
        return cls(stamps, problems, rows, rest)

    def to_bytes(self) -> bytes:
        """Serialize the index for :meth:`from_bytes`."""
        head = json.dumps([self.folders, self.problems])
        table = json.dumps(self.rows)
        return "\n".join([head, table, "\n".join(self._lines)]).encode()

    @cached_property
    def _lines(self) -> list[str]:
        """The details, then each field of the texts, with one line per row."""
        if isinstance(self._rest, bytes):
            return self._rest.decode().split("\n") if self.rows else []
        return self._rest

    def records(self) -> Iterable[IndexRecord]:
        """Yield all records."""
        details = self._lines[: len(self.rows)]
        texts = map(Texts._make, zip(*self.columns(), strict=True))
        for (summary, hidden, stamp), detail, text in zip(self.rows, details, texts, strict=True):
            yield IndexRecord(summary, hidden, stamp, detail, text)

    @cached_property
    def summaries(self) -> tuple[Summary, ...]:
        """The summaries that are not hidden, sorted by id."""
        return tuple([summary for summary, hidden, _ in self.rows if not hidden])

    @cached_property
    def entries(self) -> tuple[CatalogueEntry, ...]:
        """The entries that are not hidden, with schemas and annotations."""
        return tuple(
            [self.entry(row) for row, (_, hidden, _) in enumerate(self.rows) if not hidden]
        )

    def entry(self, row: int) -> CatalogueEntry:
        """Return the entry of one row."""
        return entry_of(self.rows[row][0], self._lines[row])

    def columns(self) -> list[list[str]]:
        """Return the search texts, one list per field."""
        count = len(self.rows)
        return [self._lines[at * count : (at + 1) * count] for at in range(1, 1 + _FIELDS)]


def entry_of(summary: Summary, detail: str) -> CatalogueEntry:
    """Combine a summary and its line of details."""
    schema, annotations, *rest = json.loads(detail)
    fields: tuple[Any, ...] = summary
    return CatalogueEntry._make((*fields[:-1], schema, annotations, summary.fault, *rest))
