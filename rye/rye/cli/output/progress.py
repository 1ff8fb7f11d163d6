"""A small line on the terminal while a tool runs and says nothing."""

from __future__ import annotations

import os
import sys

from rye.cli.output.printing import is_terminal, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from threading import Event, Lock

_CLEAR = "\r\x1b[2K"


class Progress:
    """Shows for how long a tool has been running, from the second second on.

    Nothing is shown off a terminal, and nothing more after :meth:`stop`: a line of ours in the
    middle of the tool's own output would be worse than none.
    """

    def __init__(self, name: str, *, wanted: bool = True) -> None:
        self._name = name
        self._wanted = wanted and is_terminal(sys.stderr) and os.environ.get("TERM") != "dumb"
        self._shared: tuple[Lock, Event] | None = None
        self._shown = False

    def start(self) -> None:
        """Begin to count."""
        if self._wanted:
            # Nobody else has a use for threads here.
            from threading import Event, Lock, Thread

            lock, stopped = self._shared = Lock(), Event()
            Thread(target=self._run, args=(lock, stopped), name="progress", daemon=True).start()

    def stop(self) -> None:
        """Take the line away; when this returns, nothing more will be written."""
        if self._shared is None:
            return
        lock, stopped = self._shared
        with lock:
            stopped.set()
            if self._shown:
                _write(_CLEAR)
                self._shown = False

    def _run(self, lock: Lock, stopped: Event) -> None:
        seconds = 0
        while not stopped.wait(1):
            seconds += 1
            line = f"running {plain(self._name)} … {seconds} s"
            with lock:
                if not stopped.is_set():
                    self._shown = True
                    _write(f"{_CLEAR}{line[: _width() - 1]}")


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
