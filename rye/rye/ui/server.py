"""Serving the page: the address, the link, and the end."""

from __future__ import annotations

import asyncio
import errno
import secrets
import signal
import socket
from collections.abc import Callable
from typing import NamedTuple

from rye.context import Context
from rye.mcp.http_connections import Connections, Limits
from rye.mcp.http_server import LimitedServer
from rye.mcp.process import StopSignals
from rye.ui.access import Access
from rye.ui.app import create_app
from rye.ui.guard import ENTER_PATH
from rye.ui.site import Site

_LIMITS = Limits(waiting=64, clients=64)
"""One person with a few windows."""
_MAX_ATTEMPTS = 50
_NO_IPV6 = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)


class Address(NamedTuple):
    """A port of the loopback interface, and the name under which the browser knows it."""

    sockets: tuple[socket.socket, ...]
    """Both addresses of the interface, or one if this machine has no IPv6."""
    host: str
    """With the port, as in the ``Host`` header."""

    @property
    def port(self) -> int:
        """The port."""
        return _port_of(self.sockets[0])

    def close(self) -> None:
        """Give the port back."""
        for one in self.sockets:
            one.close()

    @property
    def url(self) -> str:
        """The address of the first page."""
        return f"http://{self.host}/"


class Opened(NamedTuple):
    """A page that can be opened."""

    url: str
    new_link: Callable[[], str]
    """Returns a link that works once."""


def open_address(port: int = 0, *, plain_name: bool = False) -> Address:
    """Bind a free port of the loopback interface. Raises ``OSError``.

    Browsers send the cookies of a host to all of its ports, so another user's server on this
    machine would get ours. A name below ``localhost`` that nobody can guess gets its own cookies;
    browsers look such names up without asking anybody. With ``plain_name`` it is ``localhost``.
    """
    sockets = _bind(port)
    name = "localhost" if plain_name else f"rye-{secrets.token_hex(8)}.localhost"
    return Address(sockets, f"{name}:{_port_of(sockets[0])}")


def _bind(port: int) -> tuple[socket.socket, ...]:
    """Bind a port of both loopback addresses.

    Browsers try ``::1`` first. Another user who listened there would be sent the link and the
    cookie.
    """
    for left in reversed(range(_MAX_ATTEMPTS)):
        first = socket.create_server(("127.0.0.1", port))
        try:
            return first, socket.create_server(("::1", _port_of(first)), family=socket.AF_INET6)
        except OSError as error:
            if error.errno in _NO_IPV6:
                break
            first.close()
            # Somebody listens there already. A port that was asked for cannot be another one.
            if error.errno != errno.EADDRINUSE or port or not left:
                raise
    return (first,)


def _port_of(bound: socket.socket) -> int:
    port: int = bound.getsockname()[1]
    return port


async def serve(
    context: Context, address: Address, on_ready: Callable[[Opened], object], *, may_run: bool
) -> signal.Signals | None:
    """Serve until a stop signal, and return it. ``on_ready`` is called when a browser can connect.

    ``may_run`` lets the page act: run tools, cancel calls, answer questions.
    """
    site = Site(context, may_run=may_run)
    access = Access(address.port)
    app = create_app(site, access, address.host)

    def new_link() -> str:
        return f"http://{address.host}{ENTER_PATH}?token={access.new_link()}"

    server = LimitedServer(
        app, Connections(_LIMITS), lambda: on_ready(Opened(address.url, new_link))
    )

    def stop() -> None:
        site.stopping.set()
        server.should_exit = True

    with StopSignals(stop) as signals:
        async with site.running():
            await server.serve(sockets=list(address.sockets))
    return signals.received


def run_server(
    context: Context, address: Address, on_ready: Callable[[Opened], object], *, may_run: bool
) -> signal.Signals | None:
    """Call :func:`serve` in a new event loop."""
    return asyncio.run(serve(context, address, on_ready, may_run=may_run))
