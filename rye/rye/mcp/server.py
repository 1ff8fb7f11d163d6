"""The server on the SDK's low-level class: handlers, capabilities, and what lives beside them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
from mcp import types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.shared.exceptions import MCPError

from rye import __version__
from rye.context import Context
from rye.mcp.announcing import Announcer
from rye.mcp.calls import Calls
from rye.mcp.content import protocol_error
from rye.mcp.own_tools import INSTRUCTIONS
from rye.mcp.reading import CatalogueReader
from rye.mcp.settings import ServerSettings
from rye.mcp.surface import Surface

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.models import InitializationOptions

    Asked = ServerRequestContext[Any, Any]

_HEAD_START_SECONDS = 0.05
_IDLE_SECONDS = 1.0
_logger = logging.getLogger("rye.mcp")


class RyeServer(Server[None]):
    """A server that tells clients of all revisions that its list of tools may change."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """What the SDK's transports call without arguments."""
        return super().create_initialization_options(
            notification_options or NotificationOptions(tools_changed=True),
            experimental_capabilities,
            extensions,
        )


class Service:
    """Everything behind one ``rye mcp``: what it offers, what it runs, whom it tells."""

    def __init__(self, context: Context, settings: ServerSettings) -> None:
        """Raises ``ItemFormatError`` if the project's config cannot be read."""
        self._context = context
        catalogue = CatalogueReader(context)
        self._surface = Surface(context, settings, catalogue)
        self._announcer = Announcer()
        self._calls = Calls(context, settings, self._surface, catalogue)
        self._served = asyncio.Event()
        self._started = time.time_ns()
        self.server = RyeServer(
            "rye",
            version=__version__,
            title="Rye",
            instructions=INSTRUCTIONS,
            lifespan=self._lifespan,
            get_tool_input_schema=self._surface.schema_of,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_subscriptions_listen=self._announcer.listen,
        )
        # Not by the constructor, which warns of what only the 2026 revision deprecates.
        self.server.add_request_handler(
            "logging/setLevel", types.SetLevelRequestParams, self._set_level
        )
        self.server.add_notification_handler(
            "notifications/initialized", types.NotificationParams, self._announcer.remember
        )

    def stop(self) -> None:
        """Begin to end: running tools first, then the streams of those who listen."""
        self._calls.jobs.end_all()
        self._announcer.listen.close()

    async def _list_tools(
        self, _ctx: Asked, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        try:
            page = await self._surface.page(params.cursor if params is not None else None)
        except MCPError:
            raise
        except Exception as error:  # noqa: BLE001 - its text may hold values, and would be sent
            raise protocol_error(error) from None
        self._served.set()
        return types.ListToolsResult(tools=page.tools, next_cursor=page.next_cursor)

    async def _call_tool(
        self, ctx: Asked, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        self._served.set()
        return await self._calls.call(ctx, params)

    async def _set_level(
        self, ctx: Asked, params: types.SetLevelRequestParams
    ) -> types.EmptyResult:
        self._calls.levels.set(ctx, params.level)
        return types.EmptyResult()

    @asynccontextmanager
    async def _lifespan(self, _server: Server[None]) -> AsyncIterator[None]:
        background = asyncio.create_task(self._background())
        try:
            yield None
        finally:
            background.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait([background])
                await self._calls.aclose()

    async def _background(self) -> None:
        """What nobody waits for: it begins once the first answer is on its way."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_IDLE_SECONDS):
                await self._served.wait()
        await asyncio.sleep(_HEAD_START_SECONDS)
        try:
            await self._calls.warm_up()
            watch_tools = await asyncio.to_thread(_load_watching)
            await watch_tools(self._context, self._on_change, self._on_watching)
        except Exception as error:  # noqa: BLE001 - the server works without
            _logger.warning("changes of tools go unnoticed: %s", type(error).__name__)

    async def _on_watching(self) -> None:
        """What changed between the start of the server and now was seen by nobody."""
        from rye.mcp.watching import changed_since

        if await asyncio.to_thread(changed_since, self._context, self._started):
            await self._on_change()

    async def _on_change(self) -> None:
        await self._surface.reread()
        await self._announcer.tools_changed()


def _load_watching() -> Any:
    from rye.mcp.watching import watch_tools

    return watch_tools
