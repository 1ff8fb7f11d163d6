"""The results in another order or another file than ``results.jsonl``.

In the order of the calls, a result waits for those before it. It waits on the disk: the results are
in ``results.jsonl`` already, and a file without a name has their places there, eight bytes for each
call. Memory does not grow, however many results one slow call holds back.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from struct import Struct

_PLACE = Struct("<Q")
_LINE = re.compile(rb'\{"line": (\d+),')
_READ_SIZE = 1024 * 1024


class Places:
    """Where each result is, by the number of its call, on the disk."""

    def __init__(self, results: Path) -> None:
        self._results = results.open("rb")
        self._places = tempfile.TemporaryFile(dir=results.parent)  # noqa: SIM115 - until close()
        offset = 0
        for text in whole_lines(results):
            if (found := _LINE.match(text)) is not None:
                self.add(int(found[1]), offset)
            offset += len(text)

    def close(self) -> None:
        """Close the files."""
        self._results.close()
        self._places.close()

    def add(self, line: int, offset: int) -> None:
        """Note where the result of a call is."""
        # Zero, which is also what a hole has, is "no result yet".
        os.pwrite(self._places.fileno(), _PLACE.pack(offset + 1), line * _PLACE.size)

    @property
    def last(self) -> int:
        """The highest number of a call with a result."""
        return os.fstat(self._places.fileno()).st_size // _PLACE.size - 1

    def result(self, line: int) -> bytes | None:
        """The result of a call, if it has one."""
        place = os.pread(self._places.fileno(), _PLACE.size, line * _PLACE.size)
        if len(place) < _PLACE.size or not any(place):
            return None
        self._results.seek(_PLACE.unpack(place)[0] - 1)
        return self._results.readline()


def whole_lines(results: Path) -> Iterator[bytes]:
    """The lines of a file that may be growing, without an unfinished one."""
    with results.open("rb", _READ_SIZE) as lines:
        for line in lines:
            if line.endswith(b"\n"):
                yield line


def lines_in_order(results: Path) -> Iterator[bytes]:
    """The results in the order of their calls."""
    places = Places(results)
    try:
        for number in range(1, places.last + 1):
            if (line := places.result(number)) is not None:
                yield line
    finally:
        places.close()


class ResultCopy:
    """A file that is completed with each result. Its methods raise ``OSError``."""

    def __init__(self, path: Path, results: Path, *, in_order: bool) -> None:
        """Begin with the results that exist, whatever an interruption left in the file."""
        self._next = 1
        self._target = path.open("wb", 0)
        self._places: Places | None = None
        try:
            if in_order:
                self._places = Places(results)
                self._write_ready(self._places)
            else:
                with results.open("rb") as existing:
                    while data := existing.read(_READ_SIZE):
                        self._write(data)
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Close the files."""
        self._target.close()
        if self._places is not None:
            self._places.close()

    def add(self, line: int, offset: int, data: bytes) -> None:
        """Write a result, which is at this place of the results, as soon as it is its turn."""
        if self._places is None:
            self._write(data)
        elif line == self._next:
            self._write(data)
            self._next += 1
            self._write_ready(self._places)
        else:
            self._places.add(line, offset)

    def _write_ready(self, places: Places) -> None:
        """Write the results that waited for the last one."""
        while (line := places.result(self._next)) is not None:
            self._write(line)
            self._next += 1

    def _write(self, data: bytes) -> None:
        written = self._target.write(data) or 0
        while written < len(data):
            written += self._target.write(data[written:]) or 0
