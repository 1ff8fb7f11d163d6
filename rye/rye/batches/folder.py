"""The folder of a batch: what survives an interruption, and how it is read again.

``manifest.json`` says what runs, ``calls.jsonl`` is a copy of the input, ``journal`` has the number
of each call before it is started, and ``results.jsonl`` a line for each call that has ended. A call
in the journal without a line in the results may or may not have run.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import re
import shutil
import sys
import time
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NoReturn

from lilux.files.atomic import atomic_write
from lilux.record import Record

from rye.batches.copying import ResultCopy, lines_in_order, whole_lines
from rye.batches.group_sync import GroupSync
from rye.batches.manifest import VERSION, read_manifest
from rye.batches.records import BatchResult
from rye.errors import BatchError

ENTRY_SIZE = 8
"""The bytes of the number of a call in the journal."""
# A quote inside an id is escaped, so the second group is the field.
_RESULT = re.compile(rb'\{"line": (\d+), .*?"outcome": "(\w+)"')
_READ_SIZE = 1024 * 1024
_LOCK_WAITS = (0.01, 0.02, 0.05)
_OWN_FILES = frozenset({"calls.jsonl", "ids", "journal", "lock", "results.jsonl"})


class Progress(Record, frozen=True):
    """What journal and results say; a bit for each line, from 1."""

    started: bytearray
    """Also those that were skipped."""
    ended: bytearray
    outcomes: Counter[str]

    @property
    def is_complete(self) -> bool:
        """True if the journal has every call that has a result."""
        return not any(b & ~a for a, b in zip(self.started, self.ended, strict=True))


class BatchFolder:
    """An open batch. Only one program at a time may run it."""

    def __init__(self, path: Path, *, sync: bool = False) -> None:
        """``sync`` waits for the disk before each start, so that a power cut loses nothing."""
        self.path = path
        self.calls = path / "calls.jsonl"
        self._sync = GroupSync(self._wait_for_disk) if sync else None
        self._lock: IO[bytes] | None = None
        self._journal = -1
        self._results = -1
        self._end = 0
        """The size of the results."""
        self._fault: BatchError | None = None
        self._copy: ResultCopy | None = None

    def create(self) -> None:
        """Make the folder. Raises :class:`BatchError` if it is in use."""
        try:
            self.path.mkdir(parents=True, mode=0o700, exist_ok=True)
            found = {one.name for one in self.path.iterdir()}
        except OSError as error:
            raise BatchError(
                f"{self.path}: {_reason(error)}", hint="choose another --dir"
            ) from None
        if "manifest.json" in found:
            raise BatchError(
                f"{self.path} already has a batch",
                hint=f"rye batch resume {self.path}, or choose another --dir",
            )
        if found:
            raise BatchError(f"{self.path} is not empty", hint="choose another --dir")

    def new_calls(self) -> IO[bytes]:
        """Open the copy of the input, which only this user may read.

        Raises :class:`BatchError` if another program has begun a batch here since.
        """
        try:
            return open(self.calls, "xb", opener=_private)
        except FileExistsError:
            raise BatchError(f"{self.path} is not empty", hint="choose another --dir") from None
        except OSError as error:
            raise BatchError(
                f"{self.path}: {_reason(error)}", hint="choose another --dir"
            ) from None

    def contains(self, path: Path) -> bool:
        """True if a file is in this folder, also by way of a link."""
        return path.resolve().is_relative_to(self.path.resolve())

    def discard(self) -> None:
        """Remove a folder whose batch never began; files that are not ours stay."""
        if {one.name for one in self.path.iterdir()} <= _OWN_FILES:
            shutil.rmtree(self.path, ignore_errors=True)

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Write what the batch is; from now on it can be resumed."""
        content = json.dumps({"version": VERSION, **manifest}, indent=2).encode() + b"\n"
        atomic_write(self.path / "manifest.json", content)

    def manifest(self) -> dict[str, Any]:
        """What the batch is. Raises :class:`BatchError`."""
        return read_manifest(self.path)

    def open(self) -> None:
        """Open journal and results for appending. Raises :class:`BatchError` if in use."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        try:
            self._lock = (self.path / "lock").open("wb")
            self._take(self._lock)
            self._journal = os.open(self.path / "journal", flags, 0o600)
            self._results = os.open(self.path / "results.jsonl", flags, 0o600)
            self._drop_torn_ends()
            if self._sync:
                self._sync_names()
        except BlockingIOError:
            self.close()
            raise BatchError(
                f"another program runs the batch {self.path}",
                hint=f"watch it with: rye batch status {self.path}",
            ) from None
        except OSError as error:
            self.close()
            self._fail(error)

    def _take(self, lock: IO[bytes]) -> None:
        """Lock the batch. Whoever only looks holds the lock for a moment, too."""
        for wait in _LOCK_WAITS:
            with suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            time.sleep(wait)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def is_running(self) -> bool:
        """True if a program runs the batch now."""
        try:
            with (self.path / "lock").open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def forget_unknown(self) -> None:
        """Remove the results ``unknown``: these calls were started, and have no result.

        Call it before :meth:`copy_results_to`. Raises :class:`BatchError`.
        """
        path = self.path / "results.jsonl"
        new = path.with_name("results.new")
        try:
            with open(new, "wb", opener=_private) as kept:
                for line in whole_lines(path):
                    found = _RESULT.match(line)
                    if found is None or found[2] != b"unknown":
                        kept.write(line)
                kept.flush()
                os.fsync(kept.fileno())
            new.replace(path)
            os.close(self._results)
            self._results = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
            self._end = os.fstat(self._results).st_size
        except OSError as error:
            self._fail(error)

    def close(self) -> None:
        """Close the files."""
        for descriptor in (self._journal, self._results):
            if descriptor >= 0:
                if self._sync is not None:
                    with suppress(OSError):
                        os.fdatasync(descriptor)
                os.close(descriptor)
        self._journal = self._results = -1
        if self._copy is not None:
            self._copy.close()
            self._copy = None
        if self._lock is not None:
            self._lock.close()

    def copy_results_to(self, path: Path, *, in_order: bool) -> None:
        """Also write the results to this file, beginning with those that exist.

        ``in_order`` is the order of the calls; otherwise it is that of the results.
        """
        if self.contains(path):
            raise BatchError(
                f"the copy of the results, {path}, is in the folder of the batch",
                hint="change 'out' in manifest.json to another file, or to null",
            )
        try:
            self._copy = ResultCopy(path, self.path / "results.jsonl", in_order=in_order)
        except OSError as error:
            raise BatchError(
                f"cannot write the results to {path}: {_reason(error)}",
                hint=f"correct that, then run: rye batch resume {self.path}",
            ) from None

    async def starting(self, line: int) -> None:
        """Note that a call is about to start. Raises :class:`BatchError`."""
        self._append(self._journal, line.to_bytes(ENTRY_SIZE, sys.byteorder))
        if self._sync is not None:
            await self._sync.wait()

    def ended(self, result: BatchResult) -> None:
        """Write the result of a call. Raises :class:`BatchError`."""
        line = json.dumps(result.fields(), ensure_ascii=False, default=str)
        # A tool may print half of a pair of surrogates, which is not valid UTF-8.
        data = line.encode("utf-8", "backslashreplace") + b"\n"
        self._append(self._results, data)
        if self._copy is not None:
            try:
                self._copy.add(result.line, self._end, data)
            except OSError as error:
                self._fail(error)
        self._end += len(data)

    def _append(self, descriptor: int, data: bytes) -> None:
        if self._fault is not None:
            # Nothing may follow the half of an entry.
            raise self._fault
        try:
            if os.write(descriptor, data) != len(data):
                raise OSError(28, "no space left on device")
        except OSError as error:
            self._fail(error)

    async def _wait_for_disk(self) -> None:
        """Results first: what ended before a start is on the disk before that start."""
        try:
            for descriptor in (self._results, self._journal):
                await asyncio.to_thread(os.fdatasync, descriptor)
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> NoReturn:
        self._fault = BatchError(
            f"cannot write to {error.filename or self.path}: {_reason(error)}",
            hint=f"correct that, then run: rye batch resume {self.path}",
        )
        raise self._fault from None

    def results(self, *, in_order: bool = False) -> Iterator[dict[str, Any]]:
        """Every result: in the order in which the calls ended, or ``in_order`` of the calls."""
        path = self.path / "results.jsonl"
        if path.exists():
            for number, line in enumerate(
                lines_in_order(path) if in_order else whole_lines(path), 1
            ):
                yield self._parsed(line, number)

    def _parsed(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        if not isinstance(found, dict) or "outcome" not in found:
            raise BatchError(
                f"{self.path / 'results.jsonl'}: line {number} is not a result",
                hint="the file was changed; restore it, or remove that line",
            )
        return found

    def progress(self, count: int) -> Progress:
        """How far the batch has come; it may be running. Memory is two bits for each call."""
        started, ended = bits_of(count), bits_of(count)
        outcomes: Counter[bytes] = Counter()
        # The journal first: a result that is seen must not lack its start.
        journal, results = self.path / "journal", self.path / "results.jsonl"
        if journal.exists():
            with journal.open("rb") as entries:
                while data := entries.read(_READ_SIZE):
                    for line in array("Q", data[: len(data) - len(data) % ENTRY_SIZE]):
                        if 0 < line <= count:
                            started[line >> 3] |= 1 << (line & 7)
        if results.exists():
            with results.open("rb", _READ_SIZE) as lines:
                for text in lines:
                    found = _RESULT.match(text)
                    if found is None or not text.endswith(b"\n"):
                        continue
                    line = int(found[1])
                    # Somebody may have copied a line.
                    if 0 < line <= count and not ended[line >> 3] & (1 << (line & 7)):
                        ended[line >> 3] |= 1 << (line & 7)
                        outcomes[found[2]] += 1
                        if found[2] == b"skipped":
                            started[line >> 3] |= 1 << (line & 7)
        return Progress(
            started, ended, Counter({one.decode(): number for one, number in outcomes.items()})
        )

    def _drop_torn_ends(self) -> None:
        """A kill may have left half of an entry or half of a line."""
        size = os.fstat(self._journal).st_size
        os.ftruncate(self._journal, size - size % ENTRY_SIZE)
        end = os.fstat(self._results).st_size
        while end > 0:
            start = max(0, end - _READ_SIZE)
            newline = os.pread(self._results, end - start, start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        os.ftruncate(self._results, end)
        self._end = end

    def _sync_names(self) -> None:
        """Wait until the input, and the names of the files, are on the disk."""
        for path in (self.calls, self.path, self.path.parent):
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def bits_of(count: int) -> bytearray:
    """A bit for each line from 1 to ``count``."""
    return bytearray(count // 8 + 1)


def is_set(bits: bytearray, line: int) -> bool:
    """True if the bit of this line is set."""
    return bool(bits[line >> 3] & (1 << (line & 7)))


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
