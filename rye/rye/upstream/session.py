"""One kept connection to a server: it is started once, and many calls use it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from lilux.record import Record

from rye.upstream.definition import ToolDefinition
from rye.upstream.job_transport import ServerJob

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from mcp import Client

    class Caller(Protocol):
        """Who waits for a call."""

        def progress(self, progress: float, total: float | None, message: str) -> None: ...

        def log(self, line: str) -> None: ...

        async def ask(self, message: str, schema: Mapping[str, Any]) -> tuple[str, Any]:
            """Return an action of MCP (``accept``, ``decline``, ``cancel``) and the content."""


START_SECONDS = 60.0
_MAX_PAGES = 100
_TOKEN_STATUSES = (401, 403)
_LISTENING_SINCE = "2026-07-28"


class UpstreamError(Exception):
    """The server cannot be reached, or breaks the protocol. The message has no values."""


class TokenError(UpstreamError):
    """The server requires another token."""


class UpstreamResult(Record, frozen=True):
    """The answer of a server to a call."""

    success: bool
    content: list[dict[str, Any]]
    structured: Any = None
    error: str = ""
    """Why there is no answer; empty if there is one."""
    offered: ToolDefinition | None = None
    timed_out: bool = False
    changed: bool = False
    """The tool is not the one that was pinned; ``offered`` is what the server has now."""

    @property
    def text(self) -> str:
        """The text of the content."""
        return "\n".join(str(one["text"]) for one in self.content if one.get("type") == "text")


class UpstreamSession:
    """A connection, owned by one task; any task of the loop may call.

    Open it with :func:`open_session`.
    """

    def __init__(self, client: Client, callers: list[Caller], job: ServerJob | None) -> None:
        self._client = client
        self._callers = callers
        self._job = job
        self._definitions: dict[str, ToolDefinition] | None = None
        self._changes = 0
        tools = client.server_capabilities.tools
        # A client of 2026-07-28 is told about changes only while it listens.
        self._must_listen = (
            client.protocol_version >= _LISTENING_SINCE
            and tools is not None
            and bool(tools.list_changed)
        )
        self._listening = False

    @property
    def lost(self) -> bool:
        """True if the process of the server has ended."""
        return self._job is not None and self._job.ended.is_set()

    async def wait_until_lost(self) -> None:
        """Wait for the end of the server's process."""
        await (asyncio.Event() if self._job is None else self._job.ended).wait()

    def reason(self, error: BaseException) -> str:
        """Why a call failed."""
        return _reason(error, self._job)

    async def definitions(self) -> dict[str, ToolDefinition]:
        """The tools that the server offers now; asked again after it said that they changed, and
        each time if it could not say so.
        """
        if self._definitions is None or (self._must_listen and not self._listening):
            found: dict[str, ToolDefinition] = {}
            changes = self._changes
            cursor: str | None = None
            for _ in range(_MAX_PAGES):
                page = await self._client.list_tools(cursor=cursor, cache_mode="bypass")
                for tool in page.tools:
                    one = ToolDefinition.of(_plain(tool))
                    found[one.name] = one
                cursor = page.next_cursor
                if not cursor:
                    break
            if changes != self._changes:
                return found
            self._definitions = found
        return self._definitions

    def forget_definitions(self) -> None:
        """The server's tools have changed."""
        self._definitions = None
        self._changes += 1

    async def follow_changes(self) -> None:
        """Forget the definitions after each change, until the server stops saying so."""
        if not self._must_listen:
            return
        # A server that does not keep its promise is asked before each call.
        with suppress(Exception):
            async with self._client.listen(tools_list_changed=True) as changes:
                self.forget_definitions()
                self._listening = True
                async for _ in changes:
                    self.forget_definitions()
        self._listening = False

    async def call(
        self, name: str, arguments: Mapping[str, Any], pinned: str, caller: Caller
    ) -> UpstreamResult:
        """Call a tool, if it is still the pinned one."""
        offered = (await self.definitions()).get(name)
        if offered is None or offered.digest != pinned:
            return UpstreamResult(False, [], offered=offered, changed=True)
        self._callers.append(caller)

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            caller.progress(progress, total, message or "")

        try:
            result = await self._client.call_tool(
                name, dict(arguments), progress_callback=on_progress
            )
        finally:
            self._callers.remove(caller)
        answer = _plain(result)
        return UpstreamResult(
            not answer.get("isError"), answer.get("content") or [], answer.get("structuredContent")
        )

    @property
    def server_name(self) -> str:
        """What the server calls itself."""
        info = self._client.server_info
        return "" if info is None else info.name


