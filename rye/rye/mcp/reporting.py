"""What a client hears while a tool runs: progress if it asked for that, and lines of stderr.

Nothing waits for a client that does not read: lines that it could not take are counted and left
out, and a tool is never slowed down.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio
from mcp import types
from mcp.server.connection import allowed_log_levels
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from rye.mcp.speakable import speakable_text

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

LEVELS: Final[tuple[types.LoggingLevel, ...]] = (
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
)
LINE_LEVEL: Final[types.LoggingLevel] = "info"

_FIRST_HEARTBEAT_SECONDS = 0.5
_HEARTBEAT_SECONDS = 2.0
_LEAST_SECONDS_BETWEEN = 0.2
_MAX_LINES_WAITING = 256
_MAX_LINE = 2000
_LAST_WORDS_SECONDS = 1.0


class LogLevels:
    """The level that each client of the 2025 revisions has set; until then lines are told.

    Clients of 2026-07-28 say with each request what they want to hear.
    """

    _MAX_SESSIONS = 10_000

    def __init__(self) -> None:
        self._levels: dict[str, types.LoggingLevel] = {}

    def set(self, ctx: ServerRequestContext[Any, Any], level: types.LoggingLevel) -> None:
        """From now on, for the session that this request belongs to."""
        if len(self._levels) >= self._MAX_SESSIONS:
            del self._levels[next(iter(self._levels))]
        self._levels[session_key(ctx)] = level

    def wants_lines(self, ctx: ServerRequestContext[Any, Any]) -> bool:
        """Whether a line of stderr is worth sending in answer to this request."""
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return LINE_LEVEL in allowed_log_levels(ctx.protocol_version, ctx.meta)
        level = self._levels.get(session_key(ctx), LINE_LEVEL)
        return LEVELS.index(LINE_LEVEL) >= LEVELS.index(level)


def session_key(ctx: ServerRequestContext[Any, Any]) -> str:
    """Tells the sessions of HTTP clients of the 2025 revisions apart; stdio has only one."""
    headers = getattr(ctx.request, "headers", None)
    return str(headers.get("mcp-session-id", "")) if headers is not None else ""


class Report:
    """Output in, notifications out."""

    def __init__(self, ctx: ServerRequestContext[Any, Any], item_id: str, *, lines: bool) -> None:
        self._ctx = ctx
        self._item_id = item_id
        self._lines_wanted = lines
        self.progress_wanted = bool(ctx.meta) and "progress_token" in (ctx.meta or {})
        self._started = time.monotonic()
        self._lines: deque[str] = deque()
        self._left_out = 0
        self._unfinished = ""
        self._last_line = ""
        self._news = asyncio.Event()
        self._over = asyncio.Event()
        self._teller: asyncio.Task[None] | None = None

    @property
    def wanted(self) -> bool:
        """Whether there is anybody to tell."""
        return self._lines_wanted or self.progress_wanted

    def on_output(self, stream: str, text: str) -> None:
        """A piece of output, which may begin and end in the middle of a line."""
        if stream == "stderr":
            *lines, self._unfinished = (self._unfinished + text).split("\n")
            for line in lines:
                self._add(line)
            if len(self._unfinished) > _MAX_LINE:
                self._add(self._unfinished)
                self._unfinished = ""
        self._last_line = next((x for x in reversed(text.split("\n")) if x.strip()), "").strip()
        if self._lines or self.progress_wanted:
            self._begin()

    @asynccontextmanager
    async def telling(self) -> AsyncIterator[None]:
        """Tell while the body runs; what came last is told before this ends."""
        loop = asyncio.get_running_loop()
        heartbeat = loop.call_later(_FIRST_HEARTBEAT_SECONDS, self._begin)
        try:
            yield
            self._add(self._unfinished)
            self._over.set()
            if self._lines:
                self._begin()
            if self._teller is not None:
                self._news.set()
                await asyncio.wait([self._teller], timeout=_LAST_WORDS_SECONDS)
        finally:
            heartbeat.cancel()
            if self._teller is not None and not self._teller.done():
                self._teller.cancel()
                with anyio.CancelScope(shield=True):
                    await asyncio.wait([self._teller])

    def _begin(self) -> None:
        """There is something to tell. Of most calls there is not, and they need no teller."""
        self._news.set()
        if self._teller is None:
            self._teller = asyncio.create_task(self._tell())

    def _add(self, line: str) -> None:
        if not self._lines_wanted or not line.strip():
            return
        if len(self._lines) >= _MAX_LINES_WAITING:
            self._lines.popleft()
            self._left_out += 1
        self._lines.append(line.rstrip("\r")[:_MAX_LINE])

    async def _tell(self) -> None:
        while True:
            await _wait_for(self._news, _HEARTBEAT_SECONDS)
            self._news.clear()
            await self._send_lines()
            if self._over.is_set():
                return
            await self._send_progress()
            # A tool that says much is told of in few messages.
            await _wait_for(self._over, _LEAST_SECONDS_BETWEEN)

    async def _send_progress(self) -> None:
        if not self.progress_wanted:
            return
        elapsed = round(time.monotonic() - self._started, 3)
        said = speakable_text(self._last_line[:_MAX_LINE])
        message = said or f"running for {elapsed:.0f} s"
        await self._ctx.session.report_progress(elapsed, None, message)

    async def _send_lines(self) -> None:
        if self._left_out:
            self._lines.appendleft(f"({self._left_out} lines of stderr are left out here)")
            self._left_out = 0
        while self._lines:
            line = speakable_text(self._lines.popleft())
            await self._ctx.session.send_notification(
                types.LoggingMessageNotification(
                    params=types.LoggingMessageNotificationParams(
                        level=LINE_LEVEL, logger=self._item_id, data=line
                    )
                ),
                related_request_id=self._ctx.request_id,
            )


async def _wait_for(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
