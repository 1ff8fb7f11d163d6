"""The protocol without I/O: what a line means, and what is answered to it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from rye.mcp.protocol.connection import (
    Answer,
    Call,
    Cancel,
    Connection,
    Initialized,
    Method,
    Reply,
    ServerInfo,
)
from rye.mcp.protocol.errors import INVALID_PARAMS, ProtocolError
from rye.mcp.protocol.types import CallToolParams, Implementation, ListenParams, SetLevelParams

PREFIX = "io.modelcontextprotocol/"
ENVELOPE: dict[str, Any] = {
    f"{PREFIX}protocolVersion": "2026-07-28",
    f"{PREFIX}clientCapabilities": {"elicitation": {"form": {}}},
}
SERVER = ServerInfo(Implementation(name="test", version="1"), "Be kind.", {"tools": {}})
METHODS = {
    "tools/call": Method(CallToolParams),
    "logging/setLevel": Method(SetLevelParams, ("handshake",)),
    "subscriptions/listen": Method(ListenParams, ("stateless",)),
}


def line(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode()


def error_of(event: object) -> dict[str, Any]:
    assert isinstance(event, Reply)
    error: dict[str, Any] = json.loads(event.line)["error"]
    return error


@pytest.fixture
def connection() -> Connection:
    """A connection that was opened with a handshake."""
    opened = Connection(SERVER, METHODS)
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "client", "version": "1"},
    }
    assert isinstance(opened.receive(line(id=0, method="initialize", params=params)), Reply)
    assert opened.receive(line(method="notifications/initialized")) == Initialized()
    return opened


def called(connection: Connection, number: int | str = 1) -> Call:
    params = {"name": "x", "_meta": {"progressToken": "t"}}
    event = connection.receive(line(id=number, method="tools/call", params=params))
    assert isinstance(event, Call)
    return event


def test_a_call_has_its_parameters_and_what_is_known_of_the_client(connection: Connection) -> None:
    call = called(connection)
    assert (call.params, call.era, call.version) == (
        CallToolParams(name="x"),
        "handshake",
        "2025-11-25",
    )
    assert call.meta.progress_token == "t"
    assert call.capabilities.elicitation == {}


def test_a_stateless_call_brings_its_own_capabilities() -> None:
    connection = Connection(SERVER, METHODS)
    params = {"name": "x", "_meta": ENVELOPE}
    call = connection.receive(line(id="a", method="tools/call", params=params))
    assert isinstance(call, Call)
    assert (call.era, call.version) == ("stateless", "2026-07-28")
    assert call.capabilities.elicitation == {"form": {}}


def test_a_cancelled_call_is_not_answered(connection: Connection) -> None:
    first, second = called(connection, 1), called(connection, "1")
    cancelled = line(method="notifications/cancelled", params={"requestId": 1, "reason": "late"})
    assert connection.receive(cancelled) == Cancel(1)
    assert connection.receive(cancelled) is None
    assert connection.finish(first, {}) is None
    assert connection.fail(first, ProtocolError(INVALID_PARAMS, "wrong")) is None
    assert connection.finish(second, {}) == b'{"jsonrpc":"2.0","id":"1","result":{}}\n'


def test_an_id_can_be_used_again_only_after_its_answer(connection: Connection) -> None:
    call = called(connection)
    again = line(id=1, method="tools/call", params={"name": "x"})
    assert error_of(connection.receive(again)) == {
        "code": -32600,
        "message": "this request id is in use; send another one",
    }
    assert connection.finish(call, {}) is not None
    assert isinstance(connection.receive(again), Call)


@pytest.mark.parametrize("value", ["\ud800", object(), {1, 2}.__iter__()])
def test_a_result_that_is_not_json_is_answered_with_an_error(
    connection: Connection, value: object
) -> None:
    answer = connection.finish(called(connection), {"x": value})
    assert answer is not None
    assert json.loads(answer)["error"]["message"] == "the result cannot be written as JSON"


def test_a_request_to_the_client_is_answered_once(connection: Connection) -> None:
    number, sent = connection.ask("elicitation/create", {"message": "?"})
    assert json.loads(sent) == {
        "jsonrpc": "2.0",
        "id": number,
        "method": "elicitation/create",
        "params": {"message": "?"},
    }
    answer = line(id=number, result={"action": "accept"})
    assert connection.receive(answer) == Answer(number, {"action": "accept"})
    assert connection.receive(answer) is None
    assert connection.withdraw(number) is None


def test_a_client_can_refuse_a_request(connection: Connection) -> None:
    number, _ = connection.ask("elicitation/create", {})
    refusal = {"code": -32601, "message": "no", "data": [1]}
    event = connection.receive(line(id=number, error=refusal))
    assert isinstance(event, Answer)
    assert event.error is not None
    assert (event.error.code, str(event.error), event.error.data) == (-32601, "no", [1])


def test_a_withdrawn_request_expects_no_answer(connection: Connection) -> None:
    number, _ = connection.ask("elicitation/create", {})
    withdrawn = connection.withdraw(number)
    assert withdrawn is not None
    assert json.loads(withdrawn)["params"] == {"requestId": number}
    assert connection.receive(line(id=number, result={})) is None


@pytest.mark.parametrize("answer", [{"id": 9, "result": {}}, {"id": None, "result": {}}, {"id": 1}])
def test_an_answer_that_nobody_waits_for_is_ignored(
    connection: Connection, answer: dict[str, Any]
) -> None:
    connection.ask("elicitation/create", {})
    assert connection.receive(line(**answer)) is None


@pytest.mark.parametrize(
    ("method", "params", "message"),
    [
        ("tools/call", {}, "params is invalid: Object missing required field `name`"),
        ("tools/call", {"name": 7}, "params is invalid: Expected `str`, got `int` - at `$.name`"),
        ("logging/setLevel", {"level": "hunter2"}, "params is invalid: unexpected value"),
        (
            "tools/call",
            {"_meta": "hunter2"},
            "params._meta is invalid: Expected `object`, got `str`",
        ),
        ("subscriptions/listen", {}, "this server has no method 'subscriptions/listen'"),
        (
            "tools/call",
            {"_meta": ENVELOPE},
            "this connection was opened with a handshake; send requests without an envelope",
        ),
    ],
)
def test_a_wrong_request_is_refused_with_a_reason_but_no_value(
    connection: Connection, method: str, params: dict[str, Any], message: str
) -> None:
    error = error_of(connection.receive(line(id=1, method=method, params=params)))
    assert error["message"] == message


def test_requests_need_a_handshake_or_an_envelope() -> None:
    request = line(id=1, method="tools/call", params={"name": "x"})
    error = error_of(Connection(SERVER, METHODS).receive(request))
    assert error["message"] == "the connection is not open; send `initialize`"
    stateless = Connection(SERVER, METHODS)
    stateless.receive(line(id=0, method="server/discover", params={"_meta": ENVELOPE}))
    assert error_of(stateless.receive(request))["message"] == (
        "params._meta is missing; send an object with io.modelcontextprotocol/protocolVersion "
        "and io.modelcontextprotocol/clientCapabilities"
    )


@pytest.mark.parametrize("text", [b"", b"\n", b"nonsense", b"[]", b"7", b'{"jsonrpc": "2.0"}'])
def test_a_line_that_is_no_message_is_skipped(connection: Connection, text: bytes) -> None:
    assert connection.receive(text) is None


def test_bytes_that_are_not_utf_8_do_not_make_a_message_unreadable(connection: Connection) -> None:
    text = line(id=1, method="tools/call", params={"name": "?"}).replace(b"?", b"\xff")
    call = connection.receive(text)
    assert isinstance(call, Call)
    assert call.params.name == "�"
