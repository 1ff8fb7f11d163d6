"""What must not be left when a scenario is over."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from processes import is_alive

MIB = 1024 * 1024


def settled(look: Callable[[], list[str]], seconds: float = 15) -> list[str]:
    """What ``look`` still finds when it finds nothing, or when the time is up."""
    deadline = time.monotonic() + seconds
    while (found := look()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


class Before:
    """The descriptors and processes of this program, to be compared with afterwards."""

    def __init__(self) -> None:
        self._descriptors = _descriptors()
        self._processes = {process.pid for process in psutil.Process().children(recursive=True)}

    def left(self) -> list[str]:
        """A sentence for each process that is new, and one for new descriptors."""
        return settled(self._look)

    def _look(self) -> list[str]:
        family = psutil.Process().children(recursive=True)
        found = [
            f"process {process.pid} is left"
            for process in family
            if process.pid not in self._processes and is_alive(process)
        ]
        if (more := _descriptors() - self._descriptors) > 0:
            found.append(f"descriptors left open: {more}")
        return found


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - only their number counts


class Mark:
    """A number that ``sleep`` takes as part of its time, by which its processes are found."""

    def __init__(self, numbers: random.Random) -> None:
        self.text = f"0.000{numbers.getrandbits(60):019}"

    @classmethod
    def named(cls, text: str) -> Mark:
        """The mark that another process made."""
        mark = cls.__new__(cls)
        mark.text = text
        return mark

    def tree(self, then: str | None = None) -> str:
        """For ``sh -c``: a child, one in a new session, a daemon; all end by themselves.

        ``then`` is what the job's own process does afterwards; else it sleeps as well.
        """
        sleeper = f"sleep 60 {self.text}"
        start = f"{sleeper} & setsid {sleeper} & (setsid {sleeper} &)"
        return f"{start} >/dev/null 2>&1\n{then or f'exec {sleeper}'}"

    def alive(self) -> list[int]:
        """The pids of the processes of ``sleep`` that bear the mark."""
        wanted = self.text.encode()
        return [
            int(path.parent.name)
            for path in Path("/proc").glob("[0-9]*/cmdline")
            if (line := _read(path)).startswith((b"sleep\0", b"sh\0")) and wanted in line
        ]

    def left(self) -> list[str]:
        """A sentence for each that is still alive when there was time enough."""
        return settled(lambda: [f"a process of a job is left: {pid}" for pid in self.alive()])


def end_all(mark: Mark) -> None:
    """Ends what a scenario detached on purpose."""
    for pid in mark.alive():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
