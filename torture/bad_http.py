"""HTTP servers that hang, reset, truncate, lie, never end, or lead away."""

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

from torture.leftovers import Before
from torture.scenario import Outcome

SECRET = "S3CRET-of-the-header"  # noqa: S105 - marked, to be looked for
TIMEOUT_SECONDS = 0.5
# For those that answer at once; it only stops a call that would never end.
PATIENCE_SECONDS = 30
AT_ONCE = 3


class Bad(NamedTuple):
    """A server that does this, and how the error of a plain call to it begins."""

    name: str
    answer: Answer
    told: str


def _endless(first: bytes, piece: bytes) -> Answer:
    def answer(connection: Connection) -> bool:
        connection.send(first)
        while True:
            connection.send(piece)

    return answer


def _length(claim: str, body: bytes) -> Answer:
    return raw(head(200, {"Content-Length": claim}) + body)


_TIMED_OUT = f"timed out after {TIMEOUT_SECONDS:g} seconds: "
_BROKEN = "connection broke: "
_TOO_LARGE = "response body is larger than max_body_bytes (10485760); "
_REFUSED = "redirect refused: "
_OK = b"HTTP/1.1 200 OK\r\n"
_BOMB = zlib.compress(bytes(64 * 1024 * 1024), wbits=31)

BAD = (
    Bad("hangs", hang(), _TIMED_OUT),
    Bad("hangs in its headers", hang(_OK + b"A: "), _TIMED_OUT),
    Bad("hangs in its body", hang(head(200, {"Content-Length": "9"}) + b"half"), _TIMED_OUT),
    Bad("drips its headers", drip(_OK, b"A: b\r\n", every=0.02), _TIMED_OUT),
    Bad("drips its body", drip(head(200, {"Content-Length": "99"}), b"x", every=0.1), _TIMED_OUT),
    Bad("says 100 for ever", drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n", every=0.02), _TIMED_OUT),
    Bad("closes without a word", drop(), _BROKEN),
    Bad("resets", reset(), _BROKEN),
    Bad("truncates", _length("100", b"short"), _BROKEN),
    Bad("truncates a chunk", chunked([b"abc"], then=drop()), _BROKEN),
    Bad("resets in its body", chunked([b"abc"], then=reset()), _BROKEN),
    Bad("claims a negative length", _length("-5", b"x"), _BROKEN),
    Bad("claims a length that is no number", _length("many", b"x"), _BROKEN),
    Bad(
        "claims two lengths",
        raw(_OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxy"),
        _BROKEN,
    ),
    Bad("claims an exabyte", _length("1" + "0" * 18, b"x"), _BROKEN),
    Bad("sends endless headers", _endless(_OK, b"A: b\r\n" * 1000), _BROKEN),
    Bad("sends one endless header", _endless(_OK + b"A: ", b"b" * 65536), _BROKEN),
    Bad("sends an endless body", _endless(head(200, {}), b"x" * 65536), _TOO_LARGE),
    Bad("sends a bomb", respond(body=_BOMB, headers={"Content-Encoding": "gzip"}), _TOO_LARGE),
    Bad("speaks another protocol", raw(b"SSH-2.0-server\r\n"), _BROKEN),
    Bad("leads to a file", redirect("file:///etc/passwd"), _REFUSED),
    Bad("leads to a script", redirect("javascript:alert(1)"), _REFUSED),
    Bad("leads in circles", redirect("?"), "redirected more than 10 times: "),
)


def answered(times: int, _folder: Path) -> Outcome:
    """Every kind of bad server, plain and as a stream, several calls at once; then a good one."""
    before = Before()
    lost: list[str] = []
    tried = 0
    with LoopbackServer() as server, LoopbackServer() as elsewhere:
        server.on("/good", respond(json={"ok": True}))
        elsewhere.on("/", respond(json={"ok": True}))
        for _ in range(times):
            lost += asyncio.run(_ask_all(server))
            tried += 2 * AT_ONCE * len(BAD)
        server.on("/leads-elsewhere", redirect(f"{elsewhere.url}/"))
        lost += asyncio.run(_ask_with_credentials(server, elsewhere))
        tried += 1
    return Outcome(tried=tried, lost=(*lost, *before.left()))


async def _ask_all(server: LoopbackServer) -> list[str]:
    """Those that make a caller wait all at once, the others one after the other."""
    slow = [bad for bad in BAD if bad.told == _TIMED_OUT]
    wrong = await asyncio.gather(*(_ask(server, bad, TIMEOUT_SECONDS) for bad in slow))
    wrong += [await _ask(server, bad, PATIENCE_SECONDS) for bad in BAD if bad not in slow]
    return [sentence for sentences in wrong for sentence in sentences]


async def _ask(server: LoopbackServer, bad: Bad, seconds: float) -> list[str]:
    path = f"/bad/{BAD.index(bad)}"
    server.on(path, bad.answer)
    wrong: list[str] = []
    modes = ["sync", "stream"] * AT_ONCE
    async with HttpClientPrimitive(environ={}) as http, asyncio.timeout(4 * PATIENCE_SECONDS):
        calls = [_one(http, server.url + path, mode, seconds) for mode in modes]
        results = await asyncio.gather(*calls)
        for mode, result in zip(modes, results, strict=True):
            error = result.error or ""
            expected = error.startswith(bad.told) or (mode == "stream" and error)
            if result.success or not expected:
                wrong.append(f"in mode {mode}: {error or 'success'}")
            if SECRET in repr(result):
                wrong.append("a credential is in the result")
        good = await http.execute({"url": f"{server.url}/good"})
        if good.body != {"ok": True}:
            wrong.append(f"a good answer afterwards: {good.error}")
    return [f"a server that {bad.name}: {sentence}" for sentence in wrong]


async def _one(
    http: HttpClientPrimitive, url: str, mode: str, seconds: float = PATIENCE_SECONDS
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


async def _ask_with_credentials(server: LoopbackServer, elsewhere: LoopbackServer) -> list[str]:
    async with HttpClientPrimitive(environ={}) as http:
        result = await _one(http, f"{server.url}/leads-elsewhere", "sync")
    if not result.success:
        return [f"a redirect to another host was not followed: {result.error}"]
    if any(SECRET in repr(request) for request in elsewhere.requests):
        return ["a credential went to another host"]
    return []
