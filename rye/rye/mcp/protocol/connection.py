"""One client of a connection that carries lines both ways: the state of the protocol, without I/O.

A transport passes each line to :meth:`Connection.receive` and does what the event says. It sends
what the other methods return. The first request decides for which era the connection is; later
requests of the other era are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from rye.mcp.protocol import messages
from rye.mcp.protocol.eras import (
    HANDSHAKE_VERSIONS,
    STATELESS_VERSIONS,
    Era,
    RequestMeta,
    convert,
    has_envelope,
    read_meta,
    unsupported_version,
    with_envelope,
)
from rye.mcp.protocol.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    ProtocolError,
)
from rye.mcp.protocol.messages import Message, RequestId, Unreadable
from rye.mcp.protocol.types import (
    CancelledParams,
    ClientCapabilities,
    Implementation,
    InitializeParams,
)

_MAX_QUOTED = 100


class Method(NamedTuple):
    """A request that handlers serve."""

    params: type[msgspec.Struct]
    eras: tuple[Era, ...] = ("handshake", "stateless")


class ServerInfo(NamedTuple):
    """What a client learns about the server when it connects."""

    implementation: Implementation
    instructions: str
    capabilities: Mapping[str, Any]


class Call(NamedTuple):
    """Event: a handler has to answer this request, with ``finish`` or ``fail``."""

    request_id: RequestId
    method: str
    params: Any
    """Of the type that the method declares."""
    era: Era
    version: str
    meta: RequestMeta
    capabilities: ClientCapabilities
    client: Implementation | None


class Reply(NamedTuple):
    """Event: send this line."""

    line: bytes


class Cancel(NamedTuple):
    """Event: the client does not want the answer to this request any more."""

    request_id: RequestId


class Initialized(NamedTuple):
    """Event: the handshake is complete, and notifications may be sent."""


class Answer(NamedTuple):
    """Event: the client has answered a request of the server."""

    request_id: RequestId
    result: Mapping[str, Any] | None
    error: ProtocolError | None = None


Event = Call | Reply | Cancel | Initialized | Answer


class Connection:
    """The state of one client."""

    def __init__(self, server: ServerInfo, methods: Mapping[str, Method]) -> None:
        self._server = server
        self._methods = methods
        self._era: Era | None = None
        self._version = HANDSHAKE_VERSIONS[-1]
        self._capabilities = ClientCapabilities()
        self._client: Implementation | None = None
        self._may_call = False
        self._running: set[RequestId] = set()
        self._asked: set[RequestId] = set()
        self._last_asked = 0

    def receive(self, line: bytes) -> Event | None:
        """Return what to do about a line; ``None`` if nothing."""
        if not line.strip():
            return None
        message = messages.read(line)
        if isinstance(message, Unreadable):
            return None if message.request_id is None else _unreadable(message.request_id)
        if message.is_request:
            try:
                return self._on_request(message)
            except ProtocolError as error:
                return Reply(messages.error_line(_id_of(message), error))
        if isinstance(message.method, str):
            return self._on_notification(message.method, message.params)
        return self._on_answer(message)

    def finish(self, call: Call, result: Any) -> bytes | None:
        """Return the line that answers a call; ``None`` if the client has cancelled it."""
        if call.request_id not in self._running:
            return None
        self._running.remove(call.request_id)
        try:
            return self._result(call.request_id, call.era, call.method, result)
        except (TypeError, ValueError, RecursionError):
            error = ProtocolError(INTERNAL_ERROR, "the result cannot be written as JSON")
            return messages.error_line(call.request_id, error)

    def fail(self, call: Call, error: ProtocolError) -> bytes | None:
        """Return the line that refuses a call; ``None`` if the client has cancelled it."""
        if call.request_id not in self._running:
            return None
        self._running.remove(call.request_id)
        return messages.error_line(call.request_id, error)

    def ask(self, method: str, params: Any) -> tuple[RequestId, bytes]:
        """Return the id and the line of a request to the client; an ``Answer`` follows."""
        self._last_asked += 1
        self._asked.add(self._last_asked)
        return self._last_asked, messages.request_line(self._last_asked, method, params)

    def withdraw(self, request_id: RequestId) -> bytes | None:
        """Return the line that cancels a request to the client; ``None`` if it was answered."""
        if request_id not in self._asked:
            return None
        self._asked.remove(request_id)
        return messages.notification_line("notifications/cancelled", {"requestId": request_id})

    def _on_request(self, message: Message) -> Event:
        method, params = str(message.method), message.params
        request_id = _id_of(message)
        era = self._era_of(method, params)
        if era == "handshake" and method == "initialize":
            return Reply(self._result(request_id, era, method, self._initialize(params)))
        meta = read_meta(era, params)
        if era == "handshake" and method == "ping":
            return Reply(self._result(request_id, era, method, {}))
        if era == "stateless" and method == "server/discover":
            return Reply(self._result(request_id, era, method, self._discovered()))
        served = self._methods.get(method)
        if served is None or era not in served.eras:
            name = method[:_MAX_QUOTED]
            raise ProtocolError(METHOD_NOT_FOUND, f"this server has no method {name!r}", name)
        if era == "handshake" and not self._may_call:
            raise ProtocolError(INVALID_PARAMS, "the connection is not open; send `initialize`")
        if request_id in self._running:
            raise ProtocolError(INVALID_REQUEST, "this request id is in use; send another one")
        parsed = convert(params or {}, served.params, "params")
        self._running.add(request_id)
        if era == "handshake":
            version, capabilities, client = self._version, self._capabilities, self._client
        else:
            version, capabilities = meta.protocol_version, meta.capabilities
            client = meta.client_info
        return Call(request_id, method, parsed, era, version, meta, capabilities, client)

    def _era_of(self, method: str, params: dict[str, Any] | None) -> Era:
        """Return the era of a request. Raises ``ProtocolError`` if the connection has another."""
        stateless = method != "initialize" and has_envelope(params)
        if self._era is None:
            self._era = "stateless" if stateless else "handshake"
        if self._era == "handshake" and stateless:
            raise ProtocolError(
                INVALID_REQUEST,
                "this connection was opened with a handshake; send requests without an envelope",
            )
        if self._era == "stateless" and method == "initialize":
            raise unsupported_version((params or {}).get("protocolVersion"))
        return self._era

    def _initialize(self, params: dict[str, Any] | None) -> dict[str, Any]:
        read_meta("handshake", params)
        client = convert(params or {}, InitializeParams, "params")
        known = client.protocol_version in HANDSHAKE_VERSIONS
        self._version = client.protocol_version if known else HANDSHAKE_VERSIONS[-1]
        self._capabilities = client.capabilities
        self._client = client.client_info
        self._may_call = True
        return {
            "protocolVersion": self._version,
            "capabilities": self._server.capabilities,
            "serverInfo": self._server.implementation,
            "instructions": self._server.instructions,
        }

    def _discovered(self) -> dict[str, Any]:
        return {
            "supportedVersions": STATELESS_VERSIONS,
            "capabilities": self._server.capabilities,
            "instructions": self._server.instructions,
        }

    def _on_notification(self, method: str, params: dict[str, Any] | None) -> Event | None:
        if method == "notifications/initialized" and self._era != "stateless":
            self._may_call = True
            return Initialized()
        if method == "notifications/cancelled":
            try:
                wanted = convert(params or {}, CancelledParams, "params")
            except ProtocolError:
                return None
            if wanted.request_id in self._running:
                self._running.discard(wanted.request_id)
                return Cancel(wanted.request_id)
        return None

    def _on_answer(self, message: Message) -> Answer | None:
        if message.id not in self._asked or not isinstance(message.id, int | str):
            return None
        if isinstance(message.result, dict):
            self._asked.remove(message.id)
            return Answer(message.id, message.result)
        if isinstance(message.error, messages.ErrorBody):
            self._asked.remove(message.id)
            body = message.error
            return Answer(message.id, None, ProtocolError(body.code, body.message, body.data))
        return None

    def _result(self, request_id: RequestId, era: Era, method: str, result: Any) -> bytes:
        if era == "stateless":
            result = with_envelope(method, result, self._server.implementation)
        return messages.result_line(request_id, result)


def _id_of(message: Message) -> RequestId:
    assert isinstance(message.id, int | str)  # noqa: S101 - checked by is_request
    return message.id


def _unreadable(request_id: RequestId) -> Reply:
    error = ProtocolError(
        INVALID_REQUEST,
        "the request cannot be parsed; send JSON-RPC 2.0 in valid Unicode, nested less deeply",
    )
    return Reply(messages.error_line(request_id, error))
