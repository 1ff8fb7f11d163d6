"""The options of ``rye mcp --http``: the address, the token of clients and the allowed origins."""

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
ONLY_TOKEN = "default"  # noqa: S105 - a name, not a token
"""The name of a token that has none."""
MCP_PATH = "/mcp"
HEALTH_PATH = "/healthz"

_MIN_TOKEN = 16
_MAX_TOKEN = 4096
_MAX_TOKEN_FILE = 1024 * 1024
_NAME = r"[A-Za-z0-9._@-]{1,64}"
_ENTRY_HINT = "write one line `name: token` for each client"
_ORIGIN = r"[a-z][a-z0-9+.-]*://([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?"
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


class Address(NamedTuple):
    """A host and a port; port 0 means any free port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Listener(NamedTuple):
    """A bound socket and its address."""

    socket: socket.socket
    address: Address
    is_loopback: bool

    @property
    def url(self) -> str:
        """The URL for clients on this machine."""
        return f"http://{self.address}{MCP_PATH}"

    @property
    def hosts(self) -> frozenset[str]:
        """The ``Host`` headers that name this server, in lower case."""
        names = {str(self.address), *(f"{name}:{self.address.port}" for name in _LOOPBACK_NAMES)}
        if self.address.port == 80:
            names |= {name.removesuffix(":80") for name in names}
        return frozenset(name.lower() for name in names)


def parse_address(text: str) -> Address:
    """Parse ``HOST:PORT``, ``[IPv6]:PORT`` or ``PORT``. Raises :class:`ParameterError`."""
    host, colon, port = text.rpartition(":")
    if not colon:
        host = "127.0.0.1"
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        host = ""
    if not host or not port.isascii() or not port.isdecimal() or int(port) > 65535:
        raise ParameterError(
            "invalid --http",
            [f"expected HOST:PORT, got {text!r}"],
            hint="use for example --http 127.0.0.1:8321",
        )
    return Address(host, int(port))


def fixed_address(text: str) -> Address:
    """Parse an address for a client config. Raises :class:`ParameterError` also for port 0."""
    address = parse_address(text)
    if address.port == 0:
        raise ParameterError(
            "invalid --http",
            ["port 0 means a different port at every start"],
            hint="pass a fixed port",
        )
    return address


def parse_origin(text: str) -> str:
    """Return ``SCHEME://HOST`` or ``SCHEME://HOST:PORT`` in lower case, as browsers send it.

    Raises :class:`ParameterError` for anything else: a malformed origin would match no page, and
    ``null`` would match any sandboxed page.
    """
    origin = text.lower().removesuffix("/")
    if not re.fullmatch(_ORIGIN, origin):
        raise ParameterError(
            "invalid --allow-origin",
            [f"expected SCHEME://HOST:PORT, got {text!r}"],
            hint="use for example --allow-origin http://localhost:6274",
        )
    return origin


def open_listener(address: Address) -> Listener:
    """Bind a socket without accepting connections yet.

    Raises ``OSError``, and :class:`ParameterError` if the host cannot be resolved.
    """
    try:
        found = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except (socket.gaierror, UnicodeError):
        raise ParameterError(
            "invalid --http",
            [f"host {address.host!r} cannot be resolved"],
            hint="pass an address of this machine",
        ) from None
    family, _, _, _, resolved = found[0]
    try:
        bound = socket.create_server(resolved[:2], family=family)
    except OSError as error:
        error.filename = str(address)
        raise
    port: int = bound.getsockname()[1]
    # Decided by the bound address: a hosts file can give any meaning to a name.
    is_loopback = ipaddress.ip_address(str(resolved[0]).partition("%")[0]).is_loopback
    return Listener(bound, Address(address.host, port), is_loopback)


def read_tokens(environ: Mapping[str, str], token_file: str | None) -> dict[str, str]:
    """Return the tokens that clients may send, by their names; empty if there are none.

    A file takes precedence over the environment. It has one token, or a line ``name: token`` for
    each. Raises :class:`ParameterError` for an invalid token, without repeating it.
    """
    if token_file is not None:
        return _parsed(_read_private(Path(token_file)), token_file)
    value = environ.get(TOKEN_VARIABLE)
    return {ONLY_TOKEN: _validated(value, TOKEN_VARIABLE)} if value else {}


def _parsed(text: str, source: str) -> dict[str, str]:
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    if len(lines) < 2 and not any(": " in line for line in lines):
        return {ONLY_TOKEN: _validated(text.strip(), source)}
    tokens: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        name, _, token = line.partition(": ")
        if not re.fullmatch(_NAME, name) or not token:
            raise _token_error(f"entry {number} of {source} is not `name: token`", _ENTRY_HINT)
        if name in tokens:
            raise _token_error(f"{source} has two tokens with the name {name!r}", _ENTRY_HINT)
        tokens[name] = _validated(token.strip(), f"{source}, entry {number},")
    if len(set(tokens.values())) < len(tokens):
        raise _token_error(f"{source} has the same token under two names", _ENTRY_HINT)
    return tokens


def without_token(context: Context) -> Context:
    """Return the context without the token: tools must not find it in their environment."""
    environ = {name: value for name, value in context.environ.items() if name != TOKEN_VARIABLE}
    return Context(
        project_path=context.project_path,
        user_space=context.user_space,
        system_space=context.system_space,
        environ=MappingProxyType(environ),
    )


def require_token(listener: Listener, tokens: Mapping[str, str]) -> None:
    """Raise :class:`ParameterError` if other machines can reach the server and no token is set."""
    if not tokens and not listener.is_loopback:
        raise ParameterError(
            "invalid --http",
            [f"{listener.address} is reachable from other machines, but no token is set"],
            hint=f"set {TOKEN_VARIABLE}, pass --token-file, or listen on 127.0.0.1",
        )


def _read_private(path: Path) -> str:
    from lilux.files.private import read_own_file
    from lilux.primitives.errors import KeyFileError

    remedy = "pass the file that contains the token"
    try:
        content = read_own_file(path, limit=_MAX_TOKEN_FILE, remedy=remedy)
    except KeyFileError as error:
        raise ParameterError("invalid token", [str(error)]) from None
    if content is None:
        raise _token_error(f"{path} does not exist", remedy)
    return content.decode("ascii", "replace").strip()


def _validated(token: str, source: str) -> str:
    if len(token) < _MIN_TOKEN or len(token) > _MAX_TOKEN:
        issue = f"the token in {source} has {len(token)} characters"
    elif not (token.isascii() and token.isprintable() and " " not in token):
        issue = f"the token in {source} contains characters that a header cannot contain"
    else:
        return token
    raise _token_error(issue, f"use at least {_MIN_TOKEN} letters and digits")


def _token_error(issue: str, hint: str) -> ParameterError:
    return ParameterError("invalid token", [issue], hint=hint)
