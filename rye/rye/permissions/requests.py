"""Permissions of a tool that sends an HTTP request: Rye itself sends it, so Rye checks the host."""

from __future__ import annotations

from lilux.primitives.subprocess.confinement import MissingPart

from rye.errors import PermissionsError
from rye.items.permissions import ANY_HOST, Permissions

_PORTS = {"http": 80, "https": 443}


def check_request(
    permissions: Permissions, url: object, tool: str, *, redirects: bool
) -> tuple[MissingPart, ...]:
    """Return what cannot be enforced. ``url`` is the author's template.

    Raises :class:`PermissionsError` if the permissions do not include the host.
    """
    if ANY_HOST in permissions.net:
        return ()
    if not permissions.hosts:
        raise PermissionsError(
            f"{tool!r} sends a request, which its permissions do not allow",
            hint="add the host to permissions.net, and sign it again",
        )
    scheme, _, rest = str(url).partition("://")
    authority = rest.split("/", 1)[0].split("?", 1)[0].split("#", 1)[0]
    if "{" in authority or scheme.lower() not in _PORTS:
        return (MissingPart("net", "the host of the URL is not fixed by the author"),)
    host = authority.rpartition("@")[2].lower()
    if ":" not in host.rpartition("]")[2]:
        host = f"{host}:{_PORTS[scheme.lower()]}"
    if not any(_matches(host, one) for one in permissions.hosts):
        raise PermissionsError(
            f"{tool!r} sends a request to {host}, which is not in permissions.net",
            hint="add the host, and sign it again",
        )
    if redirects:
        return (MissingPart("net", "redirects may lead to other hosts"),)
    return ()


def _matches(host: str, allowed: str) -> bool:
    if allowed.startswith("*."):
        return host.endswith(allowed[1:]) and host != allowed[1:]
    return host == allowed
