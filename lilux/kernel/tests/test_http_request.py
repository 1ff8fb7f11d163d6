"""Requests: templates, bodies, credentials and errors."""

import asyncio
import base64
import logging
from pathlib import Path
from typing import Any

import h11
import httpx2
import pytest
from http_calls import call
from lilux.primitives.http_client import HttpClientPrimitive, HttpResult
from lilux.primitives.http_client.config import parse_config
from lilux.primitives.http_client.exchange import RequestFailedError, foreign_errors
from lilux.primitives.http_client.request import prepare_request
from loopback_http import (
    LoopbackServer,
    drop,
    hang,
    head,
    raw,
    redirect,
    refused_port,
    reset,
    respond,
)

SECRET = "sk-marked-0123456789"
OK = respond(json={"ok": True})


pytestmark = pytest.mark.usefixtures("no_proxy_variables")


# --- templates ----------------------------------------------------------------------------------


def test_parameters_in_a_url_cannot_change_its_structure(server: LoopbackServer) -> None:
    path = "/users/a%2Fb%3Fx%3D1%23f%26%40..%20%C3%A9/items"
    server.on(path, OK)
    config = {"url": server.url + "/users/{name}/items?q={q}&n={n}&flag={flag}"}
    params = {"name": "a/b?x=1#f&@.. \u00e9", "q": "1&admin=true", "n": 5, "flag": True}
    assert call(config, params).success
    assert server.requests[0].target == path + "?q=1%26admin%3Dtrue&n=5&flag=true"


@pytest.mark.parametrize("value", ["..", "."])
def test_a_parameter_cannot_climb_the_path(server: LoopbackServer, value: str) -> None:
    result = call({"url": server.url + "/users/{name}/items"}, {"name": value})
    assert result.error == (
        "url: a parameter creates a path segment '.' or '..', which would change the path; "
        "pass a plain name"
    )
    assert (result.status_code, result.attempts, server.requests) == (0, 0, [])
    assert call({"url": server.url + "/?q={name}"}, {"name": value}).success


def test_a_parameter_cannot_move_the_request_to_another_host(server: LoopbackServer) -> None:
    result = call({"url": "http://api.invalid{path}"}, {"path": f"@127.0.0.1:{server.port}/"})
    assert not result.success
    assert server.requests == []


def test_a_url_that_is_one_placeholder_is_used_unchanged(server: LoopbackServer) -> None:
    assert call({"url": "{url}"}, {"url": server.url + "/?a=1&b=2"}).success
    assert server.requests[0].target == "/?a=1&b=2"


def test_the_environment_may_give_the_base_of_a_url(server: LoopbackServer) -> None:
    assert call({"url": "${BASE}/?q={q}"}, {"q": "${BASE}"}, environ={"BASE": server.url}).success
    assert server.requests[0].target == "/?q=%24%7BBASE%7D"


def test_body_values_keep_their_type_and_are_never_templates(
    server: LoopbackServer,
) -> None:
    config = {
        "method": "POST",
        "url": server.url,
        "body": {"n": "{n}", "tags": ["{tags}", "x{n}"], "text": "{text}", "no": "{unknown}"},
    }
    params = {"n": 5, "tags": ["a", None], "text": "${SECRET} {n}"}
    assert call(config, params, environ={"SECRET": SECRET}).success
    assert server.requests[0].body == (
        b'{"n":5,"tags":[["a",null],"x5"],"text":"${SECRET} {n}","no":"{unknown}"}'
    )
    assert server.requests[0].headers["content-type"] == "application/json"


def test_headers_are_rendered_and_none_omits_a_header(server: LoopbackServer) -> None:
    headers = {
        "X-N": "{n}",
        "X-Text": "v-{n}-${MODE:-dev}",
        "X-None": "{none}",
        "X-Umlaut": "\u00fc",
    }
    assert call({"url": server.url, "headers": headers}, {"n": 5, "none": None}).success
    seen = server.requests[0].headers
    assert (seen["x-n"], seen["x-text"], "x-none" in seen) == ("5", "v-5-dev", False)
    assert seen["x-umlaut"].encode("latin-1") == "\u00fc".encode()


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\rb", "a\0b"])
def test_a_parameter_cannot_split_a_header(server: LoopbackServer, value: str) -> None:
    result = call({"url": server.url, "headers": {"X-Name": "{name}"}}, {"name": value})
    assert result.error == ("headers.X-Name: contains a line break or control character; remove it")
    assert server.requests == []


def test_the_config_may_contain_an_environment(server: LoopbackServer) -> None:
    config = {"url": server.url, "headers": {"A": "${A:-none}", "B": "${B:-none}"}}
    environ = {"A": "process", "B": "process"}
    assert call({**config, "env": {"B": "own"}}, environ=environ).success
    assert call({**config, "env": {"B": "own"}, "env_mode": "exact"}, environ=environ).success
    seen = [(request.headers["a"], request.headers["b"]) for request in server.requests]
    assert seen == [("process", "own"), ("none", "own")]


