"""Notifications while a tool runs: progress on request, and the lines of stderr as log messages.

A tool never waits for a slow client: lines that the client does not read in time are dropped and
counted. The progress of a tool that reports none is the time and its last line.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from rye.mcp.content import encodable_text
from rye.mcp.protocol.types import LEVELS
from rye.mcp.request import send_progress
from rye.mcp.tasks import cancel_and_wait, wait_at_most

if TYPE_CHECKING:
    from rye.executor.run.channel import Progress
    from rye.mcp.protocol.types import LogLevel
    from rye.mcp.request import Request

LINE_LEVEL: Final = "info"

_FIRST_HEARTBEAT_SECONDS = 0.5
_HEARTBEAT_SECONDS = 2.0
_MIN_SECONDS_BETWEEN = 0.2
_MAX_LINES_WAITING = 256
_MAX_REPORTS_WAITING = 16
# The protocol requires that each progress is greater than the one before.
_LEAST_PROGRESS = 0.001
_MAX_LINE = 2000
_LAST_LINES_SECONDS = 1.0


class LogLevels:
    """The log level of each session of the 2025 revisions; the default includes stderr lines.

    Clients of 2026-07-28 send the level with each request.
    """

    _MAX_SESSIONS = 10_000

    def __init__(self) -> None:
        self._levels: dict[str | None, LogLevel] = {}

    def set(self, request: Request, level: LogLevel) -> None:
        """Set the level of the session that this request belongs to."""
        if len(self._levels) >= self._MAX_SESSIONS:
            del self._levels[next(iter(self._levels))]
        self._levels[request.session] = level

    def wants_lines(self, request: Request) -> bool:
        """Return True if the client of this request wants lines of stderr."""
        if request.era == "stateless":
            level = request.meta.log_level
        else:
            level = self._levels.get(request.session, LINE_LEVEL)
        return level is not None and LEVELS.index(LINE_LEVEL) >= LEVELS.index(level)


def _is_text(line: str) -> bool:
    """True unless it is empty or comes from bytes that are not UTF-8."""
    return bool(line) and encodable_text(line) == line


class CallNotifier:
    """Turns the output of one call into notifications."""

    def __init__(self, request: Request, item_id: str, *, lines: bool) -> None:
        self._request = request
        self._item_id = item_id
        self._lines_wanted = lines
        self.progress_wanted = request.meta.progress_token is not None
        self._started = time.monotonic()
        self._lines: deque[str] = deque()
        self._dropped = 0
        self._unfinished = ""
        self._last_line = ""
        self._whole_line = ""
        self._begun: dict[str, str] = {}
        self._reports: deque[Progress] = deque(maxlen=_MAX_REPORTS_WAITING)
        self._report: Progress | None = None
        self._last_progress: float | None = None
        self._new_output = asyncio.Event()
        self._call_ended = asyncio.Event()
        self._sender: asyncio.Task[None] | None = None

    @property
    def wanted(self) -> bool:
        """True if the client wants any notification."""
        return self._lines_wanted or self.progress_wanted

    def on_output(self, stream: str, text: str) -> None:
        """Accept a piece of output, which may start and end in the middle of a line."""
        if stream == "stderr":
            *lines, self._unfinished = (self._unfinished + text).split("\n")
            for line in lines:
                self._add(line)
            if len(self._unfinished) > _MAX_LINE:
                self._add(self._unfinished)
                self._unfinished = ""
        self._note_progress(stream, text)
        if self._lines or self.progress_wanted:
            self._start_sending()

    def _note_progress(self, stream: str, text: str) -> None:
        """Remember the last whole line that is not empty; until there is one, what has begun."""
        begun = self._begun.get(stream, "") + text
        *whole, rest = begun.split("\n")
        self._begun[stream] = rest[-_MAX_LINE:]
        last = next((line.strip() for line in reversed(whole) if _is_text(line.strip())), "")
        self._whole_line = last or self._whole_line
        self._last_line = self._whole_line or (rest.strip() if _is_text(rest) else "")

    def on_progress(self, progress: Progress) -> None:
        """Accept what the tool reports about its progress; of too many reports, the last remain."""
        if self.progress_wanted:
            self._reports.append(progress)
            self._start_sending()

    @asynccontextmanager
    async def sending(self) -> AsyncIterator[None]:
        """Send notifications while the body runs, and the last lines after it."""
        if not self.wanted:
            yield
            return
        loop = asyncio.get_running_loop()
        heartbeat = loop.call_later(_FIRST_HEARTBEAT_SECONDS, self._start_sending)
        try:
            yield
            self._add(self._unfinished)
            self._call_ended.set()
            if self._lines or self._reports:
                self._start_sending()
            if self._sender is not None:
                self._new_output.set()
                await asyncio.wait([self._sender], timeout=_LAST_LINES_SECONDS)
        finally:
            heartbeat.cancel()
            if self._sender is not None:
                await cancel_and_wait(self._sender)

    def _start_sending(self) -> None:
        """Wake the sender, or start it: most calls end without a notification and need none."""
        self._new_output.set()
        if self._sender is None:
            self._sender = asyncio.create_task(self._send())

    def _add(self, line: str) -> None:
        if not self._lines_wanted or not line.strip():
            return
        if len(self._lines) >= _MAX_LINES_WAITING:
            self._lines.popleft()
            self._dropped += 1
        self._lines.append(line.rstrip("\r")[:_MAX_LINE])

    async def _send(self) -> None:
        while True:
            await wait_at_most(self._new_output, _HEARTBEAT_SECONDS)
            self._new_output.clear()
            await self._send_lines()
            reported = await self._send_reports()
            if self._call_ended.is_set():
                return
            if not reported:
                await self._send_heartbeat()
            # Limits the rate of progress messages for a tool with much output.
            await wait_at_most(self._call_ended, _MIN_SECONDS_BETWEEN)

    async def _send_reports(self) -> bool:
        reported = bool(self._reports)
        while self._reports:
            self._report = self._reports.popleft()
            await self._send_progress(self._report.progress, self._report.message)
        return reported

    async def _send_heartbeat(self) -> None:
        last_line = encodable_text(self._last_line[:_MAX_LINE])
        if self._report is not None:
            await self._send_progress(self._report.progress, self._report.message or last_line)
            return
        elapsed = round(time.monotonic() - self._started, 3)
        await self._send_progress(elapsed, last_line or f"running for {elapsed:.0f} s")

    async def _send_progress(self, progress: float, message: str) -> None:
        if not self.progress_wanted:
            return
        if self._last_progress is not None:
            progress = max(progress, round(self._last_progress + _LEAST_PROGRESS, 3))
        self._last_progress = progress
        total = None if self._report is None else self._report.total
        text = encodable_text(message[:_MAX_LINE])
        await send_progress(self._request, progress, text, total)

    async def _send_lines(self) -> None:
        if self._dropped:
            self._lines.appendleft(f"({self._dropped} lines of stderr omitted)")
            self._dropped = 0
        while self._lines:
            line = encodable_text(self._lines.popleft())
            await self._request.notify(
                "notifications/message",
                {"level": LINE_LEVEL, "logger": self._item_id, "data": line},
            )
