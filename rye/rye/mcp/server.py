"""The protocol server: request handlers, capabilities and background work, for all transports."""

from __future__ import annotations

import asyncio
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
from rye.mcp.builtin_tools import INSTRUCTIONS
from rye.mcp.calls import Calls
from rye.mcp.content import protocol_error
from rye.mcp.list_changes import ChangeNotifier, changed_since, log_not_watching, watch_tools
from rye.mcp.settings import ServerSettings
from rye.mcp.tasks import cancel_and_wait, wait_at_most
from rye.mcp.tool_list import CatalogueReader, ToolList

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.models import InitializationOptions

    RequestContext = ServerRequestContext[Any, Any]

_HEAD_START_SECONDS = 0.05
_IDLE_SECONDS = 1.0


class RyeServer(Server[None]):
    """An SDK server that announces to clients of all revisions that its tool list can change."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Return the options; the SDK's transports call this without arguments."""
        return super().create_initialization_options(
            notification_options or NotificationOptions(tools_changed=True),
            experimental_capabilities,
            extensions,
        )


class Service:
    """The handlers and the state of one ``rye mcp``, behind any transport."""

    def __init__(self, context: Context, settings: ServerSettings) -> None:
        """Read the project's config. Raises ``ItemFormatError`` if it is invalid."""
        self._context = context
        catalogue = CatalogueReader(context)
        self._tool_list = ToolList(context, settings, catalogue)
        self._notifier = ChangeNotifier()
        self._calls = Calls(context, settings, self._tool_list, catalogue)
        self._first_answer = asyncio.Event()
        self._started = time.time_ns()
        self.server = RyeServer(
            "rye",
            version=__version__,
            title="Rye",
            instructions=INSTRUCTIONS,
            lifespan=self._lifespan,
            get_tool_input_schema=self._tool_list.schema_of,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_subscriptions_listen=self._notifier.listen,
        )
        # Added here because the constructor warns that the 2026 revision deprecates this.
        self.server.add_request_handler(
            "logging/setLevel", types.SetLevelRequestParams, self._set_level
        )
        self.server.add_notification_handler(
            "notifications/initialized", types.NotificationParams, self._notifier.remember
        )

    def stop(self) -> None:
        """Begin to shut down: cancel running tools, then close the streams of listening clients."""
        self._calls.running.cancel_all()
        self._notifier.listen.close()

    async def wait_for_calls(self) -> None:
        """Wait until all tools have ended."""
        await self._calls.running.wait_all()

    async def _list_tools(
        self, _ctx: RequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        try:
            page = await self._tool_list.page(params.cursor if params is not None else None)
        except MCPError:
            raise
        except Exception as error:  # noqa: BLE001 - the SDK would send its text, which may contain values
            raise protocol_error(error) from None
        self._first_answer.set()
        return types.ListToolsResult(tools=page.tools, next_cursor=page.next_cursor)

    async def _call_tool(
        self, ctx: RequestContext, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        self._first_answer.set()
        return await self._calls.call(ctx, params)

    async def _set_level(
        self, ctx: RequestContext, params: types.SetLevelRequestParams
    ) -> types.EmptyResult:
        self._calls.levels.set(ctx, params.level)
        return types.EmptyResult()

    @asynccontextmanager
    async def _lifespan(self, _server: Server[None]) -> AsyncIterator[None]:
        background = asyncio.create_task(self._background())
        try:
            yield None
        finally:
            with anyio.CancelScope(shield=True):
                await cancel_and_wait(background)
                await self._calls.aclose()

    async def _background(self) -> None:
        """Warm up and watch for changes, starting after the first answer was sent."""
        await wait_at_most(self._first_answer, _IDLE_SECONDS)
        await asyncio.sleep(_HEAD_START_SECONDS)
        try:
            await self._calls.warm_up()
            await watch_tools(self._context, self._on_change, self._on_watching)
        except Exception as error:  # noqa: BLE001 - the server works without
            log_not_watching(type(error).__name__)

    async def _on_watching(self) -> None:
        """Report changes made between the start of the server and the start of the watch."""
        if await asyncio.to_thread(changed_since, self._context, self._started):
            await self._on_change()

    async def _on_change(self) -> None:
        await self._tool_list.reload()
        await self._notifier.tools_changed()
