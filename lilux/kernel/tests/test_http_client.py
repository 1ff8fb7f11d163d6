"""The client as a whole: results, broken configuration, pooled connections."""

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import httpx2
import pytest
from http_calls import call
from lilux.primitives.http_client import HttpClientPrimitive, HttpResult
from lilux.primitives.http_client.pool import new_client
from loopback_http import LoopbackServer, hang, respond

SECRET = "sk-marked-0123456789"
OK = respond(json={"ok": True})


pytestmark = pytest.mark.usefixtures("no_proxy_variables")


# --- the result ---------------------------------------------------------------------------------


def test_a_get_gives_every_field_of_the_result(server: LoopbackServer) -> None:
    server.on("/item", respond(json={"id": 7}, headers={"X-Trace": "a"}))
    result = call({"url": server.url + "/item"}, {})
    assert result == HttpResult(
        success=True,
        status_code=200,
        body={"id": 7},
        headers={"content-type": "application/json", "content-length": "9", "x-trace": "a"},
        duration_ms=result.duration_ms,
        error=None,
        stream_events_count=None,
        stream_destinations=None,
    )
    assert isinstance(result.duration_ms, int)


def test_an_error_status_is_a_failed_result_with_its_body(server: LoopbackServer) -> None:
    server.on("/", respond(500, json={"why": "oops"}))
    result = call({"url": server.url})
    assert (result.success, result.status_code, result.body) == (False, 500, {"why": "oops"})
    assert result.error == "HTTP 500: Internal Server Error"


@pytest.mark.parametrize(
    ("status", "reason", "error"),
    [
        (404, "", "HTTP 404: Not Found"),
        (599, "", "HTTP 599: unknown status"),
        (418, "No", "HTTP 418: No"),
    ],
)
def test_a_missing_reason_is_filled_in(
    server: LoopbackServer, status: int, reason: str, error: str
) -> None:
    server.on("/", respond(status, reason=reason))
    assert call({"url": server.url}).error == error


@pytest.mark.parametrize("status", [200, 204, 302, 304, 399])
def test_statuses_below_400_are_success(server: LoopbackServer, status: int) -> None:
    server.on("/", respond(status, reason="x"))
    assert call({"url": server.url}).success


@pytest.mark.parametrize(
    ("content_type", "data", "expected"),
    [
        ("application/json; charset=utf-8", b'{"a": [1]}', {"a": [1]}),
        ("application/problem+json", b"[1]", [1]),
        ("application/json", b"\xef\xbb\xbf[1]", [1]),
        ("application/json", b"{broken", "{broken"),
        ("application/json", b"", ""),
        ("application/json", b"[" * 200_000, "[" * 200_000),
        ("text/plain", b"[1]", "[1]"),
        ("text/plain; charset=latin-1", b"\xe9", "\u00e9"),
        ("text/plain; charset=nonsense", "\u00e9".encode(), "\u00e9"),
        ("text/plain", b"a\xff", "a\ufffd"),
        ("text/plain; charset=\xe9", b"a", "a"),
    ],
)
def test_the_body_is_json_by_content_type_or_else_text(
    server: LoopbackServer, content_type: str, data: bytes, expected: object
) -> None:
    server.on("/", respond(body=data, headers={"Content-Type": content_type}))
    assert call({"url": server.url}).body == expected


@pytest.mark.parametrize(
    "charset",
    [
        *["rot13", "hex", "base64", "zip", "bz2", "uu", "quopri"],
        *["idna", "punycode", "undefined", "unicode_escape", "unicode-escape"],
        "raw_unicode_escape",
    ],
)
def test_a_charset_that_is_no_encoding_of_texts_counts_as_utf_8(
    server: LoopbackServer, charset: str
) -> None:
    data = "xn--a-ecp.ru \u00e9 \\q \\u00e9".encode() + b"\xff"
    headers = {"Content-Type": f"text/plain; charset={charset}"}
    server.on("/", respond(body=data, headers=headers))
    result = call({"url": server.url})
    assert (result.success, result.body) == (True, data.decode(errors="replace"))


# --- broken configuration -----------------------------------------------------------------------

