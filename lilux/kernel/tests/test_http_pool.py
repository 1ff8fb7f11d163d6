"""Pooled connections: reuse, limits, loops and threads, proxies and certificates."""

import asyncio
import threading
from pathlib import Path

import httpx2
import pytest
from http_calls import call
from lilux.primitives.http_client import HttpClientPrimitive, HttpResult
from lilux.primitives.http_client.pool import new_client
from loopback_http import LoopbackServer, hang, respond

SECRET = "sk-marked-0123456789"
OK = respond(json={"ok": True})

pytestmark = pytest.mark.usefixtures("no_proxy_variables")


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


def test_the_pool_has_the_documented_limits() -> None:
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
    """Return the limits of the transport, which the library does not expose."""
    pool = client._transport._pool  # type: ignore[attr-defined]  # private, see above
    return pool._max_keepalive_connections, pool._max_connections


def test_at_most_twenty_connections_serve_any_number_of_calls(server: LoopbackServer) -> None:
    async def body() -> None:
        async with HttpClientPrimitive() as http:
            calls = (http.execute({"url": server.url}, {}) for _ in range(60))
            assert all(result.success for result in await asyncio.gather(*calls))

    asyncio.run(body())
    assert server.connections_made <= 20


def test_connections_are_closed_when_their_loop_ends(server: LoopbackServer) -> None:
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
def test_an_unusable_proxy_variable_is_a_failed_result(
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
