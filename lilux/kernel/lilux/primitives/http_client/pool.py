"""The pooled HTTP clients, one for each event loop."""

import asyncio
import functools
import os
import threading
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lilux.primitives.errors import ConfigurationError
from lilux.primitives.http_client.config import DEFAULT_TIMEOUT

if TYPE_CHECKING:
    import ssl

    import httpx2


@dataclass(frozen=True, kw_only=True)
class _Entry:
    client: "httpx2.AsyncClient"
    closer: AsyncGenerator[None, None]


class ClientPool:
    """Creates a client on first use in a loop and returns the same one afterwards.

    A connection belongs to the loop it was opened in, hence one client per loop. A client is
    closed by :meth:`close`, or at the latest when its loop shuts down its async generators (as
    ``asyncio.run`` does) or when the pool is garbage-collected.
    """

    def __init__(self) -> None:
        self._entries: dict[asyncio.AbstractEventLoop, _Entry] = {}
        self._lock = threading.Lock()

    async def client(self) -> "httpx2.AsyncClient":
        """The client of the running loop."""
        loop = asyncio.get_running_loop()
        entry = self._entries.get(loop)
        if entry is not None and not entry.client.is_closed:
            return entry.client
        client = new_client()
        entry = _Entry(client=client, closer=_close_with_loop(client))
        with self._lock:
            for other in [each for each in self._entries if each.is_closed()]:
                del self._entries[other]
            self._entries[loop] = entry
        await anext(entry.closer)
        return client

    async def close(self) -> None:
        """Close the client of this loop now, and soon those of other loops."""
        loop = asyncio.get_running_loop()
        with self._lock:
            own = self._entries.pop(loop, None)
            self._entries.clear()
        if own is not None:
            await own.closer.aclose()


async def _close_with_loop(client: "httpx2.AsyncClient") -> AsyncGenerator[None, None]:
    """Close the client when the loop closes its generators; suspended until then."""
    try:
        yield
    finally:
        await client.aclose()


def new_client() -> "httpx2.AsyncClient":
    """Create a client with the pool limits of the specification.

    It uses the proxy variables of the environment, but no credentials of a ``.netrc`` file. It
    stores no cookies, so that one call is not logged in by another. Raises
    :class:`ConfigurationError` if the environment's proxy or certificates are unusable.
    """
    from http import cookiejar

    import httpx2

    try:
        tls = _tls_context(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
        return httpx2.AsyncClient(
            verify=tls,
            limits=httpx2.Limits(max_keepalive_connections=10, max_connections=20),
            timeout=httpx2.Timeout(DEFAULT_TIMEOUT),
            headers={"User-Agent": "lilux"},
            cookies=cookiejar.CookieJar(cookiejar.DefaultCookiePolicy(allowed_domains=())),
            follow_redirects=False,
        )
    except OSError as error:
        raise ConfigurationError(
            f"certificates cannot be loaded ({type(error).__name__})",
            hint="check SSL_CERT_FILE and SSL_CERT_DIR",
        ) from None
    except (httpx2.InvalidURL, ValueError, ImportError) as error:
        raise ConfigurationError(
            f"the proxy of the environment cannot be used ({type(error).__name__})",
            hint="check HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY",
        ) from None


@functools.lru_cache(maxsize=4)
def _tls_context(cert_file: str | None, cert_dir: str | None) -> "ssl.SSLContext":  # noqa: ARG001 - the key
    """Load the certificates once per pair of variables, since that takes 30 ms."""
    import httpx2

    return httpx2.create_ssl_context()
