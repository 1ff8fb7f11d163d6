"""HTTP servers that hang, reset, truncate, send wrong lengths, never end, or redirect."""

from __future__ import annotations

import asyncio
import zlib
from pathlib import Path
from typing import Any, NamedTuple

from lilux.primitives.http_client import HttpClientPrimitive, HttpResult
from loopback_http import (
    Answer,
    Connection,
    LoopbackServer,
    chunked,
    drip,
    drop,
    hang,
    head,
    raw,
    redirect,
    reset,
    respond,
)

from torture.leftovers import Baseline
from torture.scenario import Outcome

SECRET = "S3CRET-of-the-header"  # noqa: S105 - a marker to search for
TIMEOUT_SECONDS = 0.5
# For servers that answer at once; it only stops a call that would never end.
LONG_TIMEOUT_SECONDS = 30
AT_ONCE = 3


class BadServer(NamedTuple):
    """A misbehaving server, and the start of the error of a plain call to it."""

    name: str
    answer: Answer
    error_start: str


def _endless(first: bytes, piece: bytes) -> Answer:
    def answer(connection: Connection) -> bool:
        connection.send(first)
        while True:
            connection.send(piece)

    return answer


def _length(length: str, body: bytes) -> Answer:
    return raw(head(200, {"Content-Length": length}) + body)


_TIMED_OUT = f"timed out after {TIMEOUT_SECONDS:g} seconds: "
_BROKEN = "connection broke: "
_TOO_LARGE = "response body is larger than max_body_bytes (10485760); "
_REFUSED = "redirect refused: "
_OK = b"HTTP/1.1 200 OK\r\n"
_BOMB = zlib.compress(bytes(64 * 1024 * 1024), wbits=31)

BAD_SERVERS = (
    BadServer("hangs", hang(), _TIMED_OUT),
    BadServer("hangs in its headers", hang(_OK + b"A: "), _TIMED_OUT),
    BadServer("hangs in its body", hang(head(200, {"Content-Length": "9"}) + b"half"), _TIMED_OUT),
    BadServer("drips its headers", drip(_OK, b"A: b\r\n", every=0.02), _TIMED_OUT),
    BadServer(
        "drips its body", drip(head(200, {"Content-Length": "99"}), b"x", every=0.1), _TIMED_OUT
    ),
    BadServer(
        "sends 100 forever", drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n", every=0.02), _TIMED_OUT
    ),
    BadServer("closes without an answer", drop(), _BROKEN),
    BadServer("resets", reset(), _BROKEN),
    BadServer("truncates", _length("100", b"short"), _BROKEN),
    BadServer("truncates a chunk", chunked([b"abc"], then=drop()), _BROKEN),
    BadServer("resets in its body", chunked([b"abc"], then=reset()), _BROKEN),
    BadServer("claims a negative length", _length("-5", b"x"), _BROKEN),
    BadServer("claims a length that is not a number", _length("many", b"x"), _BROKEN),
    BadServer(
        "claims two lengths",
        raw(_OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxy"),
        _BROKEN,
    ),
    BadServer("claims an exabyte", _length("1" + "0" * 18, b"x"), _BROKEN),
    BadServer("sends endless headers", _endless(_OK, b"A: b\r\n" * 1000), _BROKEN),
    BadServer("sends one endless header", _endless(_OK + b"A: ", b"b" * 65536), _BROKEN),
    BadServer("sends an endless body", _endless(head(200, {}), b"x" * 65536), _TOO_LARGE),
    BadServer(
        "sends a compression bomb",
        respond(body=_BOMB, headers={"Content-Encoding": "gzip"}),
        _TOO_LARGE,
    ),
    BadServer("speaks another protocol", raw(b"SSH-2.0-server\r\n"), _BROKEN),
    BadServer("redirects to a file", redirect("file:///etc/passwd"), _REFUSED),
    BadServer("redirects to a script", redirect("javascript:alert(1)"), _REFUSED),
    BadServer("redirects in circles", redirect("?"), "redirected more than 10 times: "),
)


def answered(times: int, _folder: Path) -> Outcome:
    """Call every bad server, plain and as a stream, several times at once; then a good one."""
    before = Baseline()
    failures: list[str] = []
    tried = 0
    with LoopbackServer() as server, LoopbackServer() as other:
        server.on("/good", respond(json={"ok": True}))
        other.on("/", respond(json={"ok": True}))
        for _ in range(times):
            failures += asyncio.run(_ask_all(server))
            tried += 2 * AT_ONCE * len(BAD_SERVERS)
        server.on("/redirect", redirect(f"{other.url}/"))
        failures += asyncio.run(_ask_with_credentials(server, other))
        tried += 1
    return Outcome(tried=tried, failures=(*failures, *before.leftovers()))


async def _ask_all(server: LoopbackServer) -> list[str]:
    """Call the servers that make a caller wait all at once, the others one after the other."""
    slow = [bad for bad in BAD_SERVERS if bad.error_start == _TIMED_OUT]
    failures = await asyncio.gather(*(_ask(server, bad, TIMEOUT_SECONDS) for bad in slow))
    failures += [
        await _ask(server, bad, LONG_TIMEOUT_SECONDS) for bad in BAD_SERVERS if bad not in slow
    ]
    return [sentence for sentences in failures for sentence in sentences]


async def _ask(server: LoopbackServer, bad: BadServer, seconds: float) -> list[str]:
    path = f"/bad/{BAD_SERVERS.index(bad)}"
    server.on(path, bad.answer)
    failures: list[str] = []
    modes = ["sync", "stream"] * AT_ONCE
    async with HttpClientPrimitive(environ={}) as http, asyncio.timeout(4 * LONG_TIMEOUT_SECONDS):
        calls = [_call(http, server.url + path, mode, seconds) for mode in modes]
        results = await asyncio.gather(*calls)
        for mode, result in zip(modes, results, strict=True):
            error = result.error or ""
            as_expected = error.startswith(bad.error_start) or (mode == "stream" and error)
            if result.success or not as_expected:
                failures.append(f"in mode {mode}: {error or 'success'}")
            if SECRET in repr(result):
                failures.append("a credential is in the result")
        good = await http.execute({"url": f"{server.url}/good"})
        if good.body != {"ok": True}:
            failures.append(f"a good server afterwards: {good.error}")
    return [f"a server that {bad.name}: {sentence}" for sentence in failures]


async def _call(
    http: HttpClientPrimitive, url: str, mode: str, seconds: float = LONG_TIMEOUT_SECONDS
) -> HttpResult:
    config: dict[str, Any] = {
        "url": url,
        "mode": mode,
        "headers": {"Authorization": f"Bearer {SECRET}"},
        "timeout": seconds,
        "stream_timeout": 2 * seconds,
        "max_event_bytes": 1024 * 1024,
        "follow_redirects": True,
    }
    return await http.execute(config)


async def _ask_with_credentials(server: LoopbackServer, other: LoopbackServer) -> list[str]:
    async with HttpClientPrimitive(environ={}) as http:
        result = await _call(http, f"{server.url}/redirect", "sync")
    if not result.success:
        return [f"a redirect to another host was not followed: {result.error}"]
    if any(SECRET in repr(request) for request in other.requests):
        return ["a credential was sent to another host"]
    return []
