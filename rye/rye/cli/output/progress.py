"""Signs of life on a terminal: how long a tool has been running, how far it has come, and a bar for
many files."""

from __future__ import annotations

import os
import sys
import time

from rye.cli.output.printing import is_terminal, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from threading import Event, Lock
    from typing import TypeVar

    Element = TypeVar("Element")

_BAR_WIDTH = 20
_SECONDS_BETWEEN_REPORTS = 0.1
_CLEAR_LINE = "\r\x1b[2K"
# Fewer elements are done before a bar could be read.
_MIN_FOR_BAR = 200


class RunningTime:
    """A line on stderr: the time that a tool has been running, from the first second on, or what it
    reports of its progress.

    It appears only on a terminal. After :meth:`stop`, only a report shows it again, so that it does
    not get mixed up with the output of the tool.
    """

    def __init__(self, name: str, *, wanted: bool = True) -> None:
        self._name = name
        self._wanted = wanted and is_terminal(sys.stderr) and os.environ.get("TERM") != "dumb"
        self._shared: tuple[Lock, Event] | None = None
        self._shown = False
        self._next_report = 0.0

    def start(self) -> None:
        """Start the clock."""
        if self._wanted:
            # Without a terminal, `rye run` does not need threads.
            from threading import Event, Lock, Thread

            lock, stopped = self._shared = Lock(), Event()
            Thread(target=self._run, args=(lock, stopped), name="progress", daemon=True).start()

    def stop(self) -> None:
        """Stop the clock and remove the line."""
        if self._shared is None:
            return
        lock, stopped = self._shared
        with lock:
            stopped.set()
            if self._shown:
                _write(_CLEAR_LINE)
                self._shown = False

    def report(self, progress: float, total: float | None, message: str) -> None:
        """Show how far the tool has come, instead of the time. At most ten times a second."""
        if self._shared is None:
            return
        now = time.monotonic()
        if now < self._next_report and progress != total:
            return
        self._next_report = now + _SECONDS_BETWEEN_REPORTS
        lock, stopped = self._shared
        with lock:
            stopped.set()
            self._shown = True
            line = plain(f"{_bar(progress, total)} {message}".rstrip().replace("\n", " "))
            _write(f"{_CLEAR_LINE}{line[: _width() - 1]}")

    def _run(self, lock: Lock, stopped: Event) -> None:
        seconds = 0
        while not stopped.wait(1):
            seconds += 1
            line = f"running {plain(self._name)} … {seconds} s"
            with lock:
                if not stopped.is_set():
                    self._shown = True
                    _write(f"{_CLEAR_LINE}{line[: _width() - 1]}")


def with_progress_bar(elements: Sequence[Element], label: str) -> Iterator[Element]:
    """Iterate over the elements, with a bar on stderr if it is a terminal and they are many."""
    import click

    hidden = len(elements) < _MIN_FOR_BAR or not sys.stderr.isatty()
    with click.progressbar(elements, label=label, hidden=hidden, file=sys.stderr) as bar:
        yield from bar


def _bar(progress: float, total: float | None) -> str:
    if total is None or total <= 0:
        return f"{progress:g}"
    share = min(max(progress / total, 0.0), 1.0)
    return f"[{'#' * round(share * _BAR_WIDTH):<{_BAR_WIDTH}}] {progress:g}/{total:g}"


def _write(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        return


def _width() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns
    except OSError:
        return 80
