"""Stream mode: requests, responses that are not streams, and streams that break."""

import gzip
import itertools
import os
from collections.abc import Iterator
from typing import Any

import pytest
from http_streams import SECRET, ListSink, stream
from hypothesis import given, settings
from hypothesis import strategies as st
from loopback_http import (
    LoopbackServer,
    chunked,
    drip,
    drop,
    hang,
    head,
    redirect,
    respond,
    sse,
)

EVENTS = {"Content-Type": "text/event-stream"}


@pytest.fixture(autouse=True, scope="module")
def no_proxy_variables() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.lower().endswith("_proxy"):
                patch.delenv(name)
        yield


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer() as running:
        yield running


def test_the_mode_of_the_config_takes_precedence_over_the_parameters(
    server: LoopbackServer,
) -> None:
    url = server.on("/", sse([b"data: a\n\n"]))
    assert stream({"url": url, "mode": None}, mode="stream").body == ["a"]
    assert stream({"url": url, "mode": "sync"}, mode="stream").body == "data: a\n\n"


def test_a_stream_can_be_requested_by_post_and_compressed(server: LoopbackServer) -> None:
    data = gzip.compress("data: é\n\n".encode() * 3)
    url = server.on("/", respond(body=data, headers={**EVENTS, "Content-Encoding": "gzip"}))
    assert stream({"url": url, "method": "POST", "body": {"q": "{q}"}}, q="x").body == ["é"] * 3
    assert server.requests[0].body == b'{"q":"x"}'


@settings(max_examples=20, deadline=None)
@given(cuts=st.lists(st.integers(0, 40), max_size=6))
def test_a_stream_may_be_split_anywhere(cuts: list[int]) -> None:
    whole = "\ufeffdata: 日本\r\ndata: 🎌\r\n\r\ndata: b\r\r".encode()
    edges = [0, *sorted(cuts), len(whole)]
    pieces = [whole[a:b] for a, b in itertools.pairwise(edges)]
    with LoopbackServer() as server:
        assert stream({"url": server.on("/", sse(pieces))}).body == ["日本\n🎌", "b"]


@pytest.mark.parametrize(
    ("answer", "status", "error", "body"),
    [
        (respond(500, json={"a": 1}), 500, "HTTP 500: Internal Server Error", {"a": 1}),
        (redirect("/"), 302, "HTTP 302: Found", ""),
        (
            respond(json={"error": "no stream"}),
            200,
            "expected a text/event-stream, got application/json; use mode sync for this address",
            {"error": "no stream"},
        ),
    ],
)
def test_a_response_that_is_not_a_stream_is_a_failed_result_with_its_body(
    server: LoopbackServer, answer: Any, status: int, error: str, body: object
) -> None:
    sink = ListSink()
    result = stream({"url": server.on("/", answer)}, sink)
    assert (result.success, result.status_code, result.error) == (False, status, error)
    assert (result.body, result.stream_events_count) == (body, 0)
    assert (sink.seen, sink.closed) == ([], 1)


@pytest.mark.parametrize(
    ("content_type", "secret", "shown"),
    [
        ("text/" + "x" * 90 + SECRET, SECRET, "text/" + "x" * 90 + "***"),
        ("Text/Sk-Marked-ABC", "Sk-Marked-ABC", "text/***"),
        ("text/sk-marked;part=2", "sk-marked;part=2", "text/***"),
    ],
    ids=["across the cut", "upper case", "with a parameter in it"],
)
def test_a_credential_in_a_content_type_is_scrubbed_first(
    server: LoopbackServer, content_type: str, secret: str, shown: str
) -> None:
    url = server.on("/", respond(headers={"Content-Type": content_type}))
    result = stream({"url": url, "auth": {"type": "bearer", "token": secret}})
    assert result.error == (
        f"expected a text/event-stream, got {shown}; use mode sync for this address"
    )


def test_the_body_of_a_refused_stream_is_bounded(server: LoopbackServer) -> None:
    url = server.on("/", drip(head(500, {}), b"x" * 65536, every=0))
    result = stream({"url": url, "max_body_bytes": 100})
    assert (result.error, len(result.body)) == ("HTTP 500: Internal Server Error", 100)


def test_a_stream_without_a_content_type_is_accepted(server: LoopbackServer) -> None:
    assert stream({"url": server.on("/", chunked([b"data: a\n\n"]))}).body == ["a"]


def test_a_failure_before_the_first_byte_is_retried(server: LoopbackServer) -> None:
    url = server.on("/", drop(), respond(503), sse([b"data: a\n\n"]))
    result = stream({"url": url, "retry": {"max_attempts": 3, "on_status": [503]}})
    assert (result.body, result.attempts) == (["a"], 3)


def test_a_broken_stream_keeps_its_events_and_is_not_retried(server: LoopbackServer) -> None:
    url = server.on("/", sse([b"data: a\n\ndata: b"], then=drop()))
    result = stream({"url": url, "retry": {"max_attempts": 3}})
    assert (result.success, result.status_code, result.body) == (False, 200, ["a"])
    assert (result.attempts, len(server.requests), result.stream_events_count) == (1, 1, 1)
    assert result.error == (
        f"connection broke: GET {server.url}: peer closed connection without sending complete "
        "message body (incomplete chunked read); check the server"
    )


def test_a_silent_stream_times_out_and_keeps_its_events(server: LoopbackServer) -> None:
    url = server.on("/", sse([b"data: a\n\n"], then=hang()))
    result = stream({"url": url, "timeout": 0.5})
    assert (result.success, result.body) == (False, ["a"])
    assert result.error == (
        f"stream was silent for 0.5 seconds: GET {server.url}; raise the limit or check the server"
    )
    server.wait_until(lambda s: s.open_connections == 0)


def test_a_stream_may_last_longer_than_timeout_but_not_than_stream_timeout(
    server: LoopbackServer,
) -> None:
    url = server.on("/", drip(head(200, EVENTS), b"data: a\n\n", every=0.01))
    result = stream({"url": url, "timeout": 0.5, "stream_timeout": 1})
    assert result.error == "stream took longer than stream_timeout (1 seconds); raise it"
    assert set(result.body) == {"a"}
    server.wait_until(lambda s: s.open_connections == 0)


def test_dripping_headers_do_not_outlive_the_timeout(server: LoopbackServer) -> None:
    url = server.on("/", drip(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n", every=0.01))
    result = stream({"url": url, "timeout": 0.5})
    assert result.error == (
        f"timed out after 0.5 seconds: GET {server.url}; raise the limit or check the server"
    )


def test_an_endless_event_is_refused(server: LoopbackServer) -> None:
    url = server.on("/", drip(head(200, EVENTS) + b"data: a\n\n", b"data: xxxx\n", every=0))
    result = stream({"url": url, "max_event_bytes": 1000})
    assert (result.success, result.body) == (False, ["a"])
    assert result.error == (
        "an event is larger than max_event_bytes (1000); raise it or request smaller events"
    )
