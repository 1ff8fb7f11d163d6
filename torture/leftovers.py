"""Finding processes and descriptors that a scenario left behind."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from processes import is_alive

MIB = 1024 * 1024


def wait_until_empty(look: Callable[[], list[str]], seconds: float = 15) -> list[str]:
    """Call ``look`` until it finds nothing or the time is up; return what it found last."""
    deadline = time.monotonic() + seconds
    while (found := look()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


class Baseline:
    """The descriptors and processes of this program before a scenario runs."""

    def __init__(self) -> None:
        self._descriptors = _descriptors()
        self._processes = {process.pid for process in psutil.Process().children(recursive=True)}

    def leftovers(self) -> list[str]:
        """Return a sentence for each new process, and one for new descriptors."""
        return wait_until_empty(self._look)

    def _look(self) -> list[str]:
        family = psutil.Process().children(recursive=True)
        found = [
            f"process {process.pid} is still alive"
            for process in family
            if process.pid not in self._processes and is_alive(process)
        ]
        if (more := _descriptors() - self._descriptors) > 0:
            found.append(f"descriptors left open: {more}")
        return found


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - only the number is needed


class Mark:
    """A unique number on the command line of ``sleep``, by which its processes are found.

    ``sleep`` adds it to its duration. It does not come from a seed: scenarios that run at the same
    time would find each other's processes.
    """

    def __init__(self) -> None:
        self.text = f"0.000{secrets.randbits(60):019}"

    @classmethod
    def named(cls, text: str) -> Mark:
        """Return the mark that another process made."""
        mark = cls.__new__(cls)
        mark.text = text
        return mark

    def tree(self, then: str | None = None) -> str:
        """Return a script for ``sh -c`` that starts a child, one in a new session, and a daemon.

        All of them end after a minute. ``then`` is what the shell does afterwards; by default it
        sleeps as well.
        """
        sleeper = f"sleep 60 {self.text}"
        start = f"{sleeper} & setsid {sleeper} & (setsid {sleeper} &)"
        return f"{start} >/dev/null 2>&1\n{then or f'exec {sleeper}'}"

    def alive(self) -> list[int]:
        """Return the pids of the living processes that have the mark."""
        wanted = self.text.encode()
        return [
            int(path.parent.name)
            for path in Path("/proc").glob("[0-9]*/cmdline")
            if (line := _read(path)).startswith((b"sleep\0", b"sh\0")) and wanted in line
        ]

    def leftovers(self) -> list[str]:
        """Wait for the processes to end; return a sentence for each that is still alive."""
        return wait_until_empty(
            lambda: [f"process {pid} of a job is still alive" for pid in self.alive()]
        )


def kill_all(mark: Mark) -> None:
    """Kill the processes that a scenario detached on purpose."""
    for pid in mark.alive():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
