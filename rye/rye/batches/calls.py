"""The calls of a batch: read once, checked, and copied to the folder of the batch.

A line is an object of parameters, or ``{"id": …, "parameters": {…}}``. Memory does not grow with
the number of calls: ids are compared on disk.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from lilux.record import Record
from lilux.schemas.json_shape import json_fault

from rye.batches.records import Call
from rye.errors import ParameterError

Check = Callable[[Mapping[str, Any]], list[str]]
"""Returns what is wrong with the parameters of a call."""

_BAD = b"#"
"""Begins the place of a line that cannot be used; its id and the reason follow as JSON."""
MAX_LINE = 64 * 1024 * 1024
_OWN_KEYS = frozenset({"id", "parameters"})
_MAX_SHOWN = 5
_IDS_AT_ONCE = 10_000
_READ_SIZE = 1024 * 1024


class Survey(Record, frozen=True):
    """What was found in the input."""

    count: int
    bad: int
    """Lines that cannot be used; they are skipped."""


def survey(lines: Iterable[bytes], target: IO[bytes], check: Check, *, skip_bad: bool) -> Survey:
    """Check every line and copy it; nothing runs before this has returned.

    Raises :class:`ParameterError` for a line that cannot be used, unless ``skip_bad``, and always
    for two calls with the same id.
    """
    count = bad = 0
    faults: list[str] = []
    with _Ids(Path(target.name).with_name("ids")) as ids:
        for count, line in enumerate(lines, 1):
            own = str(count)
            try:
                call = parse(line, count)
                own = call.id
                ids.add(call)
                reason = "; ".join(check(call.parameters))
            except ValueError as error:
                reason = str(error)
                # Its result has the number of the line as its id, which no other call may have.
                ids.add(Call(count, own, {}))
            if reason:
                bad += 1
                if len(faults) < _MAX_SHOWN:
                    faults.append(f"line {count}: {reason}")
                target.write(_BAD + json.dumps([own, reason]).encode() + b"\n")
            else:
                target.write(line.rstrip(b"\r\n") + b"\n")
        ids.flush()
    if bad and not skip_bad:
        more = [f"and {bad - len(faults)} more lines"] if bad > len(faults) else []
        raise ParameterError(
            f"{bad} of {count} calls cannot be used",
            [*faults, *more],
            hint="correct them, or leave them out with --skip-bad",
        )
    target.flush()
    return Survey(count, bad)


def parse(line: bytes, number: int) -> Call:
    """Read one line. Raises ``ValueError``, which says what is wrong."""
    if len(line) > MAX_LINE:
        raise ValueError(f"longer than {MAX_LINE} bytes")
    try:
        given = json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError("not JSON" if line.strip() else "empty") from None
    if not isinstance(given, dict):
        raise ValueError("not an object")
    if given.keys() <= _OWN_KEYS and isinstance(given.get("parameters"), dict):
        own = given.get("id", number)
        if isinstance(own, bool) or not isinstance(own, str | int) or own == "":
            raise ValueError("the id is not a text or an integer")
        if json_fault(str(own)):
            raise ValueError("the id has half of a pair of surrogates")
        return Call(number, str(own), given["parameters"])
    return Call(number, str(number), given)


def bad_line(text: bytes, number: int) -> tuple[Call, str] | None:
    """A call that is not made, and the reason, if a line of the copy says so."""
    if not text.startswith(_BAD):
        return None
    own, reason = json.loads(text.removeprefix(_BAD))
    return Call(number, own, {}), reason


def bounded_lines(source: IO[bytes]) -> Iterator[bytes]:
    """The lines of an input; one that is too long ends at the limit, and the rest is dropped."""
    while line := source.readline(MAX_LINE + 1):
        rest = line
        while not rest.endswith(b"\n") and (rest := source.readline(MAX_LINE)):
            pass
        yield line


def numbered(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a copied input, from 1."""
    with path.open("rb", _READ_SIZE) as lines:
        yield from enumerate(lines, 1)


def each(pattern: str, folder: Path, project: Path) -> Iterator[bytes]:
    """One line for each file that ``NAME=GLOB`` matches in the folder, sorted.

    Tools run in the project, so paths are relative to it; those of files elsewhere are absolute.
    Raises :class:`ParameterError`.
    """
    name, equals, glob = pattern.partition("=")
    if not equals or not name or not glob or glob.startswith("/"):
        raise ParameterError(
            f"invalid --each {pattern!r}",
            ["expected NAME=GLOB, relative to the current folder"],
            hint="write for example --each 'file=src/**/*.py'",
        )
    try:
        paths = sorted(folder.glob(glob))
    except ValueError as error:
        raise ParameterError(
            f"invalid --each {pattern!r}", [str(error)], hint="correct the pattern"
        ) from None
    found = False
    for path in paths:
        if path.is_file():
            found = True
            whole = Path(os.path.normpath(path))
            inside = whole.is_relative_to(project)
            yield json.dumps({name: str(whole.relative_to(project) if inside else whole)}).encode()
    if not found:
        raise ParameterError(
            f"invalid --each {pattern!r}",
            ["no file matches"],
            hint="the pattern is relative to the current folder",
        )


class _Ids:
    """The ids so far, in a temporary database from the first call with an id of its own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._database: sqlite3.Connection | None = None
        self._new: list[tuple[str, int]] = []

    def __enter__(self) -> _Ids:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if self._database is not None:
            self._database.close()
            self._path.unlink(missing_ok=True)
        if isinstance(error, sqlite3.Error):
            raise OSError(str(error)) from None

    def add(self, call: Call) -> None:
        """Raises :class:`ParameterError` for an id that another call has."""
        if self._database is None:
            if call.id == str(call.line):
                return
            self._path.unlink(missing_ok=True)
            self._database = sqlite3.connect(self._path, isolation_level=None)
            # Lost after a crash, like the whole survey.
            self._database.execute("PRAGMA journal_mode = OFF")
            self._database.execute("PRAGMA synchronous = OFF")
            self._database.execute(
                "CREATE TABLE ids (id TEXT PRIMARY KEY, line INTEGER) WITHOUT ROWID"
            )
            self._insert((str(line), line) for line in range(1, call.line))
        self._new.append((call.id, call.line))
        if len(self._new) >= _IDS_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Compare the ids that were added last."""
        new, self._new = self._new, []
        if self._database is None or not new:
            return
        try:
            self._insert(new)
        except sqlite3.IntegrityError:
            self._refuse_duplicate(new)

    def _insert(self, rows: Iterable[tuple[str, int]]) -> None:
        assert self._database is not None  # noqa: S101 - for the type checker
        self._database.execute("BEGIN")
        self._database.executemany("INSERT INTO ids VALUES (?, ?)", rows)
        self._database.execute("COMMIT")

    def _refuse_duplicate(self, new: Iterable[tuple[str, int]]) -> None:
        assert self._database is not None  # noqa: S101 - for the type checker
        seen: dict[str, int] = {}
        for own, line in new:
            row = self._database.execute("SELECT line FROM ids WHERE id = ?", (own,)).fetchone()
            # Rows of the failed transaction may be there, too.
            first = seen.get(own, line if row is None else min(row[0], line))
            if first != line:
                raise ParameterError(
                    f"two calls have the id {own!r}",
                    [f"lines {first} and {line}"],
                    hint="give each call its own id, or none",
                )
            seen[own] = line