def test_the_process_environment_is_the_default(
    server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body() -> HttpResult:
        async with HttpClientPrimitive() as http:
            monkeypatch.setenv("LILUX_TEST_KEY", SECRET)
            auth = {"type": "api_key", "key": "${LILUX_TEST_KEY}"}
            return await http.execute({"url": server.url, "auth": auth}, {})

    assert asyncio.run(body()).success
    assert server.requests[0].headers["x-api-key"] == SECRET


# --- bodies -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "params", "content_type", "sent", "sent_type"),
    [
        ({"a": "\u00e9"}, {}, None, '{"a":"\u00e9"}'.encode(), "application/json"),
        ([1, 2], {}, None, b"[1,2]", "application/json"),
        (5, {}, None, b"5", "application/json"),
        (False, {}, None, b"false", "application/json"),
        ("a={a}", {"a": "1"}, None, b"a=1", "text/plain; charset=utf-8"),
        (
            "a=1",
            {},
            "application/x-www-form-urlencoded",
            b"a=1",
            "application/x-www-form-urlencoded",
        ),
        ('{"a": 1}', {}, "application/json", b'{"a": 1}', "application/json"),
        ("{b}", {"b": {"a": 1}}, None, b'{"a":1}', "application/json"),
        (
            "{b}",
            {"b": '{"admin": 1}'},
            "application/json",
            b'"{\\"admin\\": 1}"',
            "application/json",
        ),
        ("{b}", {"b": b"\x00\xff"}, None, b"\x00\xff", "application/octet-stream"),
        ({"a": 1}, {}, "application/vnd.x+json", b'{"a":1}', "application/vnd.x+json"),
    ],
)
def test_how_a_body_is_sent(
    server: LoopbackServer,
    *,
    body: object,
    params: dict[str, Any],
    content_type: str | None,
    sent: bytes,
    sent_type: str,
) -> None:
    headers = {} if content_type is None else {"content-type": content_type}
    config = {"method": "post", "url": server.url, "body": body, "headers": headers}
    assert call(config, params).success
    request = server.requests[0]
    assert (request.method, request.body) == ("POST", sent)
    assert request.headers["content-type"] == sent_type


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_other_methods_send_a_body_too(server: LoopbackServer, method: str) -> None:
    assert call({"method": method, "url": server.url, "body": {}}).success
    assert (server.requests[0].method, server.requests[0].body) == (method, b"{}")


# --- credentials --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("auth", "header", "value"),
    [
        ({"type": "bearer", "token": "${API_KEY}"}, "authorization", f"Bearer {SECRET}"),
        ({"type": "bearer", "token": "${NO_KEY:-guest}"}, "authorization", "Bearer guest"),
        ({"type": "api_key", "key": "${API_KEY}"}, "x-api-key", SECRET),
        ({"type": "api_key", "key": "${API_KEY}", "header": "X-Token"}, "x-token", SECRET),
    ],
)
def test_credentials_are_sent_in_their_header(
    server: LoopbackServer, auth: dict[str, str], header: str, value: str
) -> None:
    config = {"url": server.url, "auth": auth, "headers": {header.upper(): "overridden"}}
    assert call(config, environ={"API_KEY": SECRET}).success
    assert server.requests[0].headers[header] == value


@pytest.mark.parametrize("environ", [{}, {"API_KEY": ""}, {"API_KEY": "  "}])
def test_a_missing_credential_names_its_variable_and_sends_nothing(
    server: LoopbackServer, environ: dict[str, str]
) -> None:
    auth = {"type": "bearer", "token": "${API_KEY}"}
    result = call({"url": server.url, "auth": auth}, environ=environ)
    assert result.error == (
        "auth.token: the environment variable API_KEY is not set or empty; "
        "set it or write a default"
    )
    assert server.requests == []
    result = call({"url": server.url, "auth": {"type": "bearer", "token": ""}})
    assert result.error == "auth.token: is empty; pass a credential"


def test_user_and_password_of_a_url_become_basic_auth(server: LoopbackServer) -> None:
    assert call({"url": f"http://us%40er:{SECRET}@127.0.0.1:{server.port}/"}).success
    expected = base64.b64encode(f"us@er:{SECRET}".encode()).decode()
    assert server.requests[0].headers["authorization"] == f"Basic {expected}"


