"""Retries: causes, waits and limits, with a fake clock."""

import asyncio
import os
from collections.abc import Iterator
from typing import Any

import pytest
from lilux.primitives.http_client import HttpClientPrimitive, HttpResult, Timing
from lilux.primitives.http_client.retry import retry_after
from loopback_http import LoopbackServer, drop, hang, raw, refused_port, reset, respond

OK = respond(json={"ok": True})
NOW = 1_800_000_000.0  # Fri, 15 Jan 2027 08:00:00 GMT


@pytest.fixture(autouse=True)
def no_proxy_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer() as running:
        yield running


class FakeClock:
    """A clock that advances only in ``sleep``."""

    def __init__(self) -> None:
        self.now = 0.0
        self.sleeps: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds

    def timing(self) -> Timing:
        return Timing(monotonic=lambda: self.now, wall=lambda: NOW + self.now, sleep=self.sleep)


def call(config: dict[str, Any]) -> tuple[HttpResult, list[float]]:
    clock = FakeClock()

    async def body() -> HttpResult:
        async with HttpClientPrimitive(timing=clock.timing(), environ={}) as http:
            return await http.execute(config, {})

    return asyncio.run(body()), clock.sleeps


@pytest.mark.parametrize(
    ("backoff", "waits"), [("exponential", [1, 2, 4, 8]), ("linear", [1, 2, 3, 4])]
)
def test_each_backoff_has_its_waits(
    server: LoopbackServer, backoff: str, waits: list[float]
) -> None:
    url = server.on("/", drop())
    result, sleeps = call({"url": url, "retry": {"max_attempts": 5, "backoff": backoff}})
    assert (sleeps, result.attempts, len(server.requests)) == (waits, 5, 5)
    assert result.error == (
        f"connection broke: GET {server.url}: Server disconnected without sending a response; "
        "check the server"
    )


@pytest.mark.parametrize(
    "failure",
    [drop(), reset(), hang(), raw(b"garbage\r\n\r\n")],
    ids=["drop", "reset", "hang", "garbage"],
)
def test_a_failure_is_retried_until_success(server: LoopbackServer, failure: Any) -> None:
    url = server.on("/", failure, failure, OK)
    result, sleeps = call({"url": url, "timeout": 0.5, "retry": {"max_attempts": 3}})
    assert (result.success, result.body, result.attempts) == (True, {"ok": True}, 3)
    assert sleeps == [1, 2]


def test_a_refused_connection_is_retried() -> None:
    with refused_port() as port:
        config = {"url": f"http://127.0.0.1:{port}", "retry": {"max_attempts": 2}}
        result, sleeps = call(config)
    assert (result.success, result.attempts, sleeps) == (False, 2, [1])


def test_a_post_is_sent_again_with_its_body(server: LoopbackServer) -> None:
    url = server.on("/", drop(), OK)
    config = {"url": url, "method": "POST", "body": [1], "retry": {"max_attempts": 2}}
    assert call(config)[0].success
    assert [request.body for request in server.requests] == [b"[1]", b"[1]"]


@pytest.mark.parametrize(("retry", "attempts"), [({}, 1), ({"backoff": "linear"}, 3)])
def test_the_default_number_of_attempts(
    server: LoopbackServer, retry: dict[str, Any], attempts: int
) -> None:
    url = server.on("/", drop())
    assert call({"url": url, "retry": retry})[0].attempts == attempts


def test_a_status_is_retried_only_if_listed(server: LoopbackServer) -> None:
    url = server.on("/", respond(503), OK)
    result, sleeps = call({"url": url, "retry": {"max_attempts": 3, "on_status": [429]}})
    assert (result.error, result.attempts, sleeps) == ("HTTP 503: Service Unavailable", 1, [])
    server.on("/", respond(503), respond(429), OK)
    result, sleeps = call({"url": url, "retry": {"max_attempts": 3, "on_status": [429, 503]}})
    assert (result.success, result.attempts, sleeps) == (True, 3, [1, 2])


def test_a_status_that_persists_is_the_result(server: LoopbackServer) -> None:
    url = server.on("/", respond(429, json={"slow": "down"}))
    result, _ = call({"url": url, "retry": {"max_attempts": 2, "on_status": [429]}})
    assert (result.error, result.body) == ("HTTP 429: Too Many Requests", {"slow": "down"})
    assert result.attempts == 2


@pytest.mark.parametrize(
    ("value", "wait"),
    [
        ("7", 7),
        ("0", 0),
        ("Fri, 15 Jan 2027 08:00:20 GMT", 20),
        ("Fri, 15 Jan 2027 07:00:00 GMT", 0),
        ("soon", 1),
        ("-5", 1),
        ("1.5", 1),
    ],
)
def test_retry_after_is_honoured(server: LoopbackServer, value: str, wait: float) -> None:
    url = server.on("/", respond(503, headers={"Retry-After": value}), OK)
    result, sleeps = call({"url": url, "retry": {"max_attempts": 2, "on_status": [503]}})
    assert (result.success, sleeps) == (True, [wait])


@pytest.mark.parametrize("value", ["301", "9" * 400, "Fri, 15 Jan 2100 08:00:00 GMT"])
def test_retry_after_cannot_exceed_the_total(server: LoopbackServer, value: str) -> None:
    url = server.on("/", respond(503, headers={"Retry-After": value}), OK)
    result, sleeps = call({"url": url, "retry": {"max_attempts": 2, "on_status": [503]}})
    assert (result.error, result.attempts, sleeps) == ("HTTP 503: Service Unavailable", 1, [])


def test_an_unreadable_retry_after_is_none() -> None:
    assert retry_after({}, now=NOW) is None
    assert retry_after({"retry-after": "Fri, 99 Foo 2027 25:00:00 GMT"}, now=NOW) is None


def test_the_total_time_is_bounded(server: LoopbackServer) -> None:
    url = server.on("/", drop())
    config = {"url": url, "retry": {"max_attempts": 100, "max_total": 10}}
    result, sleeps = call(config)
    assert (sleeps, result.attempts) == ([1, 2, 4], 4)


def test_the_last_attempt_gets_the_rest_of_the_total(server: LoopbackServer) -> None:
    url = server.on("/", drop(), hang())
    config = {"url": url, "retry": {"max_attempts": 9, "max_total": 1.25}}
    result, sleeps = call(config)
    assert result.error == (
        f"timed out after 0.25 seconds: GET {server.url}; raise the limit or check the server"
    )
    assert (sleeps, result.attempts) == ([1], 2)


def test_an_invalid_request_is_not_retried() -> None:
    result, sleeps = call({"url": "ftp://127.0.0.1/", "retry": {"max_attempts": 3}})
    assert (result.success, result.attempts, sleeps) == (False, 0, [])


def test_cancellation_ends_a_wait(server: LoopbackServer) -> None:
    url = server.on("/", drop())

    async def body() -> None:
        waiting = asyncio.Event()

        async def sleep(seconds: float) -> None:
            waiting.set()
            await asyncio.Event().wait()

        async with HttpClientPrimitive(timing=Timing(sleep=sleep)) as http:
            config = {"url": url, "retry": {"max_attempts": 2}}
            task = asyncio.create_task(http.execute(config, {}))
            await waiting.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(body())
    assert len(server.requests) == 1
