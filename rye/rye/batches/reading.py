"""What has happened in a batch, read piece by piece while it runs.

The results of a million calls are hundreds of megabytes. Whoever looks at a batch again and again
keeps a :class:`Reading`, which reads only what has been added since.
"""

from __future__ import annotations

import heapq
import json
import os
import re
import time
from array import array
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from rye.batches.folder import ENTRY_SIZE, bits_of
from rye.batches.records import OK, SKIPPED
from rye.batches.timeline import Durations, Timeline
from rye.recording.run_ids import milliseconds_of

_BLOCK = 512 * 1024
_MAX_LINE = 1024 * 1024
"""Of a longer line, only its two ends are kept."""
_KEPT_ENDS = 64 * 1024
# The fields before and after the data and the error, whatever these contain: a quote inside a text
# is escaped, and nothing follows the last field but the end of the line. What a tool printed cannot
# make this slow: the first part is never tried twice.
_RESULT = re.compile(
    rb'^\{"line": (\d+), (?>.*?"outcome": "(\w+)").*"attempt": \d+, "duration_ms": ([0-9.e+-]+), '
    rb'"run_id": (?:"([0-9a-z]{20})"|null)\}$',
    re.MULTILINE,
)
_MAX_GROUPS = 200
_MAX_ERROR = 300
_MAX_EXAMPLES = 5
_SLOWEST = 20
_GOOD = (OK, SKIPPED)
# What differs between the errors of similar calls: quoted texts, paths, hashes, long numbers.
_PARTICULAR = re.compile(r"'[^']*'|\"[^\"]*\"|(?:[\w.~-]*/)+[\w.~-]+|\b[0-9a-f]{8,}\b|\b\d{3,}\b")


class CallRef(NamedTuple):
    """A call that has a result."""

    id: str
    line: int
    run_id: str
    """Its run in the history; empty if it is not recorded."""


class SlowCall(NamedTuple):
    """A call, for the list of the slowest."""

    duration_ms: float
    call: CallRef
    outcome: str


class Failures:
    """Calls that did not succeed in the same way."""

    def __init__(self, outcome: str, error: str) -> None:
        self.outcome = outcome
        self.error = error
        """That of the first of them."""
        self.count = 0
        self.alike = True
        """True if all have exactly this error."""
        self.examples: list[CallRef] = []


