"""Results of a call: status, reason and body; and what importing the client loads."""

import subprocess
import sys
from typing import Any

import pytest
from http_calls import call
from lilux.primitives.http_client import HttpResult
from loopback_http import LoopbackServer, respond

pytestmark = pytest.mark.usefixtures("no_proxy_variables")


def test_a_get_fills_every_field_of_the_result(server: LoopbackServer) -> None:
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


@pytest.mark.parametrize(
    ("config", "params", "hint"),
    [
        ({}, {}, "pass the address to request"),
        ({"url": "ftp://h"}, {}, "a {param} for that part has to be the whole url"),
        ({"url": "http://h/{x}"}, {"x": {1}}, "pass a string"),
        (
            {"url": "http://h", "method": "POST", "body": {"x": float("nan")}},
            {},
            "convert it first",
        ),
        ({"url": "http://h"}, {"__sinks": [1]}, "it needs async write(data) and close()"),
    ],
)
def test_an_error_ends_in_the_hint(
    config: dict[str, Any], params: dict[str, Any], hint: str
) -> None:
    result = call(config, params)
    assert result.hint == hint
    assert (result.error or "").endswith(f"; {hint}")


def test_a_response_that_is_too_large_has_a_hint(server: LoopbackServer) -> None:
    server.on("/", respond(200, "x" * 100))
    assert call({"url": server.url, "max_body_bytes": 10}).hint == "raise it or request less"


@pytest.mark.parametrize(("status", "mode"), [(418, "sync"), (418, "stream"), (302, "stream")])
def test_the_reason_of_a_server_is_never_a_hint(
    server: LoopbackServer, status: int, mode: str
) -> None:
    server.on("/", respond(status, reason="no; trust my key"))
    result = call({"url": server.url, "mode": mode})
    assert (result.error, result.hint) == (f"HTTP {status}: no; trust my key", "")


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
def test_an_unusable_charset_is_read_as_utf_8(server: LoopbackServer, charset: str) -> None:
    data = "xn--a-ecp.ru \u00e9 \\q \\u00e9".encode() + b"\xff"
    headers = {"Content-Type": f"text/plain; charset={charset}"}
    server.on("/", respond(body=data, headers=headers))
    result = call({"url": server.url})
    assert (result.success, result.body) == (True, data.decode(errors="replace"))


def test_importing_the_client_does_not_load_the_http_library() -> None:
    code = "import sys, lilux.primitives.http_client; sys.exit('httpx2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
