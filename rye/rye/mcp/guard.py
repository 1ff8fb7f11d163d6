"""Who may speak to the HTTP server: checked before anything of a request is read.

A page in a browser must not reach a server on the same machine: its ``Origin`` is none of ours, or,
after DNS rebinding, the ``Host`` that it asks for is not. Elsewhere the token decides, which no
foreign page has.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from typing import NamedTuple

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rye.mcp.jobs import CLIENT_GONE


class Rules(NamedTuple):
    """What a request has to show."""

    token: str | None
    hosts: frozenset[str] | None
    """``None`` if the server goes by names that it does not know."""
    origins: frozenset[str]

    def refusal(self, headers: Headers) -> Response | None:
        """The answer to a request that may not pass."""
        host = headers.get("host", "").lower()
        if self.hosts is not None and host not in self.hosts:
            return _refused(421, "this server does not go by that name")
        origins = headers.getlist("origin")
        if any(origin.lower() not in self.origins for origin in origins):
            return _refused(403, "pages of that origin may not use this server; see --allow-origin")
        if self.token is not None and not _shows(headers, self.token):
            challenge = {"WWW-Authenticate": 'Bearer realm="rye"'}
            return _refused(401, "a bearer token is required", challenge)
        return None


class Guard:
    """Lets requests pass by the rules, and notes on each whether its client has hung up."""

    def __init__(self, app: ASGIApp, rules: Rules) -> None:
        self._app = app
        self._rules = rules
        self._closing = asyncio.Event()

    def close(self) -> None:
        """From now on every request looks as if its client had hung up, also those under way."""
        self._closing.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._rules.refusal(Headers(scope=scope))
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        gone = scope[CLIENT_GONE] = asyncio.Event()

        async def receive_and_notice() -> Message:
            message = await self._receive(receive)
            if message["type"] == "http.disconnect":
                gone.set()
            return message

        await self._app(scope, receive_and_notice, send)

    async def _receive(self, receive: Receive) -> Message:
        receiving = asyncio.ensure_future(receive())
        closing = asyncio.ensure_future(self._closing.wait())
        try:
            await asyncio.wait({receiving, closing}, return_when=asyncio.FIRST_COMPLETED)
            return receiving.result() if receiving.done() else {"type": "http.disconnect"}
        finally:
            receiving.cancel()
            closing.cancel()


def _shows(headers: Headers, token: str) -> bool:
    """Compares in a time that says nothing of how much was right."""
    kind, _, shown = headers.get("authorization", "").partition(" ")
    return kind.lower() == "bearer" and hmac.compare_digest(
        shown.strip().encode("latin-1", "replace"), token.encode()
    )


def _refused(status: int, why: str, headers: dict[str, str] | None = None) -> Response:
    return Response(
        json.dumps({"error": why}),
        status_code=status,
        headers=headers,
        media_type="application/json",
    )
