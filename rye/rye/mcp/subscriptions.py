"""Notifying clients that the list of tools changed.

Clients of 2026-07-28 listen on a stream that they opened. Older ones get a notification in their
session, which is remembered when they report that they are initialized.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from rye.mcp.protocol.eras import SUBSCRIPTION_KEY
from rye.mcp.protocol.errors import INTERNAL_ERROR, ProtocolError
from rye.mcp.protocol.types import ListenResult

if TYPE_CHECKING:
    from rye.mcp.protocol.types import ListenParams
    from rye.mcp.request import Client, Request

CHANGED = "notifications/tools/list_changed"

_MAX_SESSIONS = 1000
_MAX_STREAMS = 1000
_NOTIFY_SECONDS = 2.0


class ChangeNotifier:
    """Knows who wants to be notified."""

    def __init__(self) -> None:
        self._clients: OrderedDict[str, Client] = OrderedDict()
        self._streams: set[_Stream] = set()

    def remember(self, session: str, client: Client) -> None:
        """Notify this client of the 2025 revisions from now on."""
        self._clients[session] = client
        if len(self._clients) > _MAX_SESSIONS:
            self._clients.popitem(last=False)

    async def listen(self, request: Request, params: ListenParams) -> ListenResult:
        """Serve one stream, until the client cancels the request or the server stops."""
        if len(self._streams) >= _MAX_STREAMS:
            raise ProtocolError(INTERNAL_ERROR, "too many streams of changes; close some")
        meta = {SUBSCRIPTION_KEY: request.request_id}
        wanted = bool(params.notifications.tools_list_changed)
        honored = {"toolsListChanged": True} if wanted else {}
        stream = _Stream()
        # From here on, so that no change is lost while the acknowledgement is sent.
        self._streams.add(stream)
        try:
            acknowledged: dict[str, Any] = {"notifications": honored, "_meta": meta}
            await request.notify("notifications/subscriptions/acknowledged", acknowledged)
            while await stream.changed():
                if wanted:
                    await request.notify(CHANGED, {"_meta": meta})
        finally:
            self._streams.discard(stream)
        return ListenResult(meta)

    def close(self) -> None:
        """End all streams; each of them is answered."""
        for stream in self._streams:
            stream.close()

    async def tools_changed(self) -> None:
        """Notify all clients; one that does not read does not delay the others."""
        for stream in self._streams:
            stream.wake()
        await asyncio.gather(*(_notify(client) for client in self._clients.values()))


class _Stream:
    """Changes that a client has not been notified of yet; any number of them are one."""

    def __init__(self) -> None:
        self._woken = asyncio.Event()
        self._closed = False

    async def changed(self) -> bool:
        """Wait for a change. Returns False if there will be no more."""
        await self._woken.wait()
        self._woken.clear()
        return not self._closed

    def wake(self) -> None:
        self._woken.set()

    def close(self) -> None:
        self._closed = True
        self._woken.set()


async def _notify(client: Client) -> None:
    try:
        async with asyncio.timeout(_NOTIFY_SECONDS):
            await client.notify(CHANGED)
    except TimeoutError:
        return
