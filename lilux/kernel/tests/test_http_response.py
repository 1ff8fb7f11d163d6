"""Responses: redirects, limits, broken connections."""

import asyncio
import gzip
import zlib
from typing import Any

import pytest
from http_calls import call
from lilux.primitives.http_client import HttpClientPrimitive, HttpResult
from loopback_http import LoopbackServer, chunked, drip, drop, hang, head, raw, redirect, respond

SECRET = "sk-marked-0123456789"
OK = respond(json={"ok": True})


pytestmark = pytest.mark.usefixtures("no_proxy_variables")


# --- redirects ----------------------------------------------------------------------------------


def test_redirects_are_not_followed_by_default(server: LoopbackServer) -> None:
    server.on("/old", redirect("/"))
    result = call({"url": server.url + "/old"})
    assert (result.success, result.status_code, result.headers["location"]) == (True, 302, "/")
    assert len(server.requests) == 1


def test_a_redirect_within_the_origin_keeps_credentials(server: LoopbackServer) -> None:
    server.on("/a/old", redirect("../new?x=1"))
    server.on("/new", OK)
    auth = {"type": "api_key", "key": SECRET}
    result = call({"url": server.url + "/a/old", "auth": auth, "follow_redirects": True})
    assert result.body == {"ok": True}
    assert server.requests[1].target == "/new?x=1"
    assert server.requests[1].headers["x-api-key"] == SECRET


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_credentials_are_not_sent_to_another_origin_nor_after_it(
    server: LoopbackServer, status: int
) -> None:
    with LoopbackServer() as other:
        server.on("/old", redirect(other.url + "/there", status))
        other.on("/there", redirect(f"http://x:y@127.0.0.1:{server.port}/back", status))
        server.on("/back", OK)
        config = {
            "url": f"http://user:{SECRET}@127.0.0.1:{server.port}/old",
            "follow_redirects": True,
            "headers": {
                "Authorization": SECRET,
                "Cookie": SECRET,
                "X-Own-Token": SECRET,
                "Accept": "text/plain",
            },
            "auth": {"type": "api_key", "key": SECRET, "header": "X-Key"},
        }
        assert call(config).success
        assert SECRET in str(server.requests[0].headers)
        assert other.requests[0].headers["accept"] == "text/plain"
        assert other.requests[0].headers["host"] == f"127.0.0.1:{other.port}"
        for later in (other.requests[0], server.requests[1]):
            assert SECRET not in str(later)
            assert "authorization" not in later.headers


@pytest.mark.parametrize(
    ("status", "method", "body"),
    [
        (301, "GET", b""),
        (302, "GET", b""),
        (303, "GET", b""),
        (307, "POST", b"[1]"),
        (308, "POST", b"[1]"),
    ],
)
def test_method_and_body_of_a_redirected_post(
    server: LoopbackServer, status: int, method: str, body: bytes
) -> None:
    server.on("/old", redirect("/", status))
    config = {"method": "POST", "url": server.url + "/old", "body": [1], "follow_redirects": True}
    assert call(config).success
    assert (server.requests[1].method, server.requests[1].body) == (method, body)
    assert ("content-type" in server.requests[1].headers) is (method == "POST")


def test_a_body_is_not_sent_to_another_origin(server: LoopbackServer) -> None:
    with LoopbackServer() as other:
        server.on("/", redirect(other.url, 307))
        config = {"method": "POST", "url": server.url, "body": [1], "follow_redirects": True}
        result = call({**config, "retry": {"max_attempts": 3}})
        assert result.error == (
            f"redirect refused: POST {server.url}: the body would go to another origin; "
            "request the final address"
        )
        assert (result.attempts, other.requests) == (1, [])


@pytest.mark.parametrize(
    "location", ["ftp://127.0.0.1/", "file:///etc/passwd", "http://[::/", "javascript:alert(1)"]
)
def test_a_redirect_away_from_http_is_refused(server: LoopbackServer, location: str) -> None:
    server.on("/", redirect(location))
    result = call({"url": server.url, "follow_redirects": True})
    assert not result.success
    assert len(server.requests) == 1


def test_a_redirect_to_an_invalid_address_is_refused(server: LoopbackServer) -> None:
    server.on("/", redirect("javascript:alert(1)"))
    assert call({"url": server.url, "follow_redirects": True}).error == (
        f"redirect refused: GET {server.url}: the new address is not http or https; "
        "request the final address"
    )


def test_a_redirect_loop_ends(server: LoopbackServer) -> None:
    server.on("/", redirect("/"))
    result = call({"url": server.url, "follow_redirects": True, "retry": {"max_attempts": 2}})
    assert result.error == (
        f"redirected more than 10 times: GET {server.url}; request the final address"
    )
    assert (len(server.requests), result.attempts) == (11, 1)


