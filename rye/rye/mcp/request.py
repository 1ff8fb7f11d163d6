"""What a handler knows about a request, whichever transport it came by."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rye.mcp.protocol.eras import Era, RequestMeta
    from rye.mcp.protocol.messages import RequestId
    from rye.mcp.protocol.types import ClientCapabilities


class Client(Protocol):
    """A connected client."""

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification; it is lost if the client has disconnected."""


class Request(Client, Protocol):
    """One request. Its notifications arrive before its answer."""

    @property
    def request_id(self) -> RequestId:
        """The id that the client chose."""

    @property
    def era(self) -> Era:
        """Which of the two ways of the protocol the client uses."""

    @property
    def version(self) -> str:
        """The revision of the protocol that the client uses."""

    @property
    def meta(self) -> RequestMeta:
        """What the client says about this request."""

    @property
    def capabilities(self) -> ClientCapabilities:
        """What the client can do for the server."""

    @property
    def session(self) -> str | None:
        """The key of the session: its id over HTTP, empty for the one client of stdio.

        ``None`` over HTTP in 2026-07-28, which has no sessions.
        """

    @property
    def client(self) -> str:
        """The name and version that the client gives itself; empty if it gives none."""

    @property
    def token_name(self) -> str:
        """The name of the token that the client showed; empty if none was required."""

    @property
    def disconnected(self) -> asyncio.Event | None:
        """Set when the client of an HTTP request disconnects."""

    async def ask(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Send a request to the client and return its result.

        Raises ``ProtocolError`` if the client answers with an error or cannot be asked: servers of
        2026-07-28 do not send requests. Cancellation withdraws the request.
        """


async def send_progress(
    request: Request, progress: float, message: str, total: float | None = None
) -> None:
    """Report progress, if the client asked for it."""
    token = request.meta.progress_token
    if token is not None:
        params: dict[str, Any] = {"progressToken": token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message:
            params["message"] = message
        await request.notify("notifications/progress", params)
