"""Sinks of a stream: events, failures, limits and closing."""

import asyncio
from typing import Any

import pytest
from http_streams import SECRET, ListSink, stream
from lilux.primitives.http_client import HttpClientPrimitive, HttpResult, ReturnSink
from lilux.primitives.http_client.sinks import SinkFan
from loopback_http import LoopbackServer, hang, sse

pytestmark = pytest.mark.usefixtures("no_proxy_variables")


class PlainCloseSink(ListSink):
    """Its ``close`` is a plain method."""

    def close(self) -> None:  # type: ignore[override]  # the point of this sink
        self.closed += 1


def test_events_fan_out_to_every_sink(server: LoopbackServer) -> None:
    url = server.on("/", sse([b"data: a\n\ndata: b", b"1\ndata: b2\n\n: ping\n\n", b"data: lost"]))
    one, two, kept = ListSink(), PlainCloseSink(), ReturnSink()
    result = stream({"url": url}, one, two, kept)
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
    assert stream({"url": server.on("/", sse([b"data: a\n\n"]))}, ListSink()).body is None


def test_without_any_sink_the_events_are_returned(server: LoopbackServer) -> None:
    result = stream({"url": server.on("/", sse([b"data: a\n\n"]))})
    assert (result.body, result.stream_destinations) == (["a"], ["ReturnSink"])


def test_events_that_do_not_fit_into_a_return_sink_are_counted(server: LoopbackServer) -> None:
    url = server.on("/", sse([b"data: aa\n\ndata: bb\n\ndata: cc\n\n"]))
    for sink, kept in ((ReturnSink(2), ["aa", "bb"]), (ReturnSink(9, max_bytes=3), ["aa"])):
        result = stream({"url": url}, sink)
        assert (result.success, result.body, result.truncated) == (True, kept, True)
        assert result.stream_events_count == 3
        assert result.sink_errors == [
            (
                f"ReturnSink: {3 - len(kept)} events did not fit and were dropped; "
                "raise max_size or max_bytes"
            )
        ]


class FailingSink(ListSink):
    """Fails at its second event."""

    async def write(self, data: str) -> None:
        if self.seen:
            raise OSError(f"disk full, key was {SECRET}")
        await super().write(data)


class StuckSink(ListSink):
    """Never finishes an event."""

    async def write(self, data: str) -> None:
        await asyncio.Event().wait()


class UnclosableSink(ListSink):
    """Fails in ``close``."""

    async def close(self) -> None:
        await super().close()
        raise ValueError


class SelfCancellingSink(ListSink):
    """Raises ``CancelledError``, as a cancelled task inside the sink would."""

    async def write(self, data: str) -> None:
        raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("sink", "error"),
    [
        (FailingSink(), "FailingSink: write failed: OSError: disk full, key was ***"),
        (StuckSink(), "StuckSink: write took longer than 0.5 seconds"),
        (UnclosableSink(), "UnclosableSink: close failed: ValueError"),
        (SelfCancellingSink(), "SelfCancellingSink: write failed: CancelledError"),
    ],
)
def test_a_failing_sink_is_named_and_does_not_stop_the_others(
    server: LoopbackServer, sink: ListSink, error: str
) -> None:
    url = server.on("/", sse([b"data: a\n\ndata: b\n\ndata: c\n\n"]))
    before, after = ListSink(), ListSink()
    auth = {"type": "bearer", "token": "${API_KEY}"}
    result = stream({"url": url, "timeout": 0.5, "auth": auth}, before, sink, after)
    assert (result.success, result.sink_errors) == (True, [error])
    assert before.seen == after.seen == ["a", "b", "c"]
    assert (before.closed, sink.closed, after.closed) == (1, 1, 1)


class LongMessageSink(ListSink):
    """Fails with a message that contains the credential at its 500th character."""

    async def write(self, data: str) -> None:
        raise OSError("x" * 495 + SECRET)


def test_a_credential_at_the_end_of_a_shortened_sink_error_is_scrubbed(
    server: LoopbackServer,
) -> None:
    url = server.on("/", sse([b"data: a\n\n"]))
    auth = {"type": "bearer", "token": "${API_KEY}"}
    result = stream({"url": url, "auth": auth}, LongMessageSink(), ListSink())
    assert result.sink_errors == [f"LongMessageSink: write failed: OSError: {'x' * 495}***"]


def test_a_stream_without_a_working_sink_ends(server: LoopbackServer) -> None:
    url = server.on("/", sse([b"data: a\n\ndata: b\n\n"], then=hang()))
    result = stream({"url": url}, FailingSink())
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
def test_an_object_that_is_not_a_sink_is_refused(sinks: Any, error: str) -> None:
    result = stream({"url": "http://127.0.0.1:9"}, __sinks=sinks)
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
    assert not stream(config, sink).success
    assert sink.closed == 1


def test_valid_sinks_are_closed_if_another_is_refused() -> None:
    sink = ListSink()
    assert not stream({"url": "http://127.0.0.1:9"}, sink, object()).success
    assert sink.closed == 1


def test_a_sink_given_twice_is_closed_once(server: LoopbackServer) -> None:
    sink = ListSink()
    assert stream({"url": server.on("/", sse([b"data: a\n\n"]))}, sink, sink).success
    assert (sink.seen, sink.closed) == (["a", "a"], 1)


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


def test_a_second_cancellation_does_not_prevent_closing() -> None:
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
