"""The request handlers, the capabilities and the background work, for all transports."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from rye import __version__
from rye.context import Context
from rye.errors import RyeError
from rye.mcp.builtin_tools import INSTRUCTIONS
from rye.mcp.calls import Calls
from rye.mcp.content import protocol_error
from rye.mcp.protocol.connection import Method, ServerInfo
from rye.mcp.protocol.errors import ProtocolError
from rye.mcp.protocol.types import (
    CallToolParams,
    CallToolResult,
    EmptyResult,
    Implementation,
    InputRequiredResult,
    ListenParams,
    ListToolsParams,
    ListToolsResult,
    NoParams,
    ReadResourceParams,
    SetLevelParams,
)
from rye.mcp.resources import Resources
from rye.mcp.settings import ServerSettings
from rye.mcp.subscriptions import ChangeNotifier
from rye.mcp.tasks import cancel_and_wait, wait_at_most
from rye.mcp.tool_list import CatalogueReader, ToolList

if TYPE_CHECKING:
    from rye.mcp.request import Request

_logger = logging.getLogger("rye.mcp")
_HEAD_START_SECONDS = 0.05
_IDLE_SECONDS = 1.0

SERVER = ServerInfo(
    Implementation(name="rye", version=__version__, title="Rye"),
    INSTRUCTIONS,
    {
        "logging": {},
        "resources": {"subscribe": False, "listChanged": False},
        "tools": {"listChanged": True},
    },
)


class Handler(NamedTuple):
    """A method, and the function that serves it."""

    method: Method
    serve: Callable[[Request, Any], Coroutine[Any, Any, Any]]
    """Takes the request and its parameters. Raises only ``ProtocolError``."""


class Service:
    """The handlers and the state of one ``rye mcp``, behind any transport."""

    def __init__(self, context: Context, settings: ServerSettings) -> None:
        """Read the project's config. Raises ``ItemFormatError`` if it is invalid."""
        self._context = context
        catalogue = CatalogueReader(context)
        self.tool_list = ToolList(context, settings, catalogue)
        self.notifier = ChangeNotifier()
        self._calls = Calls(context, settings, self.tool_list, catalogue)
        self._first_answer = asyncio.Event()
        self._started = time.time_ns()
        resources = Resources(self._calls.outputs)
        self.handlers = {
            "tools/list": Handler(Method(ListToolsParams), self._list_tools),
            "tools/call": Handler(Method(CallToolParams), self._call_tool),
            "resources/list": Handler(Method(NoParams), resources.list),
            "resources/templates/list": Handler(Method(NoParams), resources.templates),
            "resources/read": Handler(Method(ReadResourceParams), resources.read),
            "logging/setLevel": Handler(Method(SetLevelParams, ("handshake",)), self._set_level),
            "subscriptions/listen": Handler(
                Method(ListenParams, ("stateless",)), self.notifier.listen
            ),
        }

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Do the background work during the block. All tools have ended after it."""
        background = asyncio.create_task(self._background())
        try:
            yield
        finally:
            await cancel_and_wait(background)
            await self._calls.aclose()

    def stop(self) -> None:
        """Begin to shut down: cancel running tools, then close the streams of listening clients."""
        self._calls.running.cancel_all()
        self.notifier.close()

    def refuse_calls(self) -> None:
        """Refuse new calls; those that run or wait for the user go on."""
        self._calls.running.refuse_new()

    async def wait_for_calls(self) -> None:
        """Wait until all tools have ended."""
        await self._calls.running.wait_all()

    async def _list_tools(self, _request: Request, params: ListToolsParams) -> ListToolsResult:
        try:
            page = await self.tool_list.page(params.cursor)
        except ProtocolError:
            raise
        except Exception as error:  # noqa: BLE001 - its text may contain values
            raise protocol_error(error) from None
        self._first_answer.set()
        return ListToolsResult(page.tools, page.next_cursor)

    async def _call_tool(
        self, request: Request, params: CallToolParams
    ) -> CallToolResult | InputRequiredResult:
        self._first_answer.set()
        return await self._calls.call(request, params)

    async def _set_level(self, request: Request, params: SetLevelParams) -> EmptyResult:
        self._calls.levels.set(request, params.level)
        return EmptyResult()

    async def _background(self) -> None:
        """Warm up and watch for changes, starting after the first answer was sent."""
        await wait_at_most(self._first_answer, _IDLE_SECONDS)
        await asyncio.sleep(_HEAD_START_SECONDS)
        from rye.mcp.list_changes import log_not_watching, watch_tools

        try:
            await self._calls.warm_up()
            await self._warn_unconfined()
            await watch_tools(self._context, self._on_change, self._on_watching)
        except Exception as error:  # noqa: BLE001 - the server works without
            log_not_watching(type(error).__name__)

    async def _warn_unconfined(self) -> None:
        try:
            await self.tool_list.warn_unconfined()
        except RyeError as error:
            # A list says the same, to whoever asks for it.
            _logger.warning("the tools cannot be listed: %s", error)

    async def _on_watching(self) -> None:
        """Report changes made between the start of the server and the start of the watch."""
        from rye.mcp.list_changes import changed_since

        if await asyncio.to_thread(changed_since, self._context, self._started):
            await self._on_change()

    async def _on_change(self) -> None:
        await self.tool_list.reload()
        await self.notifier.tools_changed()
