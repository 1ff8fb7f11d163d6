"""Serving any number of clients over Streamable HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

from rye.context import Context
from rye.mcp.address import MCP_PATH, Listener
from rye.mcp.guard import Guard, Rules
from rye.mcp.server import Service
from rye.mcp.settings import ServerSettings
from rye.mcp.signals import Ending

_MAX_BODY = 8 * 1024 * 1024
_MAX_SESSIONS = 1000
_LAST_WORDS_SECONDS = 0.2
_SHUTDOWN_SECONDS = 2


class Access(NamedTuple):
    """Who may come in."""

    token: str | None = None
    allowed_origins: Sequence[str] = ()
    """As ``parse_origin`` gives them."""


async def serve_http(
    context: Context,
    settings: ServerSettings,
    listener: Listener,
    access: Access,
    on_ready: Callable[[], object],
) -> signal.Signals | None:
    """Gives the signal that ended it; whatever runs is ended first.

    ``on_ready`` is called when clients can connect. Raises ``ItemFormatError`` for the project's
    config.
    """
    service = Service(context, settings)
    guard = _guarded(service, listener, access)
    config = uvicorn.Config(
        _open_to_pages(guard, access),
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        loop="asyncio",
        http="h11",
        ws="none",
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
    )
    server = _Server(config, on_ready)

    def stop() -> None:
        service.stop()
        server.should_exit = True
        # Until then, calls that were ended can still be answered.
        asyncio.get_running_loop().call_later(_LAST_WORDS_SECONDS, guard.close)

    with Ending(stop) as ending:
        await server.serve(sockets=[listener.socket])
    return ending.by


def _guarded(service: Service, listener: Listener, access: Access) -> Guard:
    own = {f"http://{host}" for host in listener.hosts}
    rules = Rules(
        token=access.token,
        hosts=listener.hosts if listener.is_loopback else None,
        origins=frozenset({*own, *access.allowed_origins}),
    )
    app = service.server.streamable_http_app(
        streamable_http_path=MCP_PATH,
        max_request_body_size=_MAX_BODY,
        max_sessions=_MAX_SESSIONS,
        # The guard has checked more, and earlier.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    return Guard(app, rules)


def _open_to_pages(guard: Guard, access: Access) -> ASGIApp:
    """Outside of the guard: a browser asks before it comes in, and shows no token when it does."""
    if not access.allowed_origins:
        return guard
    return CORSMiddleware(
        guard,
        allow_origins=access.allowed_origins,
        allow_methods=["GET", "POST", "DELETE"],
        allow_headers=["*"],
        expose_headers=["mcp-session-id"],
    )


class _Server(uvicorn.Server):
    """One that leaves signals to its caller and says when it is ready."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], object]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()
