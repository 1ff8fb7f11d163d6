"""The batches that somebody looks at, read on in a thread, so that no page waits for a long one."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from rye.batches.reading import Reading

_MAX_KEPT = 128
_SLICE_SECONDS = 0.05
_PAUSE_SECONDS = 0.005


class Look(NamedTuple):
    """A reading, for as long as nobody reads on."""

    reading: Reading
    complete: bool
    """False if more has been written than was read."""


class _Kept:
    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.lock = threading.Lock()


class Readings:
    """Its methods may be called by any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[Path, int], _Kept] = OrderedDict()
        self._behind: OrderedDict[tuple[Path, int], _Kept] = OrderedDict()
        self._reader: threading.Thread | None = None

    @contextmanager
    def look(self, path: Path, count: int, seconds: float) -> Iterator[Look]:
        """Read a batch on for some time; what is left then is read while nobody waits."""
        key = (path, count)
        with self._lock:
            kept = self._kept.setdefault(key, _Kept(Reading(path, count)))
            self._kept.move_to_end(key)
            while len(self._kept) > _MAX_KEPT:
                self._kept.popitem(last=False)
        with kept.lock:
            complete = kept.reading.advance(seconds)
            if not complete:
                self._read_on(key, kept)
            yield Look(kept.reading, complete)

    def _read_on(self, key: tuple[Path, int], kept: _Kept) -> None:
        with self._lock:
            self._behind[key] = kept
            if self._reader is None:
                self._reader = threading.Thread(target=self._read, name="batches", daemon=True)
                self._reader.start()

    def _read(self) -> None:
        while True:
            with self._lock:
                if not self._behind:
                    self._reader = None
                    return
                key, kept = next(iter(self._behind.items()))
            with kept.lock:
                complete = kept.reading.advance(_SLICE_SECONDS)
            if complete:
                with self._lock:
                    self._behind.pop(key, None)
            # Somebody who waits for the lock gets it now.
            time.sleep(_PAUSE_SECONDS)
