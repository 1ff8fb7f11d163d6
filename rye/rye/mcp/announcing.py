"""Telling clients that the list of tools changed, in the two ways that the revisions ask for.

Clients of 2026-07-28 listen on a stream that they opened; older ones are told on their session,
which is remembered when they report that they are ready.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import anyio
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

from rye.mcp.reporting import session_key

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.session import ServerSession

_MAX_SESSIONS = 1000
_PATIENCE_SECONDS = 2.0


class Announcer:
    """Who is to be told."""

    def __init__(self) -> None:
        self._bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self._bus)
        self._sessions: OrderedDict[str, ServerSession] = OrderedDict()

    async def remember(self, ctx: ServerRequestContext[Any, Any], _params: object) -> None:
        """A client of the 2025 revisions is ready."""
        self._sessions[session_key(ctx)] = ctx.session
        if len(self._sessions) > _MAX_SESSIONS:
            self._sessions.popitem(last=False)

    async def tools_changed(self) -> None:
        """Tell all; a client that does not read keeps nobody else waiting."""
        await self._bus.publish(ToolsListChanged())
        await asyncio.gather(*(_tell(session) for session in self._sessions.values()))


async def _tell(session: ServerSession) -> None:
    with anyio.move_on_after(_PATIENCE_SECONDS):
        await session.send_tool_list_changed()
