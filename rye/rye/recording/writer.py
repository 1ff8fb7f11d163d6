"""Moves the spool into the database in a thread of a process that makes many calls.

A program that makes one call leaves its line to the next reader.
"""

from __future__ import annotations

import time
from _thread import allocate_lock, start_new_thread

from rye.errors import HistoryError
from rye.recording.settings import Retention

_LINES = 1000
_SECONDS = 30.0


class Writer:
    """Counts the lines of a process, and moves them when there are many or some are old."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._moving = allocate_lock()
        self._lines = 0
        self._since = 0.0
        self.fault: HistoryError | None = None
        """Why the last attempt failed."""

    def appended(self, retention: Retention) -> None:
        """Note a line; returns at once."""
        now = time.monotonic()
        if not self._lines:
            self._since = now
        self._lines += 1
        if self._lines < _LINES and now - self._since < _SECONDS:
            return
        if self._moving.acquire(blocking=False):
            self._lines = 0
            start_new_thread(self._move, (retention,))

    def _move(self, retention: Retention) -> None:
        try:
            from rye.recording.mover import move_spool

            move_spool(self._folder, retention, wait=False)
            self.fault = None
        except HistoryError as error:
            self.fault = error
        except Exception as error:  # noqa: BLE001 - a thread has no caller to tell
            self.fault = HistoryError(f"{self._folder}: unexpected {type(error).__name__}")
        finally:
            self._moving.release()