def test_a_netrc_file_adds_no_credentials(
    server: LoopbackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / ".netrc"
    netrc.write_text(f"machine 127.0.0.1 login me password {SECRET}\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(netrc))
    assert call({"url": server.url}).success
    assert "authorization" not in server.requests[0].headers


def secret_everywhere(base: str) -> dict[str, Any]:
    authority = base.removeprefix("http://")
    return {
        "method": "POST",
        "url": f"http://user:{SECRET}@{authority}/bot${{API_KEY}}/send?api_key=${{API_KEY}}",
        "headers": {"Cookie": f"session={SECRET}"},
        "auth": {"type": "bearer", "token": "${API_KEY}"},
        "body": {"key": "${API_KEY}"},
        "timeout": 0.5,
    }


@pytest.mark.parametrize(
    "answer",
    [
        drop(),
        reset(),
        hang(),
        raw(f"HTTP/1.1 bad {SECRET}\r\n\r\n".encode()),
        respond(200, b"not gzip at all", headers={"Content-Encoding": "gzip"}),
        redirect(f"ftp://{SECRET}/"),
        redirect("http://other.invalid/", 307),
        raw(head(200, {"Content-Length": "10"}) + b"short"),
    ],
)
def test_no_error_log_or_repr_contains_a_credential(
    server: LoopbackServer, caplog: pytest.LogCaptureFixture, answer: Any
) -> None:
    caplog.set_level(logging.DEBUG)
    server.on(f"/bot{SECRET}/send", answer)
    config = {**secret_everywhere(server.url), "follow_redirects": True}
    result = call(config, environ={"API_KEY": SECRET})
    assert len(server.requests) == 1
    assert not result.success
    assert result.error
    assert SECRET not in result.error
    ours = [record.getMessage() for record in caplog.records if record.levelno >= logging.INFO]
    assert not [message for message in ours if SECRET in message]


def test_a_server_that_echoes_the_credential_in_its_reason_is_scrubbed(
    server: LoopbackServer,
) -> None:
    server.on("/", respond(401, reason=f"bad key {SECRET}"))
    auth = {"type": "bearer", "token": SECRET}
    assert call({"url": server.url, "auth": auth}).error == "HTTP 401: bad key ***"


@pytest.mark.parametrize("shown", range(1, len(SECRET)))
def test_a_credential_at_the_end_of_a_shortened_reason_is_scrubbed(
    server: LoopbackServer, shown: int
) -> None:
    before = "x" * (200 - shown)
    server.on("/", respond(401, reason=before + SECRET))
    auth = {"type": "bearer", "token": SECRET}
    error = call({"url": server.url, "auth": auth}).error
    assert error == "HTTP 401: " + f"{before}***"[:200]


def test_a_credential_that_is_not_ascii_is_scrubbed_from_a_reason(server: LoopbackServer) -> None:
    secret = "p\u00e4ss-wort"
    server.on("/", raw(f"HTTP/1.1 401 bad {secret}\r\nContent-Length: 0\r\n\r\n".encode()))
    auth = {"type": "bearer", "token": secret}
    assert call({"url": server.url, "auth": auth}).error == "HTTP 401: bad ***"


@pytest.mark.parametrize("kind", [httpx2.ConnectError, httpx2.DecodingError, httpx2.ReadError])
def test_a_credential_at_the_end_of_a_shortened_error_is_scrubbed(
    kind: type[httpx2.RequestError],
) -> None:
    config = {"url": "http://h/", "auth": {"type": "bearer", "token": SECRET}}
    request = prepare_request(parse_config(config, {}), {}, {})
    with pytest.raises(RequestFailedError) as caught, foreign_errors(request, limit="too late"):
        raise kind("x" * 295 + SECRET)
    assert f": {'x' * 295}***; check the " in str(caught.value)


def test_no_error_of_a_refused_connection_contains_a_credential() -> None:
    with refused_port() as port:
        result = call(secret_everywhere(f"http://127.0.0.1:{port}"), environ={"API_KEY": SECRET})
    assert result.error == (
        f"could not connect: POST http://127.0.0.1:{port}: All connection attempts failed; "
        "check the address and that the server is up"
    )


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            httpx2.LocalProtocolError(f"Illegal header value b'{SECRET}'"),
            "could not be sent: GET http://h; check the headers and the url",
        ),
        (
            h11.LocalProtocolError(f"from below: {SECRET}"),
            (
                "request failed: GET http://h: LocalProtocolError; "
                "check the url, and that the client was not closed during the request"
            ),
        ),
        (
            RuntimeError("Cannot send a request, as the client has been closed."),
            (
                "request failed: GET http://h: RuntimeError; "
                "check the url, and that the client was not closed during the request"
            ),
        ),
    ],
)
def test_every_foreign_error_is_translated(error: Exception, message: str) -> None:
    request = prepare_request(parse_config({"url": "http://h/x?y=1"}, {}), {}, {})
    with pytest.raises(RequestFailedError) as caught, foreign_errors(request, limit="too late"):
        raise error
    assert (str(caught.value), caught.value.retryable) == (message, False)
