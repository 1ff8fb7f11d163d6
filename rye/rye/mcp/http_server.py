"""The HTTP server of ``rye mcp --http`` and of the page ``rye ui``, without their applications."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator

import uvicorn
from starlette.types import ASGIApp

from rye.mcp.http_connections import IDLE_SECONDS, Acceptor, Connection, Connections

_SHUTDOWN_SECONDS = 2


class LimitedServer(uvicorn.Server):
    """A uvicorn server that limits connections, leaves signals to its caller and reports when it is
    ready.
    """

    def __init__(
        self, app: ASGIApp, connections: Connections, on_ready: Callable[[], object]
    ) -> None:
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="on",
            loop="asyncio",
            http="h11",
            ws="none",
            timeout_keep_alive=IDLE_SECONDS,
            timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        )
        super().__init__(config)
        self._connections = connections
        self._on_ready = on_ready
        self._acceptors: list[Acceptor] = []

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup([])
        for listening in sockets or []:
            listening.listen(self.config.backlog)
            self._acceptors.append(Acceptor(listening, self._connections, self._new_connection))
            self._acceptors[-1].start()
        self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for acceptor in self._acceptors:
            acceptor.close()
        await super().shutdown(sockets)

    def _new_connection(self) -> Connection:
        return Connection(self._connections, self.config, self.server_state, self.lifespan.state)
