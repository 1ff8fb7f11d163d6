"""Signs of life on a terminal: how long a tool has been running, and a bar for many files."""

from __future__ import annotations

import os
import sys

from rye.cli.output.printing import is_terminal, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from threading import Event, Lock
    from typing import TypeVar

    Element = TypeVar("Element")

_CLEAR_LINE = "\r\x1b[2K"
# Fewer elements are done before a bar could be read.
_MIN_FOR_BAR = 200


class RunningTime:
    """A line on stderr with the time that a tool has been running, from the first second on.

    It appears only on a terminal, and never after :meth:`stop`, so that it does not get mixed up
    with the output of the tool.
    """

    def __init__(self, name: str, *, wanted: bool = True) -> None:
        self._name = name
        self._wanted = wanted and is_terminal(sys.stderr) and os.environ.get("TERM") != "dumb"
        self._shared: tuple[Lock, Event] | None = None
        self._shown = False

    def start(self) -> None:
        """Start the clock."""
        if self._wanted:
            # Without a terminal, `rye run` does not need threads.
            from threading import Event, Lock, Thread

            lock, stopped = self._shared = Lock(), Event()
            Thread(target=self._run, args=(lock, stopped), name="progress", daemon=True).start()

    def stop(self) -> None:
        """Remove the line. Nothing is written after this returns."""
        if self._shared is None:
            return
        lock, stopped = self._shared
        with lock:
            stopped.set()
            if self._shown:
                _write(_CLEAR_LINE)
                self._shown = False

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