URL = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("config", "error"),
    [
        ([], "config: expected a dict, got list"),
        ({}, "url: required; pass the address to request"),
        ({"url": 5}, "url: expected a string, got int"),
        (
            {"url": "/relative"},
            (
                "url: must begin with http:// or https:// and a host; "
                "a {param} for that part has to be the whole url"
            ),
        ),
        (
            {"url": "ftp://host/"},
            (
                "url: must begin with http:// or https:// and a host; "
                "a {param} for that part has to be the whole url"
            ),
        ),
        (
            {"url": f"http://u:{SECRET}@[::/"},
            "url: is not a valid address; check host, port and characters",
        ),
        ({"url": "{url}"}, "url: parameter 'url' must be a string; pass an address"),
        (
            {"url": URL, "method": "FETCH"},
            "method: expected one of GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS",
        ),
        ({"url": URL, "method": 5}, "method: expected a string, got int"),
        ({"url": URL, "timeout": 0}, "timeout: expected a number of seconds greater than 0"),
        ({"url": URL, "timeout": True}, "timeout: expected a number of seconds greater than 0"),
        ({"url": URL, "timeout": "5"}, "timeout: expected a number of seconds greater than 0"),
        (
            {"url": URL, "timeout": float("nan")},
            "timeout: expected a number of seconds greater than 0",
        ),
        ({"url": URL, "timeout": 10**400}, "timeout: too many seconds; lower it"),
        ({"url": URL, "stream_timeout": 10**400}, "stream_timeout: too many seconds; lower it"),
        (
            {"url": URL, "retry": {"max_total": 10**400}},
            "retry.max_total: too many seconds; lower it",
        ),
        (
            {"url": "http://127.0.0.1:99999/"},
            "url: the port is not between 1 and 65535; correct it",
        ),
        ({"url": "http://127.0.0.1:0/"}, "url: the port is not between 1 and 65535; correct it"),
        ({"url": URL, "mode": "socket"}, "mode: expected 'sync' or 'stream'; choose one of them"),
        ({"url": URL, "headers": ["a"]}, "headers: expected a dict, got list"),
        ({"url": URL, "headers": {5: "a"}}, "headers: every name must be a string; quote it"),
        (
            {"url": URL, "headers": {"a b": "c"}},
            "headers.a b: not a valid header name; use letters, digits and -",
        ),
        (
            {"url": URL, "headers": {"Content-Length": "2"}},
            "headers.Content-Length: is set automatically; remove it",
        ),
        (
            {"url": URL, "headers": {"a": "\ud800"}},
            "headers.a: contains text that is not valid Unicode; correct it",
        ),
        (
            {"url": URL, "auth": {"type": "basic"}},
            "auth.type: expected 'bearer' or 'api_key'; choose one of them",
        ),
        (
            {"url": URL, "auth": {"type": "bearer", "key": "x"}},
            (
                "auth.token: expected a string for type 'bearer'; "
                'write, for example, token: "${API_KEY}"'
            ),
        ),
        (
            {"url": URL, "auth": {"type": "api_key", "key": SECRET + "\n"}},
            "auth.key: contains a line break or control character; remove it",
        ),
        ({"url": URL, "retry": 3}, "retry: expected a dict, got int"),
        (
            {"url": URL, "retry": {"max_attempts": 0}},
            "retry.max_attempts: expected an integer of at least 1",
        ),
        ({"url": URL, "retry": {"max_attempts": 101}}, "retry.max_attempts: at most 100; lower it"),
        (
            {"url": URL, "retry": {"backoff": "random"}},
            "retry.backoff: expected 'exponential' or 'linear'; choose one of them",
        ),
        (
            {"url": URL, "retry": {"on_status": [429, 200]}},
            (
                "retry.on_status[1]: expected a status from 400 to 599; "
                "list the error statuses to retry"
            ),
        ),
        (
            {"url": URL, "follow_redirects": "yes"},
            "follow_redirects: expected true or false, got str",
        ),
        ({"url": URL, "max_body_bytes": -1}, "max_body_bytes: expected an integer of at least 1"),
        ({"url": URL, "env": {"A": 1}}, "env.A: expected a string; quote it"),
        (
            {"url": URL, "body": {"a": 1}},
            "body: not allowed with GET; use POST, PUT, PATCH or DELETE, or remove it",
        ),
        (
            {"url": URL, "method": "POST", "body": {"a": float("nan")}},
            (
                "body: contains a value that JSON cannot express (such as NaN, bytes, a set or a "
                "loop); convert it first"
            ),
        ),
        (
            {"url": URL, "method": "POST", "body": {"a": {1, 2}}},
            (
                "body: contains a value that JSON cannot express (such as NaN, bytes, a set or a "
                "loop); convert it first"
            ),
        ),
        (
            {"url": URL, "method": "POST", "body": "\ud800"},
            "body: contains text that is not valid Unicode; correct it",
        ),
    ],
)
def test_broken_configuration_is_a_failed_result_that_names_the_field(
    config: Any, error: str
) -> None:
    result = call(config)
    assert (result.success, result.status_code, result.attempts) == (False, 0, 0)
    assert result.error == error


@pytest.mark.parametrize(
    ("field", "template"), [("url", "http://h/{x}"), ("method", "P{x}"), ("body", "a {x}")]
)
def test_a_parameter_that_cannot_be_written_into_a_text_is_named(field: str, template: str) -> None:
    result = call({"url": URL, "method": "POST", field: template}, {"x": object()})
    assert result.error == (
        f"{field}: parameter 'x' (object) cannot be written as JSON inside a text; pass a string"
    )