@asynccontextmanager
async def open_session(server: Mapping[str, Any]) -> AsyncIterator[UpstreamSession]:
    """Connect to a server: ``{"url", "headers"}``, or the config of a process.

    Raises :class:`UpstreamError`.
    """
    from mcp import Client
    from mcp import types as mcp_types
    from mcp.client.streamable_http import streamable_http_client

    callers: list[Caller] = []
    sessions: list[UpstreamSession] = []
    statuses: list[int] = []
    job: ServerJob | None = None

    def log(line: str) -> None:
        for caller in callers[-1:]:
            caller.log(line)

    async def on_log(params: mcp_types.LoggingMessageNotificationParams) -> None:
        data = params.data if isinstance(params.data, str) else str(params.data)
        log(f"{params.level}: {data}")

    async def on_message(message: Any) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            for session in sessions:
                session.forget_definitions()

    async def on_ask(context: Any, params: Any) -> mcp_types.ElicitResult:  # noqa: ARG001 - the client's signature
        schema = getattr(params, "requested_schema", None)
        if not callers or schema is None:
            return mcp_types.ElicitResult(action="cancel")
        action, content = await callers[-1].ask(params.message, schema)
        return mcp_types.ElicitResult.model_validate({"action": action, "content": content})

    async with AsyncExitStack() as stack:
        if "url" in server:
            http = await stack.enter_async_context(
                _http_client(server.get("headers") or {}, statuses.append)
            )
            transport: Any = streamable_http_client(str(server["url"]), http_client=http)
        else:
            job = ServerJob(server, log)
            transport = job.transport()
        client = Client(
            transport,
            logging_callback=on_log,
            log_level="info",
            message_handler=on_message,
            elicitation_callback=on_ask,
        )
        try:
            async with asyncio.timeout(START_SECONDS):
                await stack.enter_async_context(client)
        except TimeoutError:
            raise UpstreamError(f"it did not answer within {START_SECONDS:.0f} s") from None
        except Exception as error:  # noqa: BLE001 - the client raises whatever went wrong
            if status := next((one for one in statuses if one in _TOKEN_STATUSES), None):
                raise TokenError(f"it requires a valid token (status {status})") from None
            raise UpstreamError(_reason(error, job)) from None
        session = UpstreamSession(client, callers, job)
        sessions.append(session)
        following = asyncio.create_task(session.follow_changes())
        try:
            yield session
        finally:
            following.cancel()
            await asyncio.wait([following])


class KeptServer:
    """A server that is started on the first call, and again after its death."""

    def __init__(self, server: Mapping[str, Any]) -> None:
        self._server = server
        self._starting = asyncio.Lock()
        self._session: UpstreamSession | None = None
        self._owner: asyncio.Task[None] | None = None
        self._end = asyncio.Event()

    async def call(
        self, name: str, arguments: Mapping[str, Any], pinned: str, caller: Caller
    ) -> UpstreamResult:
        """Call a tool. A server that died is started again; a call under way is not repeated."""
        try:
            session = await self._started()
        except UpstreamError as error:
            return UpstreamResult(False, [], error=str(error))
        try:
            return await session.call(name, arguments, pinned, caller)
        except Exception as error:  # noqa: BLE001 - whatever the client raises, the call has failed
            return UpstreamResult(False, [], error=session.reason(error))

    async def aclose(self) -> None:
        """End the connection and the server."""
        owner, self._owner, self._session = self._owner, None, None
        self._end.set()
        if owner is not None:
            with suppress(asyncio.CancelledError, Exception):
                await owner

    async def _started(self) -> UpstreamSession:
        async with self._starting:
            if self._session is None or self._session.lost:
                await self.aclose()
                ready = asyncio.get_running_loop().create_future()
                self._end = asyncio.Event()
                # The client has to be entered and left by the same task.
                self._owner = asyncio.create_task(self._own(ready.set_result, self._end))
                await asyncio.wait([ready, self._owner], return_when=asyncio.FIRST_COMPLETED)
                if not ready.done():
                    ready.cancel()
                    await self._owner  # raises the reason
                    raise UpstreamError("the connection was closed")
                self._session = ready.result()
            return self._session

    async def _own(self, ready: Callable[[UpstreamSession], None], end: asyncio.Event) -> None:
        async with open_session(self._server) as session:
            ready(session)
            waits = [
                asyncio.ensure_future(end.wait()),
                asyncio.ensure_future(session.wait_until_lost()),
            ]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()


def _plain(model: Any) -> dict[str, Any]:
    plain: dict[str, Any] = model.model_dump(mode="json", by_alias=True, exclude_none=True)
    return plain


def _reason(error: BaseException, job: ServerJob | None) -> str:
    if job is not None and job.result is not None:
        return job.ending()
    if isinstance(error, BaseExceptionGroup):
        return _reason(error.exceptions[0], job)
    return str(error) or type(error).__name__


@asynccontextmanager
async def _http_client(
    headers: Mapping[str, str], on_status: Callable[[int], None]
) -> AsyncIterator[Any]:
    import httpx2

    async def note(response: Any) -> None:
        # The client of the SDK does not say why a server refuses it.
        if response.is_error:
            on_status(response.status_code)

    async with httpx2.AsyncClient(
        headers=dict(headers),
        timeout=httpx2.Timeout(30, read=300),
        event_hooks={"response": [note]},
    ) as http:
        yield http
