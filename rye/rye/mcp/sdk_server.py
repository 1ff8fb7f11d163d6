"""The official SDK as a transport: its server calls the handlers of a :class:`Service`.

Serves HTTP. In the tests it is also the oracle for our own implementation of the protocol.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import msgspec
from mcp import types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp.types import methods

from rye.mcp.callers import client_name
from rye.mcp.protocol.eras import STATELESS_VERSIONS, Era, RequestMeta, read_meta, with_envelope
from rye.mcp.protocol.errors import INVALID_REQUEST, ProtocolError
from rye.mcp.protocol.types import ClientCapabilities, Implementation
from rye.mcp.server import SERVER, Handler, Service
from rye.mcp.tasks import cancel_and_wait

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.models import InitializationOptions
    from mcp.server.session import ServerSession

    from rye.mcp.protocol.messages import RequestId

    RequestContext = ServerRequestContext[Any, Any]

DISCONNECTED = "rye.client_disconnected"
"""The key under which the scope of an HTTP request has an ``asyncio.Event``, which is set when the
client disconnects."""

TOKEN_NAME = "rye.token_name"  # noqa: S105 - a key, not a token
"""The key under which the scope of an HTTP request has the name of the token that was shown."""

T = TypeVar("T")


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

    def get_capabilities(self, *_: Any, **__: Any) -> types.ServerCapabilities:
        """Return what every transport announces; the SDK would guess from the handlers."""
        return types.ServerCapabilities.model_validate(SERVER.capabilities)


def sdk_server(service: Service) -> RyeServer:
    """Return a server of the SDK with the handlers of this service."""

    @asynccontextmanager
    async def lifespan(_server: Server[None]) -> AsyncIterator[None]:
        running = service.running()
        await running.__aenter__()
        try:
            yield None
        finally:
            with anyio.CancelScope(shield=True):
                await running.__aexit__(None, None, None)

    about = SERVER.implementation
    server = RyeServer(
        about.name,
        version=about.version,
        title=about.title,
        instructions=SERVER.instructions,
        lifespan=lifespan,
        get_tool_input_schema=service.tool_list.schema_of,
    )
    for method, handler in service.handlers.items():
        server.add_request_handler(method, types.RequestParams, _adapted(handler))

    async def remember(ctx: RequestContext, _params: object) -> None:
        service.notifier.remember(_session_key(ctx), _SdkClient(ctx.session, ctx.protocol_version))

    server.add_notification_handler("notifications/initialized", types.NotificationParams, remember)
    return server


def _adapted(handler: Handler) -> Any:
    async def handle(ctx: RequestContext, _params: object) -> dict[str, Any]:
        # The SDK has validated the parameters; the handlers know our types.
        params = msgspec.convert(dict(ctx.params or {}), handler.method.params)
        try:
            request = SdkRequest(ctx)
            result = await _shielded(handler.serve(request, params))
        except ProtocolError as error:
            raise MCPError(code=error.code, message=str(error), data=error.data) from None
        if request.era == "stateless":
            return with_envelope(ctx.method, result, SERVER.implementation)
        body: dict[str, Any] = msgspec.to_builtins(result)
        return body

    return handle


async def _shielded(handling: Coroutine[Any, Any, T]) -> T:
    """Run a handler in a task of its own.

    A cancelled scope of the SDK cancels what waits inside it again and again, and a handler must
    be able to wait for its processes to end.
    """
    task = asyncio.create_task(handling)
    try:
        await asyncio.wait([task])
    finally:
        with anyio.CancelScope(shield=True):
            await cancel_and_wait(task)
    return task.result()


class _SdkClient:
    """A :class:`~rye.mcp.request.Client` that the SDK serves."""

    def __init__(self, session: ServerSession, version: str) -> None:
        self._session = session
        self._version = version

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        await self._session.send_notification(_notification(method, self._version, params))


class SdkRequest:
    """A :class:`~rye.mcp.request.Request` that the SDK serves."""

    def __init__(self, ctx: RequestContext) -> None:
        self._ctx = ctx
        stateless = ctx.protocol_version in STATELESS_VERSIONS
        self.era: Era = "stateless" if stateless else "handshake"
        self.meta: RequestMeta = read_meta(self.era, dict(ctx.params or {}))

    @property
    def request_id(self) -> RequestId:
        assert self._ctx.request_id is not None  # noqa: S101 - only notifications have none
        return self._ctx.request_id

    @property
    def version(self) -> str:
        return self._ctx.protocol_version

    @property
    def capabilities(self) -> ClientCapabilities:
        found = self._ctx.session.client_capabilities
        elicitation = None if found is None else found.elicitation
        if elicitation is None:
            return ClientCapabilities()
        return ClientCapabilities(elicitation.model_dump(by_alias=True, exclude_none=True))

    @property
    def session(self) -> str | None:
        if self.era == "stateless" and self._ctx.request is not None:
            return None
        return _session_key(self._ctx)

    @property
    def client(self) -> str:
        if self.meta.client_info is not None:
            return client_name(self.meta.client_info)
        params = self._ctx.session.client_params
        if params is None:
            return ""
        return client_name(Implementation(params.client_info.name, params.client_info.version))

    @property
    def token_name(self) -> str:
        request = self._ctx.request
        return "" if request is None else request.scope.get(TOKEN_NAME, "")

    @property
    def disconnected(self) -> asyncio.Event | None:
        request = self._ctx.request
        return None if request is None else request.scope.get(DISCONNECTED)

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        await self._ctx.session.send_notification(
            _notification(method, self._ctx.protocol_version, params),
            related_request_id=self._ctx.request_id,
        )

    async def ask(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        if self.era == "stateless":
            raise ProtocolError(INVALID_REQUEST, "clients of 2026-07-28 cannot be sent requests")
        version, related = self._ctx.protocol_version, self._ctx.request_id
        try:
            request: Any = methods.parse_server_request(method, version, params)
        except (KeyError, ValueError):
            raise ProtocolError(INVALID_REQUEST, f"{version} has no such {method!r}") from None
        kind: Any = methods.MONOLITH_RESULTS[method]
        try:
            answer = await self._ctx.session.send_request(
                request, kind, metadata=ServerMessageMetadata(related_request_id=related)
            )
        except MCPError as error:
            raise ProtocolError(error.code, error.message, error.data) from None
        dumped: dict[str, Any] = answer.model_dump(by_alias=True, exclude_none=True)
        return dumped


def _session_key(ctx: RequestContext) -> str:
    headers = getattr(ctx.request, "headers", None)
    return str(headers.get("mcp-session-id", "")) if headers is not None else ""


def _notification(method: str, version: str, params: Mapping[str, Any] | None) -> Any:
    return methods.parse_server_notification(method, version, params)