@pytest.mark.parametrize("field", ["body", "headers.X-Deep"])
def test_a_template_that_is_nested_too_deeply_is_a_failed_result(field: str) -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    template = {"body": deep} if field == "body" else {"headers": {"X-Deep": deep}}
    result = call({"url": URL, "method": "POST", **template})
    assert result.error == f"{field}: is nested too deeply; flatten it"


def test_parameters_that_are_no_dict_are_a_failed_result() -> None:
    assert call({"url": URL}, ["a"]).error == "params: expected a dict, got list"


# --- the pool -----------------------------------------------------------------------------------


def test_connections_are_reused_and_closed(server: LoopbackServer) -> None:
    async def body() -> None:
        async with HttpClientPrimitive() as http:
            for _ in range(5):
                assert (await http.execute({"url": server.url}, {})).success
            assert (server.connections_made, server.open_connections) == (1, 1)
        server.wait_until(lambda s: s.open_connections == 0)
        assert (await http.execute({"url": server.url}, {})).success
        await http.close()
        await http.close()

    asyncio.run(body())
    assert server.connections_made == 2
    server.wait_until(lambda s: s.open_connections == 0)


def test_the_pool_is_the_one_of_the_documented_example() -> None:
    async def body() -> None:
        async with (
            httpx2.AsyncClient(
                limits=httpx2.Limits(max_keepalive_connections=10, max_connections=20),
                timeout=httpx2.Timeout(30.0),
            ) as documented,
            new_client() as made,
        ):
            assert limits_of(made) == limits_of(documented) == (10, 20)
            assert made.timeout == documented.timeout

    asyncio.run(body())


def limits_of(client: httpx2.AsyncClient) -> tuple[int, int]:
    """What the transport was given: the library keeps it, but has no public way to ask."""
    pool = client._transport._pool  # type: ignore[attr-defined]  # private, see above
    return pool._max_keepalive_connections, pool._max_connections


def test_at_most_twenty_connections_serve_any_number_of_calls(server: LoopbackServer) -> None:
    async def body() -> None:
        async with HttpClientPrimitive() as http:
            calls = (http.execute({"url": server.url}, {}) for _ in range(60))
            assert all(result.success for result in await asyncio.gather(*calls))

    asyncio.run(body())
    assert server.connections_made <= 20


def test_a_loop_that_ends_takes_its_connections_along(server: LoopbackServer) -> None:
    http = HttpClientPrimitive()
    for _ in range(2):
        assert asyncio.run(http.execute({"url": server.url}, {})).success
        server.wait_until(lambda s: s.open_connections == 0)
    assert server.connections_made == 2


def test_one_primitive_serves_loops_in_several_threads(server: LoopbackServer) -> None:
    http = HttpClientPrimitive()
    results: list[HttpResult] = []

    async def some() -> None:
        calls = (http.execute({"url": server.url}, {}) for _ in range(5))
        results.extend(await asyncio.gather(*calls))

    threads = [threading.Thread(target=lambda: asyncio.run(some())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [result.success for result in results] == [True] * 20
    server.wait_until(lambda s: s.open_connections == 0)


def test_cancellation_propagates_and_closes_the_connection(server: LoopbackServer) -> None:
    server.on("/hang", hang())

    async def body() -> None:
        async with HttpClientPrimitive() as http:
            task = asyncio.create_task(http.execute({"url": server.url + "/hang"}, {}))
            await asyncio.to_thread(server.wait_until, lambda s: len(s.requests) == 1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(server.wait_until, lambda s: s.open_connections == 0)
            assert (await http.execute({"url": server.url}, {})).success

    asyncio.run(body())


@pytest.mark.parametrize(
    ("proxy", "kind"),
    [
        (f"nonsense://user:{SECRET}@host", "ValueError"),
        (f"http://user:{SECRET}@[::", "InvalidURL"),
        (f"socks5://user:{SECRET}@host", "ImportError"),
    ],
)
def test_a_proxy_variable_that_cannot_be_used_is_a_failed_result(
    server: LoopbackServer, monkeypatch: pytest.MonkeyPatch, proxy: str, kind: str
) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    assert call({"url": server.url}).error == (
        f"the proxy of the environment cannot be used ({kind}); "
        "check HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY"
    )


def test_certificates_that_cannot_be_loaded_are_a_failed_result(
    server: LoopbackServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.pem"))
    assert call({"url": server.url}).error == (
        "certificates cannot be loaded (FileNotFoundError); check SSL_CERT_FILE and SSL_CERT_DIR"
    )


def test_a_proxy_of_the_environment_gets_the_whole_address(
    server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", server.url)
    server.on("http://api.invalid/path", OK)
    assert call({"url": "http://api.invalid/path?q={q}"}, {"q": "1"}).success
    assert server.requests[0].target == "http://api.invalid/path?q=1"


def test_importing_the_client_does_not_load_the_http_library() -> None:
    code = "import sys, lilux.primitives.http_client; sys.exit('httpx2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
