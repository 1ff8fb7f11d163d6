"""Serving any number of clients over Streamable HTTP, and deciding which requests may pass.

A web page must not reach a server on the same machine. Its requests are recognised by a foreign
``Origin`` header or, after DNS rebinding, by a foreign ``Host`` header. On other addresses the
token protects the server: a foreign page does not have it.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rye.context import Context
from rye.mcp.http_connections import (
    CONNECTION,
    IDLE_SECONDS,
    Connections,
    Limits,
    default_limits,
)
from rye.mcp.http_options import HEALTH_PATH, MCP_PATH, Listener
from rye.mcp.http_server import LimitedServer
from rye.mcp.process import StopSignals
from rye.mcp.sdk_server import DISCONNECTED, TOKEN_NAME, sdk_server
from rye.mcp.server import Service
from rye.mcp.settings import ServerSettings

_MAX_BODY = 8 * 1024 * 1024
_MAX_SESSIONS = 1000
_LAST_ANSWERS_SECONDS = 0.2

_CLOSE = {"Connection": "close"}

GRACE_SECONDS = 5.0
"""How long running calls may take after SIGTERM; less than the ten seconds that containers get."""


class Access(NamedTuple):
    """Which clients may use the server."""

    tokens: Mapping[str, str] = {}
    """By their names; empty if no token is required."""
    allowed_origins: Sequence[str] = ()
    """As returned by ``parse_origin``."""


async def serve_http(
    context: Context,
    settings: ServerSettings,
    listener: Listener,
    access: Access,
    on_ready: Callable[[], object],
    *,
    limits: Limits | None = None,
    grace_seconds: float = GRACE_SECONDS,
) -> signal.Signals | None:
    """Return the signal that stopped the server. Running tools have ended before this returns.

    After SIGTERM, new calls are refused and running ones may take ``grace_seconds``. Another
    signal, or a second one, cancels them at once.
    ``on_ready`` is called when clients can connect. ``limits`` default to those for the file
    descriptors of this process. Raises ``ItemFormatError`` if the project's config is invalid.
    """
    service = Service(context, settings)
    guard = _guarded(service, listener, access)
    app = _with_cors(guard, access)
    server = LimitedServer(app, Connections(limits or default_limits()), on_ready)

    hurry = asyncio.Event()
    stopping: list[asyncio.Task[None]] = []

    async def stop_gently(grace: float) -> None:
        service.refuse_calls()
        guard.report_stopping()
        calls = asyncio.create_task(service.wait_for_calls())
        hurried = asyncio.create_task(hurry.wait())
        await asyncio.wait({calls, hurried}, timeout=grace, return_when=asyncio.FIRST_COMPLETED)
        hurried.cancel()
        service.stop()
        server.should_exit = True
        # Until the guard closes, cancelled calls can still be answered.
        await calls
        await asyncio.sleep(_LAST_ANSWERS_SECONDS)
        guard.close()

    def stop() -> None:
        if stopping or signals.received is not signal.SIGTERM:
            hurry.set()
        if not stopping:
            stopping.append(asyncio.create_task(stop_gently(grace_seconds)))

    with StopSignals(stop) as signals:
        await server.serve(sockets=[listener.socket])
    for task in stopping:
        task.cancel()
    return signals.received


def _guarded(service: Service, listener: Listener, access: Access) -> _Guard:
    own = {f"http://{host}" for host in listener.hosts}
    rules = _Rules(
        tokens=access.tokens,
        hosts=listener.hosts if listener.is_loopback else None,
        origins=frozenset({*own, *access.allowed_origins}),
    )
    app = sdk_server(service).streamable_http_app(
        streamable_http_path=MCP_PATH,
        max_request_body_size=_MAX_BODY,
        max_sessions=_MAX_SESSIONS,
        # The guard checks more, and earlier.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    return _Guard(app, rules)


def _with_cors(guard: _Guard, access: Access) -> ASGIApp:
    """Put CORS outside the guard: preflight requests of browsers have no token."""
    if not access.allowed_origins:
        return guard
    return CORSMiddleware(
        guard,
        allow_origins=access.allowed_origins,
        allow_methods=["GET", "POST", "DELETE"],
        allow_headers=["*"],
        expose_headers=["mcp-session-id"],
    )


class _Rules(NamedTuple):
    """The headers that a request must have."""

    tokens: Mapping[str, str]
    hosts: frozenset[str] | None
    """``None`` if the names under which clients reach the server are unknown."""
    origins: frozenset[str]

    def refusal(self, headers: Headers) -> Response | None:
        """Return the response to a request that may not pass, else ``None``."""
        host = headers.get("host", "").lower()
        if self.hosts is not None and host not in self.hosts:
            return _error_response(421, "the Host header does not name this server")
        origins = headers.getlist("origin")
        if any(origin.lower() not in self.origins for origin in origins):
            return _error_response(403, "this origin is not allowed; see --allow-origin")
        if self.tokens and not self.token_name(headers):
            challenge = {"WWW-Authenticate": 'Bearer realm="rye"'}
            return _error_response(401, "a valid bearer token is required", challenge)
        return None

    def token_name(self, headers: Headers) -> str:
        """Return the name of the token that the client sent; empty if it is not valid.

        Every token is compared, in constant time, so that a guess reveals nothing.
        """
        scheme, _, sent = headers.get("authorization", "").partition(" ")
        given = sent.strip().encode("latin-1", "replace")
        same = [
            name
            for name, token in self.tokens.items()
            if hmac.compare_digest(given, token.encode())
        ]
        return same[0] if same and scheme.lower() == "bearer" else ""


class _Guard:
    """Checks the headers of each request, and records when its client disconnects."""

    def __init__(self, app: ASGIApp, rules: _Rules) -> None:
        self._app = app
        self._rules = rules
        self._closing = asyncio.Event()
        self._is_stopping = False

    def report_stopping(self) -> None:
        """Let the answer to health checks be that the server is stopping."""
        self._is_stopping = True

    def close(self) -> None:
        """Make every request, current and future, look as if its client had disconnected."""
        self._closing.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["path"] == HEALTH_PATH:
            await self._health(scope)(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._rules.refusal(headers)
        if refusal is None and not scope["state"][CONNECTION].accept_request():
            later = {"Retry-After": str(IDLE_SECONDS), "Connection": "close"}
            refusal = _error_response(503, "too many connections; try again later", later)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        disconnected = scope[DISCONNECTED] = asyncio.Event()
        scope[TOKEN_NAME] = name = self._rules.token_name(headers)
        if name:
            # The SDK then serves a session only to the token that opened it.
            scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=name, scopes=[]))

        async def receive_and_record() -> Message:
            message = await self._receive(receive)
            if message["type"] == "http.disconnect":
                disconnected.set()
            return message

        await self._app(scope, receive_and_record, send)

    def _health(self, scope: Scope) -> Response:
        """The answer to whoever asks whether the server is alive; it says nothing else."""
        if scope["method"] not in ("GET", "HEAD"):
            return _error_response(405, "use GET", {"Allow": "GET, HEAD", **_CLOSE})
        if self._is_stopping:
            return _error_response(503, "the server is stopping", _CLOSE)
        return Response('{"status": "ok"}', headers=_CLOSE, media_type="application/json")

    async def _receive(self, receive: Receive) -> Message:
        receiving = asyncio.ensure_future(receive())
        closing = asyncio.ensure_future(self._closing.wait())
        try:
            await asyncio.wait({receiving, closing}, return_when=asyncio.FIRST_COMPLETED)
            return receiving.result() if receiving.done() else {"type": "http.disconnect"}
        finally:
            receiving.cancel()
            closing.cancel()


def _error_response(status: int, reason: str, headers: dict[str, str] | None = None) -> Response:
    return Response(
        json.dumps({"error": reason}),
        status_code=status,
        headers=headers,
        media_type="application/json",
    )
