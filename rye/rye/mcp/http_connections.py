"""The connections of the HTTP server: how many there may be, and how long a request may take.

A connection *waits* until a request on it has passed the guard; from then on it belongs to a
*client*. The two are counted apart, so that connections without a valid request, whoever opens them
and however many, cannot take the place of those of clients. A response may take any time, so that
streams stay open.

uvicorn closes idle connections, but it has no other timeout. Its ``limit_concurrency`` counts all
connections alike, and asyncio's accept loop logs every connection that waits for a free descriptor.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections import Counter
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

CONNECTION = "rye.connection"
"""The key under which the state of a request's scope has its :class:`Connection`."""

IDLE_SECONDS = 5
"""How long a connection may be silent between two requests."""

_ACCEPTED_AT_ONCE = 4
_PAUSE_SECONDS = 0.2
_logger = logging.getLogger("rye.mcp")


class Limits(NamedTuple):
    """The numbers of connections, and the times within which a request must arrive."""

    waiting: int
    """Connections without an accepted request. Must be several times the number of connections that
    are accepted at once, so that a client that sends its request at once is not closed first."""
    clients: int
    head_seconds: float = 10
    """From the opening of a connection to the first accepted request."""
    body_seconds: float = 60
    """From the head of an accepted request to the end of its body."""

    @classmethod
    def for_descriptors(cls, descriptors: int) -> Limits:
        """Return limits that leave half of the file descriptors to files and tools."""
        waiting = min(max(descriptors // 8, 32), 128)
        return cls(waiting, clients=min(max(descriptors // 2 - waiting, 32), 1024))


def default_limits() -> Limits:
    """Return the limits for the file descriptors that this process may open."""
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return Limits.for_descriptors(1 << 20 if soft == resource.RLIM_INFINITY else soft)


class Connections:
    """All open connections, the oldest first.

    If too many wait, the oldest one of the host that has the most is closed: a flood from one host
    does not reach the clients on others, and a client that sends its request at once is not the
    oldest.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._waiting: dict[Connection, None] = {}
        self._clients: dict[Connection, None] = {}

    def add(self, connection: Connection) -> None:
        """Count a new connection as waiting; if there are too many, close one."""
        self._waiting[connection] = None
        if len(self._waiting) > self.limits.waiting:
            _logger.warning(
                "too many connections without a valid request: %d; the oldest are closed",
                self.limits.waiting,
            )
            hosts = Counter([each.host for each in self._waiting])
            busiest = max(hosts, key=lambda host: hosts[host])
            self._close(next(each for each in self._waiting if each.host == busiest))

    def accept(self, connection: Connection) -> bool:
        """Count the connection as a client's; return False if there are too many."""
        if connection in self._clients:
            return True
        if len(self._clients) >= self.limits.clients and not self._close_idle():
            _logger.warning(
                "too many connections of clients: %d; more requests are refused with status 503",
                self.limits.clients,
            )
            return False
        self._waiting.pop(connection, None)
        self._clients[connection] = None
        return True

    def discard(self, connection: Connection) -> None:
        """Forget a closed connection."""
        self._waiting.pop(connection, None)
        self._clients.pop(connection, None)

    def close_half_of_waiting(self) -> None:
        """Close the older half of the waiting connections."""
        for connection in list(self._waiting)[: (len(self._waiting) + 1) // 2]:
            self._close(connection)

    def _close(self, waiting: Connection) -> None:
        del self._waiting[waiting]
        waiting.refuse(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections; try again later")

    def _close_idle(self) -> bool:
        idle = next((each for each in self._clients if not each.is_serving), None)
        if idle is None:
            return False
        del self._clients[idle]
        idle.transport.abort()
        return True


class Connection(H11Protocol):
    """A connection whose requests must arrive within the time limits."""

    def __init__(
        self,
        connections: Connections,
        config: uvicorn.Config,
        server_state: uvicorn.server.ServerState,
        app_state: Mapping[str, Any],
    ) -> None:
        super().__init__(config, server_state, {**app_state, CONNECTION: self})
        self._connections = connections
        self._timer: asyncio.TimerHandle | None = None
        self.is_serving = False
        """True from the head of an accepted request to the end of its response."""

    @property
    def host(self) -> str:
        """The address of the client, without its port; empty if it is not known."""
        return self.client[0] if self.client else ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn declares it
        super().connection_made(transport)
        self._connections.add(self)
        self._start_timer(self._connections.limits.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._connections.discard(self)
        super().connection_lost(exc)

    def accept_request(self) -> bool:
        """Called for a request that passed the guard; returns False if there are too many."""
        if not self._connections.accept(self):
            return False
        self.is_serving = True
        self._start_timer(self._connections.limits.body_seconds)
        return True

    def on_response_complete(self) -> None:
        # Before the call, which may begin with the next request. A refused request leaves the timer
        # running: a client without the token has no reason to stay.
        if self.is_serving:
            self.is_serving = False
            self._start_timer(IDLE_SECONDS + self._connections.limits.head_seconds)
        super().on_response_complete()

    def refuse(self, status: HTTPStatus, reason: str) -> None:
        """Close the connection at once, with a response if none has been started."""
        cycle = self.cycle
        if cycle is None or cycle.response_complete or not cycle.response_started:
            body = json.dumps({"error": reason})
            head = f"HTTP/1.1 {status.value} {status.phrase}\r\nconnection: close\r\n"
            kind = f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
            self.transport.write(f"{head}{kind}{body}".encode())
        # Closing would wait for a peer that does not read.
        self.transport.abort()

    def _start_timer(self, seconds: float) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(seconds, self._on_time, seconds)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_time(self, seconds: float) -> None:
        if self.is_serving and not self.cycle.more_body:
            return
        reason = f"no complete request arrived within {seconds:g} seconds"
        self.refuse(HTTPStatus.REQUEST_TIMEOUT, reason)


class Acceptor:
    """Accepts connections, a few at a time, and pauses if the machine has no resources for more."""

    def __init__(
        self,
        listening: socket.socket,
        connections: Connections,
        new_connection: Callable[[], Connection],
    ) -> None:
        self._socket = listening
        self._connections = connections
        self._new_connection = new_connection
        self._loop = asyncio.get_running_loop()
        self._pause: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self) -> None:
        """Begin, or begin again, to accept connections."""
        self._socket.setblocking(False)
        self._loop.add_reader(self._socket, self._accept)

    def close(self) -> None:
        """Stop accepting; the socket stays open."""
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._socket)

    def _accept(self) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                accepted, _ = self._socket.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionAbortedError:
                continue
            except OSError as error:
                self._wait(error)
                return
            accepted.setblocking(False)
            task = self._loop.create_task(self._connect(accepted))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _connect(self, accepted: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._new_connection, accepted)
        except OSError:
            accepted.close()

    def _wait(self, error: OSError) -> None:
        """Without the pause, the loop would try again at once, forever."""
        _logger.warning(
            "connections cannot be accepted (%s); raise the limit for open files (ulimit -n) "
            "if this persists",
            (error.strerror or type(error).__name__).lower(),
        )
        self._connections.close_half_of_waiting()
        self._loop.remove_reader(self._socket)
        self._pause = self._loop.call_later(_PAUSE_SECONDS, self.start)