def test_the_connection_of_a_followed_redirect_is_released(server: LoopbackServer) -> None:
    server.on("/", hang(head(302, {"Location": "/new", "Content-Length": "5"})))
    server.on("/new", OK)

    async def body() -> None:
        async with HttpClientPrimitive() as http:
            assert (await http.execute({"url": server.url, "follow_redirects": True}, {})).success
            await asyncio.to_thread(server.wait_until, lambda s: s.open_connections == 1)

    asyncio.run(body())


def test_cookies_of_one_call_do_not_log_in_another(server: LoopbackServer) -> None:
    server.on("/", respond(200, headers={"Set-Cookie": "session=1; Path=/"}))

    async def twice() -> None:
        async with HttpClientPrimitive() as http:
            for _ in range(2):
                assert (await http.execute({"url": server.url}, {})).success

    asyncio.run(twice())
    assert "cookie" not in server.requests[1].headers


# --- limits -------------------------------------------------------------------------------------


def test_a_body_above_the_limit_fails_and_closes_the_connection(server: LoopbackServer) -> None:
    server.on("/", respond(body=b"x" * 1000))
    server.on("/fits", respond(body=b"x" * 10))

    async def body() -> tuple[HttpResult, HttpResult]:
        async with HttpClientPrimitive() as http:
            big = await http.execute({"url": server.url, "max_body_bytes": 10}, {})
            server.wait_until(lambda s: s.open_connections == 0)
            return big, await http.execute({"url": server.url + "/fits", "max_body_bytes": 10}, {})

    big, fits = asyncio.run(body())
    assert (big.success, big.status_code, big.body, big.truncated) == (False, 200, "x" * 10, True)
    assert big.error == (
        "response body is larger than max_body_bytes (10); raise it or request less"
    )
    assert (fits.success, fits.truncated) == (True, False)


def test_an_error_status_takes_precedence_over_a_large_body(server: LoopbackServer) -> None:
    server.on("/", respond(500, b"x" * 1000))
    result = call({"url": server.url, "max_body_bytes": 10})
    assert (result.error, result.body) == ("HTTP 500: Internal Server Error", "x" * 10)
    assert result.truncated


@pytest.mark.parametrize(
    ("encoding", "data"),
    [
        ("gzip", gzip.compress(bytes(50_000_000))),
        ("deflate", zlib.compress(bytes(50_000_000))),
        ("gzip, gzip", gzip.compress(gzip.compress(bytes(50_000_000)))),
    ],
    ids=["gzip", "deflate", "twice"],
)
def test_a_decompression_bomb_is_not_unpacked(
    server: LoopbackServer, encoding: str, data: bytes
) -> None:
    server.on("/", respond(body=data, headers={"Content-Encoding": encoding}))
    result = call({"url": server.url})
    assert result.error == (
        "response body is larger than max_body_bytes (10485760); raise it or request less"
    )
    assert len(result.body) == 10 * 1024 * 1024


def test_an_endless_body_is_bounded(server: LoopbackServer) -> None:
    server.on("/", drip(head(200, {}), b"x" * 65536, every=0))
    result = call({"url": server.url, "max_body_bytes": 1_000_000})
    assert result.truncated


@pytest.mark.parametrize(
    "answer",
    [
        hang(),
        hang(head(200, {"Content-Length": "5"}) + b"ab"),
        drip(head(200, {"Content-Length": "100000"}), b"x", every=0.02),
        drip(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n", every=0.02),
    ],
    ids=["no answer", "stuck body", "dripping body", "dripping headers"],
)
def test_the_timeout_bounds_the_whole_request(server: LoopbackServer, answer: Any) -> None:
    server.on("/", answer)
    result = call({"url": server.url, "timeout": 0.3})
    assert (result.success, result.status_code, result.body) == (False, 0, None)
    assert result.error == (
        f"timed out after 0.3 seconds: GET {server.url}; raise the limit or check the server"
    )
    server.wait_until(lambda s: s.open_connections == 0)


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        (drop(), "Server disconnected without sending a response"),
        (
            raw(head(200, {"Content-Length": "10"}) + b"short"),
            (
                "peer closed connection without sending complete message body "
                "(received 5 bytes, expected 10)"
            ),
        ),
        (
            chunked([b"abc"], then=drop()),
            (
                "peer closed connection without sending complete message body "
                "(incomplete chunked read)"
            ),
        ),
    ],
)
def test_a_broken_connection_reports_the_reason(
    server: LoopbackServer, answer: Any, detail: str
) -> None:
    server.on("/", answer)
    result = call({"url": server.url})
    assert result.error == f"connection broke: GET {server.url}: {detail}; check the server"


def test_a_body_with_a_wrong_encoding_is_reported(server: LoopbackServer) -> None:
    server.on("/", respond(body=b"plain", headers={"Content-Encoding": "gzip"}))
    error = call({"url": server.url}).error
    assert error
    assert error.startswith(f"response could not be decoded: GET {server.url}: ")
