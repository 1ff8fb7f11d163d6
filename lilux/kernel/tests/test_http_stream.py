"""Stream mode: events to sinks, sinks that fail, streams that break."""

import asyncio
import gzip
import itertools
import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lilux.primitives.http_client import HttpClientPrimitive, HttpResult, ReturnSink, Timing
from lilux.primitives.http_client.sinks import SinkFan
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

SECRET = "sk-marked-0123456789"
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


class ListSink:
    """Remembers what it was given."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.closed = 0

    async def write(self, data: str) -> None:
        self.seen.append(data)

    async def close(self) -> None:
        self.closed += 1


class FailingSink(ListSink):
    """Breaks at its second event."""

    async def write(self, data: str) -> None:
        if self.seen:
            raise OSError(f"disk full, key was {SECRET}")
        await super().write(data)


class StuckSink(ListSink):
    """Never finishes an event."""

    async def write(self, data: str) -> None:
        await asyncio.Event().wait()


class UnclosableSink(ListSink):
    """Breaks when it is closed."""

    async def close(self) -> None:
        await super().close()
        raise ValueError


class SelfCancellingSink(ListSink):
    """Raises what a cancelled helper task of its own would raise."""

    async def write(self, data: str) -> None:
        raise asyncio.CancelledError


class PlainCloseSink(ListSink):
    """Its close is an ordinary method."""

    def close(self) -> None:  # type: ignore[override]  # the point of this sink
        self.closed += 1


async def no_wait(seconds: float) -> None:
    await asyncio.sleep(0)


def call(config: dict[str, Any], *sinks: Any, **params: Any) -> HttpResult:
    async def body() -> HttpResult:
        timing = Timing(sleep=no_wait)
        async with HttpClientPrimitive(timing=timing, environ={"API_KEY": SECRET}) as http:
            given = {"__sinks": list(sinks), **params} if sinks else params
            return await http.execute({"mode": "stream", **config}, given)

    return asyncio.run(body())


# --- events and sinks -------------------------------------------------------------------------


def test_events_fan_out_to_every_sink(server: LoopbackServer) -> None:
    url = server.on("/", sse([b"data: a\n\ndata: b", b"1\ndata: b2\n\n: ping\n\n", b"data: lost"]))
    one, two, kept = ListSink(), PlainCloseSink(), ReturnSink()
    result = call({"url": url}, one, two, kept)
    assert result == HttpResult(
        success=True,
        status_code=200,
        body=["a", "b1\nb2"],
        headers={"transfer-encoding": "chunked", "content-type": "text/event-stream"},
        duration_ms=result.duration_ms,
        error=None,
        stream_events_count=2,
        stream_destinations=["ListSink", "PlainCloseSink", "ReturnSink"],
    )
    assert one.seen == two.seen == kept.events == ["a", "b1\nb2"]
    assert (one.closed, two.closed) == (1, 1)
    request = server.requests[0]
    assert (request.headers["accept"], request.headers["cache-control"]) == (
        "text/event-stream",
        "no-store",
    )


def test_without_a_return_sink_the_body_is_none(server: LoopbackServer) -> None:
    assert call({"url": server.on("/", sse([b"data: a\n\n"]))}, ListSink()).body is None


def test_without_any_sink_the_events_are_returned(server: LoopbackServer) -> None:
    result = call({"url": server.on("/", sse([b"data: a\n\n"]))})
    assert (result.body, result.stream_destinations) == (["a"], ["ReturnSink"])


def test_the_mode_may_stand_in_the_parameters_but_the_config_wins(server: LoopbackServer) -> None:
    url = server.on("/", sse([b"data: a\n\n"]))
    assert call({"url": url, "mode": None}, mode="stream").body == ["a"]
    assert call({"url": url, "mode": "sync"}, mode="stream").body == "data: a\n\n"


def test_a_stream_can_be_asked_for_by_post_and_come_compressed(server: LoopbackServer) -> None:
    data = gzip.compress("data: é\n\n".encode() * 3)
    url = server.on("/", respond(body=data, headers={**EVENTS, "Content-Encoding": "gzip"}))
    assert call({"url": url, "method": "POST", "body": {"q": "{q}"}}, q="x").body == ["é"] * 3
    assert server.requests[0].body == b'{"q":"x"}'


@settings(max_examples=20, deadline=None)
@given(cuts=st.lists(st.integers(0, 40), max_size=6))
def test_the_wire_may_cut_a_stream_anywhere(cuts: list[int]) -> None:
    stream = "\ufeffdata: 日本\r\ndata: 🎌\r\n\r\ndata: b\r\r".encode()
    edges = [0, *sorted(cuts), len(stream)]
    pieces = [stream[a:b] for a, b in itertools.pairwise(edges)]
    with LoopbackServer() as server:
        assert call({"url": server.on("/", sse(pieces))}).body == ["日本\n🎌", "b"]


def test_what_a_return_sink_cannot_hold_is_counted_not_kept(server: LoopbackServer) -> None:
    url = server.on("/", sse([b"data: aa\n\ndata: bb\n\ndata: cc\n\n"]))
    for sink, kept in ((ReturnSink(2), ["aa", "bb"]), (ReturnSink(9, max_bytes=3), ["aa"])):
        result = call({"url": url}, sink)
        assert (result.success, result.body, result.truncated) == (True, kept, True)
        assert result.stream_events_count == 3
        assert result.sink_errors == [
            (
                f"ReturnSink: {3 - len(kept)} events did not fit and were dropped; "
                "raise max_size or max_bytes"
            )
        ]


@pytest.mark.parametrize(
    ("sink", "error"),
    [
        (FailingSink(), "FailingSink: write failed: OSError: disk full, key was ***"),
        (StuckSink(), "StuckSink: write took longer than 0.5 seconds"),
        (UnclosableSink(), "UnclosableSink: close failed: ValueError"),
        (SelfCancellingSink(), "SelfCancellingSink: write failed: CancelledError"),
    ],
)
def test_a_sink_that_fails_is_named_and_does_not_stop_the_others(
    server: LoopbackServer, sink: ListSink, error: str
) -> None:
    url = server.on("/", sse([b"data: a\n\ndata: b\n\ndata: c\n\n"]))
    before, after = ListSink(), ListSink()
    auth = {"type": "bearer", "token": "${API_KEY}"}
    result = call({"url": url, "timeout": 0.5, "auth": auth}, before, sink, after)
    assert (result.success, result.sink_errors) == (True, [error])
    assert before.seen == after.seen == ["a", "b", "c"]
    assert (before.closed, sink.closed, after.closed) == (1, 1, 1)


class LongWindedSink(ListSink):
    """Breaks with a message that has the credential across its five hundredth character."""

    async def write(self, data: str) -> None:
        raise OSError("x" * 495 + SECRET)


def test_a_credential_across_the_end_of_a_cut_sink_error_is_scrubbed(
    server: LoopbackServer,
) -> None:
    url = server.on("/", sse([b"data: a\n\n"]))
    auth = {"type": "bearer", "token": "${API_KEY}"}
    result = call({"url": url, "auth": auth}, LongWindedSink(), ListSink())
    assert result.sink_errors == [f"LongWindedSink: write failed: OSError: {'x' * 495}***"]


def test_a_stream_without_a_working_sink_ends(server: LoopbackServer) -> None:
    url = server.on("/", sse([b"data: a\n\ndata: b\n\n"], then=hang()))
    result = call({"url": url}, FailingSink())
    assert (result.success, result.error) == (False, "every sink failed; see sink_errors")
    assert result.stream_events_count == 2
    server.wait_until(lambda s: s.open_connections == 0)


@pytest.mark.parametrize(
    ("sinks", "error"),
    [
        ("text", "__sinks: expected a list of sinks, got str"),
        ([object()], "__sinks[0]: object is not a sink; it needs async write(data) and close()"),
    ],
)
def test_what_is_no_sink_is_refused(sinks: Any, error: str) -> None:
    result = call({"url": "http://127.0.0.1:9"}, __sinks=sinks)
    assert (result.status_code, result.error) == (0, error)


@pytest.mark.parametrize(
    "config",
    [
        {"url": "http://127.0.0.1:9", "timeout": -1},
        {"mode": "nonsense", "url": "http://127.0.0.1:9"},
        {"mode": "sync", "url": "/"},
    ],
)
def test_sinks_are_closed_even_if_nothing_was_sent(config: dict[str, Any]) -> None:
    sink = ListSink()
    assert not call(config, sink).success
    assert sink.closed == 1


def test_good_sinks_beside_a_bad_one_are_closed() -> None:
    sink = ListSink()
    assert not call({"url": "http://127.0.0.1:9"}, sink, object()).success
    assert sink.closed == 1


def test_a_sink_given_twice_is_closed_once(server: LoopbackServer) -> None:
    sink = ListSink()
    assert call({"url": server.on("/", sse([b"data: a\n\n"]))}, sink, sink).success
    assert (sink.seen, sink.closed) == (["a", "a"], 1)


# --- streams that are none, or break ----------------------------------------------------------


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
def test_a_response_that_is_no_stream_is_a_failed_result_with_its_body(
    server: LoopbackServer, answer: Any, status: int, error: str, body: object
) -> None:
    sink = ListSink()
    result = call({"url": server.on("/", answer)}, sink)
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
def test_a_credential_in_a_content_type_is_scrubbed_before_anything_else(
    server: LoopbackServer, content_type: str, secret: str, shown: str
) -> None:
    url = server.on("/", respond(headers={"Content-Type": content_type}))
    result = call({"url": url, "auth": {"type": "bearer", "token": secret}})
    assert result.error == (
        f"expected a text/event-stream, got {shown}; use mode sync for this address"
    )


def test_the_body_of_a_refused_stream_is_bounded(server: LoopbackServer) -> None:
    url = server.on("/", drip(head(500, {}), b"x" * 65536, every=0))
    result = call({"url": url, "max_body_bytes": 100})
    assert (result.error, len(result.body)) == ("HTTP 500: Internal Server Error", 100)


def test_a_stream_without_a_content_type_is_taken_as_events(server: LoopbackServer) -> None:
    assert call({"url": server.on("/", chunked([b"data: a\n\n"]))}).body == ["a"]


def test_a_failure_before_the_first_byte_is_retried(server: LoopbackServer) -> None:
    url = server.on("/", drop(), respond(503), sse([b"data: a\n\n"]))
    result = call({"url": url, "retry": {"max_attempts": 3, "on_status": [503]}})
    assert (result.body, result.attempts) == (["a"], 3)


def test_a_stream_that_breaks_keeps_its_events_and_is_not_repeated(server: LoopbackServer) -> None:
    url = server.on("/", sse([b"data: a\n\ndata: b"], then=drop()))
    result = call({"url": url, "retry": {"max_attempts": 3}})
    assert (result.success, result.status_code, result.body) == (False, 200, ["a"])
    assert (result.attempts, len(server.requests), result.stream_events_count) == (1, 1, 1)
    assert result.error == (
        f"connection broke: GET {server.url}: peer closed connection without sending complete "
        "message body (incomplete chunked read); check the server"
    )


def test_a_silent_stream_times_out_and_keeps_its_events(server: LoopbackServer) -> None:
    url = server.on("/", sse([b"data: a\n\n"], then=hang()))
    result = call({"url": url, "timeout": 0.5})
    assert (result.success, result.body) == (False, ["a"])
    assert result.error == (
        f"stream was silent for 0.5 seconds: GET {server.url}; raise the limit or check the server"
    )
    server.wait_until(lambda s: s.open_connections == 0)


def test_a_stream_may_last_longer_than_timeout_but_not_than_stream_timeout(
    server: LoopbackServer,
) -> None:
    url = server.on("/", drip(head(200, EVENTS), b"data: a\n\n", every=0.01))
    result = call({"url": url, "timeout": 0.5, "stream_timeout": 1})
    assert result.error == "stream took longer than stream_timeout (1 seconds); raise it"
    assert set(result.body) == {"a"}
    server.wait_until(lambda s: s.open_connections == 0)


def test_dripping_headers_do_not_outlive_the_timeout(server: LoopbackServer) -> None:
    url = server.on("/", drip(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n", every=0.01))
    result = call({"url": url, "timeout": 0.5})
    assert result.error == (
        f"timed out after 0.5 seconds: GET {server.url}; raise the limit or check the server"
    )


def test_an_endless_event_is_refused(server: LoopbackServer) -> None:
    url = server.on("/", drip(head(200, EVENTS) + b"data: a\n\n", b"data: xxxx\n", every=0))
    result = call({"url": url, "max_event_bytes": 1000})
    assert (result.success, result.body) == (False, ["a"])
    assert result.error == (
        "an event is larger than max_event_bytes (1000); raise it or request smaller events"
    )


# --- cancellation -----------------------------------------------------------------------------


def test_cancellation_closes_connection_and_sinks_once(server: LoopbackServer) -> None:
    url = server.on("/", sse([b"data: a\n\n"], then=hang()))
    arrived = asyncio.Event()

    class Noting(ListSink):
        async def write(self, data: str) -> None:
            await super().write(data)
            arrived.set()

    sinks = [Noting(), UnclosableSink()]

    async def body() -> None:
        async with HttpClientPrimitive() as http:
            config = {"url": url, "mode": "stream"}
            task = asyncio.create_task(http.execute(config, {"__sinks": sinks}))
            await arrived.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(server.wait_until, lambda s: s.open_connections == 0)

    asyncio.run(body())
    assert [sink.closed for sink in sinks] == [1, 1]


def test_a_second_cancellation_does_not_keep_a_sink_from_closing() -> None:
    async def body() -> None:
        closing, go_on = asyncio.Event(), asyncio.Event()

        class Slow(ListSink):
            async def close(self) -> None:
                closing.set()
                await go_on.wait()
                await super().close()

        sinks = [Slow(), ListSink()]
        task = asyncio.create_task(SinkFan(sinks).close())
        await closing.wait()
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [sink.closed for sink in sinks] == [1, 1]

    asyncio.run(body())
