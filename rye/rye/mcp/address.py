"""Where the server listens over HTTP, and what a client has to show there."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from rye.context import Context
from rye.errors import ParameterError

TOKEN_VARIABLE = "RYE_MCP_TOKEN"  # noqa: S105 - a name, not a token
MCP_PATH = "/mcp"

_LEAST_TOKEN = 16
_MAX_TOKEN = 4096
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


class Address(NamedTuple):
    """A host and a port, 0 being any that is free."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Listener(NamedTuple):
    """A socket that is bound, and what it is bound to."""

    socket: socket.socket
    address: Address
    is_loopback: bool

    @property
    def url(self) -> str:
        """What a client on this machine uses."""
        return f"http://{self.address}{MCP_PATH}"

    @property
    def hosts(self) -> frozenset[str]:
        """The ``Host`` headers of clients that mean this server, in lower case."""
        names = {str(self.address), *(f"{name}:{self.address.port}" for name in _LOOPBACK_NAMES)}
        if self.address.port == 80:
            names |= {name.removesuffix(":80") for name in names}
        return frozenset(name.lower() for name in names)


def parse_address(text: str) -> Address:
    """``HOST:PORT``, ``[IPv6]:PORT`` or ``PORT``. Raises :class:`ParameterError`."""
    host, colon, port = text.rpartition(":")
    if not colon:
        host = "127.0.0.1"
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        host = ""
    if not host or not port.isascii() or not port.isdecimal() or int(port) > 65535:
        raise ParameterError(
            "wrong --http",
            [f"expected HOST:PORT, got {text!r}"],
            hint="pass for example --http 127.0.0.1:8321",
        )
    return Address(host, int(port))


def fixed_address(text: str) -> Address:
    """As :func:`parse_address`, for a client: it has to know the port before the server starts."""
    address = parse_address(text)
    if address.port == 0:
        raise ParameterError(
            "wrong --http",
            ["port 0 is another port at every start"],
            hint="pass the port that clients are to use",
        )
    return address


def parse_origin(text: str) -> str:
    """``SCHEME://HOST`` or ``SCHEME://HOST:PORT``, in lower case as browsers send it.

    Raises :class:`ParameterError`: what no page can have would let nobody in, and ``null`` any.
    """
    origin = text.lower().removesuffix("/")
    if not _ORIGIN.fullmatch(origin):
        raise ParameterError(
            "wrong --allow-origin",
            [f"expected SCHEME://HOST:PORT, got {text!r}"],
            hint="pass for example --allow-origin http://localhost:6274",
        )
    return origin


def open_listener(address: Address) -> Listener:
    """Bind, but do not answer yet. Raises ``OSError``, and :class:`ParameterError` for a name that
    leads nowhere."""
    try:
        found = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except (socket.gaierror, UnicodeError):
        raise ParameterError(
            "wrong --http",
            [f"the name {address.host!r} leads to no address"],
            hint="pass an address of this machine",
        ) from None
    family, _, _, _, place = found[0]
    try:
        bound = socket.create_server(place[:2], family=family)
    except OSError as error:
        error.filename = str(address)
        raise
    port: int = bound.getsockname()[1]
    # The address that was bound decides, whatever a hosts file makes of the name.
    is_loopback = ipaddress.ip_address(str(place[0]).partition("%")[0]).is_loopback
    return Listener(bound, Address(address.host, port), is_loopback)


def read_token(environ: Mapping[str, str], token_file: str | None) -> str | None:
    """The token that clients have to show; a file goes before the environment.

    Raises :class:`ParameterError` for one that cannot be used, without repeating it.
    """
    if token_file is not None:
        return _usable(_read_private(Path(token_file)), f"the token in {token_file}")
    value = environ.get(TOKEN_VARIABLE)
    return _usable(value, f"the token in {TOKEN_VARIABLE}") if value else None


def without_token(context: Context) -> Context:
    """The same for tools, which must not find the token in their environment."""
    environ = {name: value for name, value in context.environ.items() if name != TOKEN_VARIABLE}
    return Context(
        project_path=context.project_path,
        user_space=context.user_space,
        system_space=context.system_space,
        environ=MappingProxyType(environ),
    )


def require_token(listener: Listener, token: str | None) -> None:
    """Only the loopback interface may be served without one. Raises :class:`ParameterError`."""
    if token is None and not listener.is_loopback:
        raise ParameterError(
            "wrong --http",
            [f"{listener.address} can be reached from other machines, and there is no token"],
            hint=f"set {TOKEN_VARIABLE}, pass --token-file, or listen on 127.0.0.1",
        )


def _read_private(path: Path) -> str:
    from lilux.files.private import read_own_file
    from lilux.primitives.errors import KeyFileError

    remedy = "pass the file that holds the token"
    try:
        content = read_own_file(path, limit=_MAX_TOKEN, remedy=remedy)
    except KeyFileError as error:
        raise ParameterError("no usable token", [str(error)]) from None
    if content is None:
        raise _token_fault(f"there is no file {path}", remedy)
    return content.decode("ascii", "replace").strip()


def _usable(token: str, what: str) -> str:
    if len(token) < _LEAST_TOKEN or len(token) > _MAX_TOKEN:
        issue = f"{what} has {len(token)} characters"
    elif not (token.isascii() and token.isprintable() and " " not in token):
        issue = f"{what} has blanks or characters that no header can hold"
    else:
        return token
    raise _token_fault(issue, f"use at least {_LEAST_TOKEN} letters and digits")


def _token_fault(issue: str, hint: str) -> ParameterError:
    return ParameterError("no usable token", [issue], hint=hint)
