"""The folder of a batch: what survives an interruption, and how it is read again.

``manifest.json`` says what runs, ``calls.jsonl`` is a copy of the input, ``journal`` has the number
of each call before it is started, and ``results.jsonl`` a line for each call that has ended. A call
in the journal without a line in the results may or may not have run.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from struct import Struct
from typing import IO, Any

from lilux.files.atomic import atomic_write

from rye.batches.records import BatchResult
from rye.errors import BatchError

_ENTRY = Struct("<Q")
_PREFIX = b'{"line": '
_OUTCOME = re.compile(rb'"outcome": "(\w+)"')
_VERSION = 1
_READ_SIZE = 1024 * 1024


class BatchFolder:
    """An open batch. Only one program at a time may run it."""

    def __init__(self, path: Path, *, sync: bool = False) -> None:
        """``sync`` waits for the disk before each start, so that a power cut loses nothing."""
        self.path = path
        self.calls = path / "calls.jsonl"
        self._sync = sync
        self._lock: IO[bytes] | None = None
        self._journal = -1
        self._results = -1
        self._results_size = 0
        self.out: IO[bytes] | None = None

    def create(self) -> None:
        """Make the folder. Raises :class:`BatchError` if it is in use."""
        try:
            self.path.mkdir(parents=True, mode=0o700, exist_ok=True)
            if (self.path / "manifest.json").exists():
                raise BatchError(
                    f"{self.path} already has a batch",
                    hint=f"rye batch resume {self.path}, or choose another --dir",
                )
        except OSError as error:
            raise BatchError(
                f"{self.path}: {error.strerror}", hint="choose another --dir"
            ) from None

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Write what the batch is; from now on it can be resumed."""
        content = json.dumps({"version": _VERSION, **manifest}, indent=2).encode() + b"\n"
        atomic_write(self.path / "manifest.json", content)

    def manifest(self) -> dict[str, Any]:
        """What the batch is. Raises :class:`BatchError`."""
        try:
            found = json.loads((self.path / "manifest.json").read_bytes())
        except (OSError, ValueError):
            found = None
        if not isinstance(found, dict) or found.get("version") != _VERSION:
            raise BatchError(f"{self.path} is not a batch", hint="pass the folder of a batch")
        return found

    def open(self) -> None:
        """Open journal and results for appending. Raises :class:`BatchError` if in use."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        try:
            self._lock = (self.path / "lock").open("wb")
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise BatchError(
                f"another program runs the batch {self.path}",
                hint=f"watch it with: rye batch status {self.path}",
            ) from None
        self._journal = os.open(self.path / "journal", flags, 0o600)
        self._results = os.open(self.path / "results.jsonl", flags, 0o600)
        self._drop_torn_ends()

    def close(self) -> None:
        """Close the files."""
        for descriptor in (self._journal, self._results):
            if descriptor >= 0:
                os.close(descriptor)
        self._journal = self._results = -1
        if self.out is not None:
            self.out.close()
        if self._lock is not None:
            self._lock.close()

    def copy_results_to(self, path: Path) -> None:
        """Also write the results to this file, beginning with those that exist."""
        self.out = path.open("wb")
        with (self.path / "results.jsonl").open("rb") as results:
            while data := results.read(_READ_SIZE):
                self.out.write(data)
        self.out.flush()

    def starting(self, lines: list[int]) -> None:
        """Note that these calls are about to start."""
        os.write(self._journal, b"".join(map(_ENTRY.pack, lines)))
        if self._sync:
            os.fdatasync(self._journal)

    def ended(self, result: BatchResult) -> None:
        """Write the result of a call."""
        line = json.dumps(result.fields(), ensure_ascii=False, default=str).encode() + b"\n"
        if os.write(self._results, line) != len(line):
            raise BatchError(f"{self.path}: the disk is full", hint="free space, then resume")
        if self._sync:
            os.fdatasync(self._results)
        if self.out is not None:
            self.out.write(line)
            self.out.flush()

    def results(self) -> Iterator[dict[str, Any]]:
        """Every result, in the order in which the calls ended."""
        with (self.path / "results.jsonl").open("rb") as lines:
            for line in lines:
                if line.endswith(b"\n"):
                    yield json.loads(line)

    def outcomes(self) -> Counter[str]:
        """How many calls ended in each way."""
        found: Counter[str] = Counter()
        if not (self.path / "results.jsonl").exists():
            return found
        with (self.path / "results.jsonl").open("rb") as lines:
            for line in lines:
                # A quote inside an id is escaped, so this is the field.
                if line.endswith(b"\n") and (outcome := _OUTCOME.search(line)) is not None:
                    found[outcome[1].decode()] += 1
        return found

    def state(self, count: int) -> tuple[bytearray, bytearray]:
        """Which lines were started, and which have ended; a bit for each, from 1."""
        started, ended = bytearray(count // 8 + 1), bytearray(count // 8 + 1)
        journal = self.path / "journal"
        data = journal.read_bytes() if journal.exists() else b""
        whole = len(data) - len(data) % _ENTRY.size
        for (line,) in _ENTRY.iter_unpack(data[:whole]):
            if line <= count:
                started[line >> 3] |= 1 << (line & 7)
        results = self.path / "results.jsonl"
        if results.exists():
            with results.open("rb") as lines:
                for text in lines:
                    line = _line_number(text)
                    if line <= count:
                        ended[line >> 3] |= 1 << (line & 7)
        return started, ended

    def _drop_torn_ends(self) -> None:
        """A kill may have left half of an entry or half of a line."""
        size = os.fstat(self._journal).st_size
        os.ftruncate(self._journal, size - size % _ENTRY.size)
        end = os.fstat(self._results).st_size
        while end > 0:
            start = max(0, end - _READ_SIZE)
            newline = os.pread(self._results, end - start, start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        os.ftruncate(self._results, end)


def is_set(bits: bytearray, line: int) -> bool:
    """True if the bit of this line is set."""
    return bool(bits[line >> 3] & (1 << (line & 7)))


def _line_number(text: bytes) -> int:
    if not text.endswith(b"\n"):
        return 0
    if text.startswith(_PREFIX):
        return int(text[len(_PREFIX) : text.index(b",", len(_PREFIX))])
    return int(json.loads(text)["line"])