class Reading:
    """The journal and the results of a batch, as far as they were read. For one thread."""

    def __init__(self, path: Path, count: int) -> None:
        """``count`` is the number of calls, from the manifest."""
        self._path = path
        self._count = count
        self._journal_at = self._results_at = 0
        self._rest = b""
        self._files: dict[str, tuple[int, ...]] = {}
        self._begin()

    def _begin(self) -> None:
        self.started, self.ended = bits_of(self._count), bits_of(self._count)
        self.outcomes: Counter[str] = Counter()
        self.groups: dict[tuple[str, str], Failures] = {}
        self.others = 0
        """Failures that are in no group, because there are too many."""
        self.timeline = Timeline()
        self.durations = Durations()
        self.untimed = 0
        """Results without a run in the history, whose time is not known."""
        self._slowest: list[tuple[float, int, SlowCall]] = []
        self._journal_at = self._results_at = 0
        self._rest = b""

    @property
    def done(self) -> int:
        """Calls that have a result."""
        return self.outcomes.total()

    @property
    def failed(self) -> int:
        """Calls without success; skipped lines were asked for."""
        return sum(number for one, number in self.outcomes.items() if one not in _GOOD)

    @property
    def in_doubt(self) -> int:
        """Calls that were started and have no result: they run, or were interrupted."""
        return sum((a & ~b).bit_count() for a, b in zip(self.started, self.ended, strict=True))

    @property
    def slowest(self) -> list[SlowCall]:
        """The slowest calls, the slowest first."""
        return [one for _, _, one in sorted(self._slowest, reverse=True)]

    @property
    def failures(self) -> list[Failures]:
        """The groups of failures, the largest first, and equal ones by their line."""
        return sorted(self.groups.values(), key=lambda one: (-one.count, one.examples[0].line))

    @property
    def share_read(self) -> float:
        """The part of the results that was read, from 0 to 1."""
        size = _size(self._path / "results.jsonl")
        return 1.0 if not size else min((self._results_at + len(self._rest)) / size, 1.0)

    def advance(self, seconds: float) -> bool:
        """Read on until the time is over; return whether everything was read."""
        self._begin_again_if_replaced()
        until = time.monotonic() + seconds
        # The journal first: a result that is seen must not lack its start.
        return self._read_journal(until) and self._read_results(until)

    def _begin_again_if_replaced(self) -> None:
        """Forget everything if the files are others by now: a resume may replace the results."""
        read = {"journal": self._journal_at, "results.jsonl": self._results_at}
        files = {name: _identity(self._path / name) for name in read}
        for name, known in self._files.items():
            now = files[name]
            if now[:2] != known[:2] or now[2] < read[name]:
                self._begin()
                break
        self._files = {name: one for name, one in files.items() if one}

    def _read_journal(self, until: float) -> bool:
        started, count = self.started, self._count
        try:
            with (self._path / "journal").open("rb") as file:
                file.seek(self._journal_at)
                while data := file.read(_BLOCK):
                    data = data[: len(data) - len(data) % ENTRY_SIZE]
                    if not data:
                        break
                    for line in array("Q", data):
                        if line <= count:
                            started[line >> 3] |= 1 << (line & 7)
                    self._journal_at += len(data)
                    if time.monotonic() > until:
                        return False
        except FileNotFoundError:
            pass
        return True

    def _read_results(self, until: float) -> bool:
        try:
            with (self._path / "results.jsonl").open("rb") as file:
                file.seek(self._results_at + len(self._rest))
                while data := file.read(_BLOCK):
                    whole, newline, rest = (self._rest + data).rpartition(b"\n")
                    self._add(whole)
                    self._results_at += len(whole) + len(newline)
                    if len(rest) > _MAX_LINE:
                        shorter = rest[:_KEPT_ENDS] + rest[-_KEPT_ENDS:]
                        self._results_at += len(rest) - len(shorter)
                        rest = shorter
                    self._rest = rest
                    if time.monotonic() > until:
                        return False
        except FileNotFoundError:
            pass
        return True

    def _add(self, lines: bytes) -> None:
        """Count the results in whole lines."""
        ended, slowest = self.ended, self._slowest
        for found in _RESULT.finditer(lines):
            number, name, milliseconds, run_id = found.groups()
            line = int(number)
            if line > self._count:
                continue
            ended[line >> 3] |= 1 << (line & 7)
            outcome, duration = name.decode(), float(milliseconds)
            self.outcomes[outcome] += 1
            good = outcome in _GOOD
            if run_id is None:
                self.untimed += 1
            else:
                self.timeline.add(milliseconds_of(run_id.decode()) + duration, good=good)
                self.durations.add(duration, good=good)
            if not good:
                self._add_failure(found[0], line, outcome, run_id)
            if duration > 0 and (len(slowest) < _SLOWEST or duration > slowest[0][0]):
                call = _call(found[0], line, run_id)
                heapq.heappush(slowest, (duration, line, SlowCall(duration, call, outcome)))
                if len(slowest) > _SLOWEST:
                    heapq.heappop(slowest)

    def _add_failure(self, text: bytes, line: int, outcome: str, run_id: bytes | None) -> None:
        error = _text(text, "error")[:_MAX_ERROR]
        key = (outcome, _PARTICULAR.sub("…", error))
        group = self.groups.get(key)
        if group is None:
            if len(self.groups) >= _MAX_GROUPS:
                self.others += 1
                return
            group = self.groups[key] = Failures(outcome, error)
        group.count += 1
        group.alike = group.alike and error == group.error
        if len(group.examples) < _MAX_EXAMPLES:
            group.examples.append(_call(text, line, run_id))


def _call(text: bytes, line: int, run_id: bytes | None) -> CallRef:
    return CallRef(_text(text, "id"), line, "" if run_id is None else run_id.decode())


def _text(line: bytes, name: str) -> str:
    """A text of a result; empty if it has none, or if the line is not whole."""
    try:
        value = json.loads(line).get(name)
    except ValueError:
        return ""
    return value if isinstance(value, str) else ""


def _identity(path: Path) -> tuple[int, ...]:
    """The device, the inode and the size of a file; empty if it is missing."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_dev, status.st_ino, status.st_size


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116 - for every view
    except OSError:
        return 0
