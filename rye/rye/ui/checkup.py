"""What ``rye doctor`` finds, remembered for a while: it starts programs to get their versions."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rye.context import Context
    from rye.doctor.checks import Finding
    from rye.executor.permitted import Enforceable

_AGE_SECONDS = 60.0
_AGAIN_SECONDS = 2.0
_WAIT_SECONDS = 0.2


class Checkup(NamedTuple):
    """What was found, and when."""

    findings: tuple[Finding, ...]
    parts: tuple[Enforceable, ...]
    """What can be enforced here; empty if the helper cannot say it."""
    fault: str
    """Why it cannot."""
    milliseconds: int
    """The time of the end, since 1970."""


class Checkups:
    """Looks in a thread of its own, once at a time. Its methods may be called by any thread."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(1, "checkup")
        self._running: Future[Checkup] | None = None
        self._last: Checkup | None = None
        self._ended = 0.0

    def get(self, *, again: bool = False) -> tuple[Checkup | None, bool]:
        """Return what was found last, and whether somebody looks at the moment.

        Somebody does if nothing is known yet, if that is old, or if the reader wants it ``again``.
        A short look is waited for.
        """
        with self._lock:
            age = time.monotonic() - self._ended
            due = self._last is None or age > (_AGAIN_SECONDS if again else _AGE_SECONDS)
            if self._running is None and due:
                self._running = self._pool.submit(_look, self._context)
            running = self._running
        if running is not None:
            wait([running], _WAIT_SECONDS)
        return self._last_and_whether_running()

    def _last_and_whether_running(self) -> tuple[Checkup | None, bool]:
        with self._lock:
            if self._running is not None and self._running.done():
                done, self._running = self._running, None
                self._last, self._ended = done.result(), time.monotonic()
            return self._last, self._running is not None

    async def ended(self) -> None:
        """Return when nobody looks any more."""
        running = self._running
        if running is not None:
            # Not awaited itself: a reader who leaves must not cancel it for the others.
            await asyncio.wait([asyncio.wrap_future(running)])


def _look(context: Context) -> Checkup:
    from lilux.primitives.errors import LiluxError

    from rye.doctor.findings import findings
    from rye.executor.permitted import enforceable_here

    parts: tuple[Enforceable, ...] = ()
    fault = ""
    try:
        parts = tuple(enforceable_here())
    except LiluxError as error:
        fault = str(error)
    return Checkup(tuple(findings(context)), parts, fault, int(time.time() * 1000))
