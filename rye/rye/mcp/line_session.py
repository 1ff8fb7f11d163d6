"""Serving one client over lines: requests become tasks, and their answers become lines."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from rye.mcp.callers import client_name
from rye.mcp.protocol.connection import (
    Answer,
    Call,
    Cancel,
    Connection,
    Event,
    Initialized,
    Reply,
)
from rye.mcp.protocol.errors import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    ProtocolError,
)
from rye.mcp.protocol.messages import RequestId, notification_line
from rye.mcp.server import SERVER, Service
from rye.mcp.tasks import cancel_and_wait

if TYPE_CHECKING:
    from rye.mcp.protocol.eras import Era, RequestMeta
    from rye.mcp.protocol.types import ClientCapabilities

_LAST_ANSWERS_SECONDS = 1.0
_logger = logging.getLogger("rye.mcp")


class Writer(Protocol):
    """Where lines go."""

    async def write(self, line: bytes) -> None:
        """Write all of it. Raises ``OSError`` if the client has disconnected."""


class LineSession:
    """One client; also the :class:`~rye.mcp.request.Client` that is notified of changes."""

    def __init__(self, service: Service, lines: AsyncIterable[bytes], writer: Writer) -> None:
        self._service = service
        self._lines = lines
        self._outbox = _Outbox(writer)
        methods = {name: handler.method for name, handler in service.handlers.items()}
        self._connection = Connection(SERVER, methods)
        self._running: dict[RequestId, asyncio.Task[None]] = {}
        self._asked: dict[RequestId, asyncio.Future[Mapping[str, Any]]] = {}

    async def serve(self) -> None:
        """Serve until the client disconnects or this is cancelled.

        All tools have ended before this returns.
        """
        async with self._service.running():
            reading = asyncio.create_task(self._read())
            writing = asyncio.create_task(self._outbox.run())
            try:
                await asyncio.wait({reading, writing}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                await cancel_and_wait(reading)
                for task in list(self._running.values()):
                    await cancel_and_wait(task)
                if not writing.done():
                    await self._outbox.drain(_LAST_ANSWERS_SECONDS)
                await cancel_and_wait(writing)
        for task in (reading, writing):
            _raise_unexpected(task)

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification, and wait until it was written."""
        await self._outbox.put(notification_line(method, params))

    async def ask(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Send a request to the client and return its result."""
        request_id, line = self._connection.ask(method, params)
        answer: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        self._asked[request_id] = answer
        try:
            await self._outbox.put(line)
            return await answer
        finally:
            del self._asked[request_id]
            withdrawn = self._connection.withdraw(request_id)
            if withdrawn is not None:
                self._outbox.put(withdrawn)

    async def _read(self) -> None:
        async for line in self._lines:
            event = self._connection.receive(line)
            if event is not None:
                self._act(event)

    def _act(self, event: Event) -> None:
        match event:
            case Call():
                task = asyncio.create_task(self._answer(event))
                self._running[event.request_id] = task
                task.add_done_callback(lambda _: self._running.pop(event.request_id, None))
            case Reply():
                self._outbox.put(event.line)
            case Cancel():
                task_of_call = self._running.get(event.request_id)
                if task_of_call is not None:
                    task_of_call.cancel()
            case Initialized():
                self._service.notifier.remember("", self)
            case Answer():
                self._settle(event)

    def _settle(self, answer: Answer) -> None:
        asked = self._asked.get(answer.request_id)
        if asked is None or asked.done():
            return
        if answer.error is not None:
            asked.set_exception(answer.error)
        else:
            asked.set_result(answer.result or {})

    async def _answer(self, call: Call) -> None:
        serve = self._service.handlers[call.method].serve
        line: bytes | None = None
        try:
            line = self._connection.finish(call, await serve(_LineRequest(self, call), call.params))
        except ProtocolError as error:
            line = self._connection.fail(call, error)
        except asyncio.CancelledError:
            stopped = ProtocolError(CONNECTION_CLOSED, "the server stopped; start it again")
            line = self._connection.fail(call, stopped)
            raise
        except Exception:
            _logger.exception("a request failed unexpectedly")
            failed = ProtocolError(INTERNAL_ERROR, "the server failed; see its log")
            line = self._connection.fail(call, failed)
        finally:
            if line is not None:
                self._outbox.put(line)


class _LineRequest:
    """A :class:`~rye.mcp.request.Request` of a client of lines."""

    session = ""
    token_name = ""
    disconnected = None

    def __init__(self, client: LineSession, call: Call) -> None:
        self._client = client
        self._call = call

    @property
    def request_id(self) -> RequestId:
        return self._call.request_id

    @property
    def era(self) -> Era:
        return self._call.era

    @property
    def version(self) -> str:
        return self._call.version

    @property
    def meta(self) -> RequestMeta:
        return self._call.meta

    @property
    def capabilities(self) -> ClientCapabilities:
        return self._call.capabilities

    @property
    def client(self) -> str:
        return client_name(self._call.client)

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        await self._client.notify(method, params)

    async def ask(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        if self.era == "stateless":
            raise ProtocolError(INVALID_REQUEST, "clients of 2026-07-28 cannot be sent requests")
        return await self._client.ask(method, params)


class _Outbox:
    """Lines that wait to be written, in order. A line is written whole or not at all."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._waiting: deque[tuple[bytes, asyncio.Future[None]]] = deque()
        self._filled = asyncio.Event()
        self._closed = False

    def put(self, line: bytes) -> asyncio.Future[None]:
        """Return a future that is done when the line was written, or never will be.

        A line whose future is cancelled before its turn is left out.
        """
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._closed:
            written.set_result(None)
        else:
            self._waiting.append((line, written))
            self._filled.set()
        return written

    async def run(self) -> None:
        """Write until the client disconnects."""
        try:
            while True:
                await self._filled.wait()
                self._filled.clear()
                while self._waiting:
                    line, written = self._waiting.popleft()
                    if not written.cancelled():
                        await self._writer.write(line)
                        _finish(written)
        finally:
            self._closed = True
            for _, written in self._waiting:
                _finish(written)

    async def drain(self, seconds: float) -> None:
        """Wait until everything was written, but no longer than this."""
        await asyncio.wait([self.put(b"")], timeout=seconds)


def _finish(written: asyncio.Future[None]) -> None:
    if not written.done():
        written.set_result(None)


def _raise_unexpected(task: asyncio.Task[None]) -> None:
    """Raise what ended a task, unless the client has disconnected or it was cancelled."""
    error = None if task.cancelled() else task.exception()
    if error is not None and not isinstance(error, OSError):
        raise error
