"""Every item of all spaces as one table, of which only those columns are decoded that are needed.

As bytes: a line of JSON about the whole, a line of JSON with a row for each file, then for each
file a line with its details, then a line for each of its texts, field by field.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from rye.catalogue.entry import CatalogueEntry, Summary
from rye.catalogue.record import FileStamp, Record
from rye.catalogue.words import Texts
from rye.spaces.folders import Stamp

FolderStamps = tuple[tuple[str, Stamp], ...]
Row = tuple[Summary, bool, FileStamp | None]
"""What is remembered, whether it is hidden, and the stamp by which it holds."""

_FIELDS = len(Texts._fields)


class Index:
    """The table. ``folders`` are those whose contents decide which files there are."""

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
    def of(cls, folders: FolderStamps, problems: Sequence[str], records: Sequence[Record]) -> Index:
        """From the records of all files, in the order of the ids."""
        lines = [record.detail for record in records]
        for field in range(_FIELDS):
            lines += [record.texts[field] for record in records]
        rows = [(record.summary, record.hidden, record.stamp) for record in records]
        return cls(folders, problems, rows, lines)

    @classmethod
    def from_bytes(cls, data: bytes) -> Index:
        """Raises ``ValueError`` or ``TypeError`` for what :meth:`to_bytes` did not make."""
        head, table, rest = data.split(b"\n", 2)
        folders, problems = json.loads(head)
        rows: list[Row] = [
            (Summary._make(fields), hidden, None if stamp is None else tuple(stamp))
            for fields, hidden, stamp in json.loads(table)
        ]
        if rows and rest.count(b"\n") + 1 != len(rows) * (1 + _FIELDS):
            raise ValueError("the index has another number of lines than of rows")
        stamps = tuple([(path, None if stamp is None else tuple(stamp)) for path, stamp in folders])
        return cls(stamps, problems, rows, rest)

    def to_bytes(self) -> bytes:
        """What :meth:`from_bytes` reads."""
        head = json.dumps([self.folders, self.problems])
        table = json.dumps(self.rows)
        return "\n".join([head, table, "\n".join(self._lines)]).encode()

    @cached_property
    def _lines(self) -> list[str]:
        """The details, then each field of the texts, one line for each row."""
        if isinstance(self._rest, bytes):
            return self._rest.decode().split("\n") if self.rows else []
        return self._rest

    def records(self) -> Iterable[Record]:
        """The whole table, row by row."""
        details = self._lines[: len(self.rows)]
        texts = map(Texts._make, zip(*self.columns(), strict=True))
        for (summary, hidden, stamp), detail, text in zip(self.rows, details, texts, strict=True):
            yield Record(summary, hidden, stamp, detail, text)

    @cached_property
    def summaries(self) -> tuple[Summary, ...]:
        """What is not hidden, in the order of the ids."""
        return tuple([summary for summary, hidden, _ in self.rows if not hidden])

    @cached_property
    def entries(self) -> tuple[CatalogueEntry, ...]:
        """The same with schemas and annotations."""
        return tuple(
            [self.entry(row) for row, (_, hidden, _) in enumerate(self.rows) if not hidden]
        )

    def entry(self, row: int) -> CatalogueEntry:
        """The entry of one row."""
        return entry_of(self.rows[row][0], self._lines[row])

    def columns(self) -> list[list[str]]:
        """The texts, field by field."""
        count = len(self.rows)
        return [self._lines[at * count : (at + 1) * count] for at in range(1, 1 + _FIELDS)]


def entry_of(summary: Summary, detail: str) -> CatalogueEntry:
    """A summary and its line of details, put together."""
    schema, annotations = json.loads(detail)
    fields: tuple[Any, ...] = summary
    return CatalogueEntry._make((*fields[:-1], schema, annotations, summary.fault))
