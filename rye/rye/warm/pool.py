"""The prepared processes of an executor.

A process is prepared in the background after the second call within a minute; calls run cold until
it is ready. It ends when it was not used for a while, when others need its place or its memory, or
when the tool runs with something else: its files, its interpreter, its packages, its environment or
its permissions. The pool belongs to one event loop; the processes end with it.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from typing import TypeVar

from lilux.primitives.errors import LiluxError, NotPreparedError
from lilux.primitives.subprocess import PreparedProcess, SubprocessPrimitive
from lilux.record import Record, field

from rye.warm.request import WarmRequest
from rye.warm.settings import WarmSettings

Value = TypeVar("Value")

WINDOW_SECONDS = 60.0
"""Two calls within this time start a prepared process."""
REFUSED_SECONDS = 600.0
"""A tool that could not be prepared is not tried again for this long."""
_MAX_REMEMBERED = 1024
_MAX_WAITED = 3
_MAX_PATHS = 4096
_TOO_LARGE = "it needs more memory than all prepared processes may have (warm.memory)"
_SHARED = "it creates shared memory when it is imported"


class _Entry(Record, kw_only=True):
    """A prepared process, or one that is being prepared."""

    tool: str
    key: tuple[object, ...] = field(repr=False)
    used: float
    process: PreparedProcess | None = None
    task: asyncio.Task[None] | None = None
    memory: int = 0
    paths: tuple[tuple[str, int], ...] = ()
    """What the process was loaded from, and when each was changed."""

    @property
    def usable(self) -> bool:
        return (
            self.process is not None
            and self.process.alive
            and all(_changed(path) == when for path, when in self.paths)
        )


class WarmPool:
    """Finds the prepared process for a call, and starts and ends them."""

    def __init__(
        self,
        settings: Callable[[], WarmSettings],
        on_refusal: Callable[[str, str], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``on_refusal(closure, reason)`` is called for a tool that cannot be prepared."""
        self._settings = settings
        self._on_refusal = on_refusal
        self._clock = clock
        self._entries: dict[tuple[object, ...], _Entry] = {}
        self._seen: dict[str, tuple[float, int]] = {}
        self._refused: dict[str, float] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._primitive: SubprocessPrimitive | None = None

    def process(
        self, request: WarmRequest, *, at_once: bool = False, changes_soon: bool = False
    ) -> PreparedProcess | None:
        """The process that can take this call, or ``None``: then it runs cold.

        ``at_once`` prepares one already after the first call. If the next call will probably have
        another key, ``changes_soon`` waits for it, but not for ever.
        """
        settings = self._settings()
        if not settings.enabled or settings.processes == 0:
            return None
        key, now = request.key, self._clock()
        entry = self._entries.get(key)
        if entry is not None:
            entry.used = now
            if entry.process is None:
                return None
            if entry.usable:
                return entry.process
            self._drop(entry)
        if now < self._refused.get(request.closure, now):
            return None
        last, calls = self._seen.get(request.tool, (now, 0))
        calls = calls + 1 if now - last <= WINDOW_SECONDS else 1
        _remember(self._seen, request.tool, (now, calls))
        if (at_once or calls > 1) and not (changes_soon and calls <= _MAX_WAITED):
            self._begin(request, key, now, settings)
        return None

    def failed(
        self, process: PreparedProcess, request: WarmRequest, error: NotPreparedError
    ) -> None:
        """A call could not be made: replace the process, unless that cannot work."""
        for entry in list(self._entries.values()):
            if entry.process is process:
                self._drop(entry)
        key, now, settings = request.key, self._clock(), self._settings()
        if "more than one thread" in error.reason:
            self._refuse(request.closure, "it starts threads when it is imported")
        elif key not in self._entries and settings.enabled and settings.processes:
            self._begin(request, key, now, settings)

    def processes(self) -> int:
        """The number of prepared processes, including those being prepared."""
        return len(self._entries)

    async def settled(self) -> None:
        """Wait until no process is being prepared or ended."""
        while tasks := [
            *self._closing,
            *(one.task for one in self._entries.values() if one.process is None and one.task),
        ]:
            await asyncio.wait(tasks)

    async def aclose(self) -> None:
        """End all prepared processes. The pool may be used again."""
        for entry in list(self._entries.values()):
            self._drop(entry)
        await self.settled()

    def _begin(
        self, request: WarmRequest, key: tuple[object, ...], now: float, settings: WarmSettings
    ) -> None:
        for entry in list(self._entries.values()):
            if entry.tool == request.tool:
                self._drop(entry)
        while len(self._entries) >= settings.processes:
            self._drop(min(self._entries.values(), key=lambda one: one.used))
        entry = self._entries[key] = _Entry(tool=request.tool, key=key, used=now)
        entry.task = asyncio.create_task(self._prepare(entry, request))

    async def _prepare(self, entry: _Entry, request: WarmRequest) -> None:
        try:
            if self._primitive is None:
                self._primitive = SubprocessPrimitive()
            process = await self._primitive.prepare(request.preparation)
        except (LiluxError, ValueError) as error:
            self._forget(entry)
            self._refuse(request.closure, f"it could not be prepared ({_first_line(str(error))})")
            return
        settings, report = self._settings(), _report(process.report)
        reason = report.cold or (_TOO_LARGE if report.memory > settings.memory else "")
        if not reason and _has_shared_memory(report.pid):
            reason = _SHARED
        if reason:
            self._refuse(request.closure, reason)
            await process.aclose()
            self._forget(entry)
            return
        entry.process, entry.memory = process, report.memory
        entry.paths = tuple([(path, _changed(path)) for path in report.paths])
        self._make_room(entry, settings)
        self._set_timer()

    def _make_room(self, new: _Entry, settings: WarmSettings) -> None:
        while sum(one.memory for one in self._entries.values()) > settings.memory:
            others = [one for one in self._entries.values() if one is not new and one.memory]
            if not others:
                return
            self._drop(min(others, key=lambda one: one.used))

    def _refuse(self, closure: str, reason: str) -> None:
        _remember(self._refused, closure, self._clock() + REFUSED_SECONDS)
        self._on_refusal(closure, reason)

    def _forget(self, entry: _Entry) -> None:
        if self._entries.get(entry.key) is entry:
            del self._entries[entry.key]

    def _drop(self, entry: _Entry) -> None:
        """End a process in the background; its calls go on."""
        self._forget(entry)
        if entry.process is not None:
            self._keep(asyncio.create_task(entry.process.aclose()))
        elif entry.task is not None:
            entry.task.cancel()
            self._keep(entry.task)

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _set_timer(self) -> None:
        if self._timer is None and self._entries:
            idle = self._settings().idle_seconds
            due = min(one.used for one in self._entries.values()) + idle - self._clock()
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(due, 0) + 0.05, self.end_idle)

    def end_idle(self) -> None:
        """End the processes that were not used for a while."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        idle, now = self._settings().idle_seconds, self._clock()
        for entry in list(self._entries.values()):
            if entry.process is not None and now - entry.used >= idle:
                self._drop(entry)
        self._set_timer()


class _Report(Record, frozen=True, kw_only=True):
    """What a process says about itself."""

    cold: str = ""
    """Why it cannot be prepared."""
    memory: int = 0
    pid: int = 0
    paths: tuple[str, ...] = ()


def _report(line: bytes) -> _Report:
    try:
        given = json.loads(line)
    except ValueError:
        given = None
    if isinstance(given, dict) and isinstance(given.get("cold"), str):
        return _Report(cold=_first_line(given["cold"]))
    if not isinstance(given, dict) or not isinstance(given.get("memory"), int):
        return _Report(cold="its runtime does not report that it is prepared")
    paths, pid = given.get("paths"), given.get("pid")
    listed = paths[:_MAX_PATHS] if isinstance(paths, list) else []
    return _Report(
        memory=given["memory"],
        pid=pid if isinstance(pid, int) else 0,
        paths=tuple([one for one in listed if isinstance(one, str)]),
    )


def _has_shared_memory(pid: int) -> bool:
    """True if what one copy of a process writes there would be seen by the others.

    A confined process cannot find out by itself. False if nobody can.
    """
    try:
        with open(f"/proc/{pid}/maps", "rb") as file:  # noqa: PTH123 - a text
            # Address, then rwx and p for private or s for shared.
            return any(line.split()[1][1::2] == b"ws" for line in file)
    except (OSError, IndexError):
        return False


def _changed(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 - on the way of each call
    except (OSError, ValueError):
        return 0


def _first_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1][:200] if lines else "no reason given"


def _remember(known: dict[str, Value], key: str, value: Value) -> None:
    known.pop(key, None)
    known[key] = value
    if len(known) > _MAX_REMEMBERED:
        del known[next(iter(known))]
