"""The same transcripts through our implementation of the protocol and through the official SDK."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter
from rye.mcp.line_session import LineSession
from rye.mcp.sdk_server import sdk_server
from rye.mcp.server import Service
from rye.mcp.settings import ServerSettings
from rye_project import Project

SECONDS = 30
PREFIX = "io.modelcontextprotocol/"
ENVELOPE: dict[str, Any] = {
    f"{PREFIX}protocolVersion": "2026-07-28",
    f"{PREFIX}clientCapabilities": {},
    f"{PREFIX}clientInfo": {"name": "test", "version": "1"},
}
GENERIC = (
    "Invalid request parameters",
    "Method not found",
    "Unsupported protocol version",
    "params._meta ",
    "the protocol-version envelope",
    "connection is serving the 2026-07-28 protocol",
    "this connection serves the handshake protocol era",
)
"""How errors of the SDK start. Ours have the same code and a message that says more."""

TIMED = ("notifications/progress", "notifications/tools/list_changed")
"""Whether these are sent depends on how long something takes."""

Message = dict[str, Any]


def initialize(number: int = 0, version: str = "2025-06-18", **more: Any) -> Message:
    params = {
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
        **more,
    }
    return {"id": number, "method": "initialize", "params": params}


def request(number: int | str, method: str, **params: Any) -> Message:
    return {"id": number, "method": method, "params": params}


def enveloped(number: int | str, method: str, *, meta: Message | None = None, **p: Any) -> Message:
    return request(number, method, **p, _meta={**ENVELOPE, **(meta or {})})


def call(number: int, item_id: str, **more: Any) -> Message:
    return request(number, "tools/call", name="execute", arguments={"item_id": item_id}, **more)


READY: Message = {"method": "notifications/initialized"}

HANDSHAKE: dict[str, list[Message]] = {
    "before the handshake": [
        request(1, "ping"),
        request(2, "tools/list"),
        request(3, "no/such"),
        {"id": 4, "method": "ping"},
    ],
    "a bare notification opens the connection": [READY, request(1, "tools/list")],
    "no notification": [initialize(), request(1, "tools/list")],
    **{
        f"version {version}": [initialize(version=version), READY, request(1, "tools/list")]
        for version in ("2024-11-05", "2025-03-26", "2025-11-25", "2026-07-28", "1999-01-01", "")
    },
    "invalid handshake": [
        request(1, "initialize"),
        {"id": 2, "method": "initialize"},
        initialize(3, capabilities=None),
        initialize(4, clientInfo={"name": "x"}),
        initialize(5, protocolVersion=7),
        initialize(6, _meta=7),
        request(7, "tools/list"),
    ],
    "calls": [
        initialize(),
        READY,
        call(1, "say"),
        call(2, "say", _meta={"progressToken": "token"}),
        call(3, "fails"),
        call(4, "missing"),
        request(5, "tools/call", name="say"),
        request(6, "tools/call", name="nope", arguments={}),
        request(7, "tools/call", name="search", arguments={"query": "say"}),
        request(8, "tools/call", name="show", arguments={"item_id": "say"}),
        request(9, "tools/call", name="execute", arguments={"item_id": 7}),
        request(10, "tools/call", name="search", arguments=None),
        request("text", "tools/call", name="search", arguments={"query": ""}),
    ],
    "invalid parameters": [
        initialize(),
        READY,
        request(1, "tools/call", name=7),
        {"id": 2, "method": "tools/call"},
        request(3, "tools/call", name="search", arguments=[]),
        request(4, "tools/list", cursor=5),
        request(5, "tools/list", cursor="nonsense"),
        request(6, "tools/list", cursor=None),
        request(7, "tools/list", _meta={"progressToken": []}),
        request(8, "tools/list", _meta=7),
        request(9, "tools/list", _meta=None),
        request(10, "logging/setLevel", level="loud"),
        request(11, "logging/setLevel", level="error"),
        {"id": 12, "method": "tools/list", "params": None},
        request(13, "tools/list", unknown=1),
    ],
    "methods of the other era, and none": [
        initialize(),
        READY,
        request(1, "server/discover"),
        request(2, "subscriptions/listen", notifications={}),
        enveloped(3, "tools/list"),
        request(4, "resources/list"),
        request(5, "prompts/list"),
        initialize(6),
        {"method": "notifications/unknown", "params": {"x": 1}},
        {"method": "notifications/cancelled", "params": {"requestId": 99}},
        {"method": "notifications/cancelled", "params": {"requestId": []}},
        {"id": 77, "result": {}},
        request(7, "ping"),
    ],
}

STATELESS: dict[str, list[Message]] = {
    "discovery and list": [enveloped(1, "server/discover"), enveloped(2, "tools/list")],
    "calls": [
        enveloped(1, "tools/call", name="execute", arguments={"item_id": "say"}),
        enveloped(
            2,
            "tools/call",
            meta={"progressToken": 3, f"{PREFIX}logLevel": "debug"},
            name="execute",
            arguments={"item_id": "say"},
        ),
        enveloped(3, "tools/call", name="nope"),
        enveloped(4, "tools/call", name="execute", arguments={"item_id": "fails"}),
    ],
    "invalid envelopes": [
        enveloped(1, "tools/list"),
        request(2, "tools/list"),
        {"id": 3, "method": "tools/list"},
        request(4, "tools/list", _meta={f"{PREFIX}protocolVersion": "2026-07-28"}),
        enveloped(5, "tools/list", meta={f"{PREFIX}protocolVersion": "2027-01-01"}),
        enveloped(6, "tools/list", meta={f"{PREFIX}protocolVersion": 7}),
        enveloped(7, "tools/list", meta={f"{PREFIX}clientInfo": 7}),
        enveloped(8, "tools/list", meta={f"{PREFIX}clientCapabilities": 7}),
        enveloped(9, "tools/list", meta={f"{PREFIX}logLevel": "loud"}),
        enveloped(10, "tools/list", meta={"progressToken": {}}),
        enveloped(11, "tools/list", meta={f"{PREFIX}clientInfo": None}),
    ],
    "methods of the other era, and none": [
        enveloped(1, "server/discover"),
        initialize(2),
        enveloped(3, "ping"),
        enveloped(4, "logging/setLevel", level="info"),
        enveloped(5, "resources/list"),
        enveloped(6, "no/such"),
        READY,
        enveloped(7, "tools/list"),
    ],
}
TRANSCRIPTS = {
    **{f"handshake: {name}": messages for name, messages in HANDSHAKE.items()},
    **{f"2026-07-28: {name}": messages for name, messages in STATELESS.items()},
}


class Lines:
    """A client that sends one message at a time and collects what it gets until the answer."""

    def __init__(self, messages: list[Message]) -> None:
        self._messages = messages
        self._answered = asyncio.Event()
        self._waiting_for: object = None
        self.received: list[Message] = []

    async def sent(self) -> AsyncIterator[bytes]:
        for message in self._messages:
            self._answered.clear()
            self._waiting_for = message.get("id") if "method" in message else None
            yield json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
            if self._waiting_for is not None:
                await asyncio.wait_for(self._answered.wait(), SECONDS)

    async def write(self, line: bytes) -> None:
        if not line:
            return
        message = json.loads(line)
        self.received.append(message)
        if message.get("id") == self._waiting_for:
            self._answered.set()


async def through_ours(service: Service, client: Lines) -> None:
    await LineSession(service, client.sent(), client).serve()


async def through_the_sdk(service: Service, client: Lines) -> None:
    server = sdk_server(service)
    to_server, incoming = anyio.create_memory_object_stream[Any](0)
    outgoing, from_server = anyio.create_memory_object_stream[Any](0)

    async def send() -> None:
        async with to_server:
            async for line in client.sent():
                await to_server.send(SessionMessage(jsonrpc_message_adapter.validate_json(line)))

    async def receive() -> None:
        async with from_server:
            async for item in from_server:
                dumped = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                await client.write(dumped.encode())

    options = server.create_initialization_options()
    await asyncio.gather(send(), receive(), server.run(incoming, outgoing, options))


def same(ours: Message, theirs: Message) -> bool:
    error = theirs.get("error")
    if error is not None and error["message"].startswith(GENERIC):
        return bool(ours["id"] == theirs["id"] and ours["error"]["code"] == error["code"])
    return ours == theirs


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.command("say", "/bin/sh", "-c", "echo hi; echo trouble >&2")
    project.command("fails", "/bin/sh", "-c", "echo oh no; exit 3")
    return project


def transcript(
    project: Project,
    messages: list[Message],
    serve: Callable[[Service, Lines], Awaitable[None]],
) -> list[Message]:
    client = Lines(messages)

    async def run() -> None:
        # The first answer starts the watch, which may be cancelled at once.
        await serve(Service(project.context, ServerSettings(all_tools=True)), client)

    asyncio.run(run())
    return [one for one in client.received if one.get("method") not in TIMED]


@pytest.mark.parametrize("messages", TRANSCRIPTS.values(), ids=TRANSCRIPTS.keys())
def test_both_give_the_same_answers(project: Project, messages: list[Message]) -> None:
    ours = transcript(project, messages, through_ours)
    theirs = transcript(project, messages, through_the_sdk)
    expected = [one["id"] for one in messages if "id" in one and "method" in one]
    assert [one["id"] for one in ours if "id" in one] == expected
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        assert same(mine, other), f"{mine}\n{other}"
