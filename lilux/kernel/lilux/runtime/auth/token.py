"""The record of one service's token, and the checks of its fields. Its repr has no secrets."""

import ipaddress
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal
from urllib.parse import urlsplit

from lilux.primitives.errors import AuthenticationRequired

# A token that is about to expire could expire on its way to the service.
LEEWAY_SECONDS = 30.0

# Assumed if neither the caller nor the endpoint gives a lifetime.
DEFAULT_LIFETIME = 3600.0

ClientAuth = Literal["basic", "body"]


@dataclass(frozen=True, kw_only=True)
class TokenGrant:
    """The grant of a token endpoint; ``lifetime`` in seconds. Missing fields are ``None``."""

    access_token: str = field(repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    lifetime: float | None = None
    scopes: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class TokenRecord:
    """One service's token and how to refresh it.

    ``expires_at`` is in seconds since the epoch and ``lifetime`` in seconds; both are ``None``
    for a token that does not expire. Raises ``ValueError`` or ``TypeError`` for values that are
    invalid in OAuth2; the messages name the field and never its value.
    """

    service: str
    access_token: str = field(repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    expires_at: float | None = None
    lifetime: float | None = None
    scopes: tuple[str, ...] = ()
    token_url: str | None = field(default=None, repr=False)
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    client_auth: ClientAuth = "basic"

    def __post_init__(self) -> None:
        check_service(self.service)
        check_credential("access_token", self.access_token)
        for name in ("refresh_token", "client_id", "client_secret"):
            value = getattr(self, name)
            if value is not None:
                check_credential(name, value)
        for scope in self.scopes:
            check_credential("scopes", scope)
        if self.token_url is not None:
            check_token_url(self.token_url)
        if self.client_secret is not None and self.client_id is None:
            raise ValueError("client_secret was given without client_id; pass both")
        if self.client_auth not in ("basic", "body"):
            raise ValueError("client_auth must be 'basic' or 'body'")

    @property
    def can_refresh(self) -> bool:
        """True if a new access token can be requested without the user."""
        return self.refresh_token is not None and self.token_url is not None

    def is_fresh(self, now: float) -> bool:
        """Return true if the access token does not expire soon.

        The margin is at most a tenth of the lifetime, so that a short-lived token is usable.
        """
        if self.expires_at is None:
            return True
        lifetime = self.lifetime if self.lifetime is not None else math.inf
        return now < self.expires_at - min(LEEWAY_SECONDS, max(lifetime, 0.0) / 10)

    def missing_scopes(self, scope: str) -> tuple[str, ...]:
        """Return the parts of the space-delimited ``scope`` that were not granted."""
        return tuple(part for part in split_scopes(scope) if part not in self.scopes)

    def renewed(self, grant: TokenGrant, *, now: float, default_lifetime: float) -> "TokenRecord":
        """Return this record updated by ``grant``; fields missing in the grant are kept."""
        lifetime = default_lifetime if grant.lifetime is None else grant.lifetime
        return replace(
            self,
            access_token=grant.access_token,
            refresh_token=grant.refresh_token or self.refresh_token,
            expires_at=now + lifetime,
            lifetime=lifetime,
            scopes=self.scopes if grant.scopes is None else grant.scopes,
        )


def check_service(service: str) -> None:
    """Refuse a name that cannot be printed in a message or used in a keychain."""
    if not isinstance(service, str):
        raise TypeError(f"service must be a str, got {type(service).__name__}")
    if not service or not service.isprintable():
        raise ValueError("service must be a name of printable characters")


def check_credential(name: str, value: str) -> None:
    """Refuse characters that RFC 6749 (appendix A) does not allow, such as line breaks."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, got {type(value).__name__}")
    if not value or not (value.isascii() and value.isprintable()):
        raise ValueError(f"{name} must be one or more printable ASCII characters")


def check_token_url(url: str) -> None:
    """Refuse an endpoint to which sending the refresh token would be unsafe."""
    check_credential("token_url", url)
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError:
        raise ValueError("token_url is not a URL; pass one such as https://host/token") from None
    if " " in url or "\\" in url or not host:
        raise ValueError("token_url is not a URL; pass one such as https://host/token")
    if "@" in parts.netloc:
        raise ValueError("token_url contains a user or password; pass client_id and client_secret")
    if parts.fragment:
        raise ValueError("token_url has a fragment; remove '#' and the text after it")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(host)):
        raise ValueError("token_url must be https; plain http is for loopback only")


def check_seconds(name: str, value: object) -> float:
    """Return ``value`` as a number of seconds; strings and booleans are refused."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number of seconds, got {type(value).__name__}")
    try:
        seconds = float(value)
    except OverflowError:
        seconds = math.inf
    if not math.isfinite(seconds):
        raise ValueError(f"{name} must be a finite number of seconds")
    return seconds


def split_scopes(scopes: Iterable[str]) -> tuple[str, ...]:
    """Split one or more space-delimited texts (RFC 6749, 3.3) into single scopes."""
    parts: list[str] = []
    for text in (scopes,) if isinstance(scopes, str) else scopes:
        if not isinstance(text, str):
            raise TypeError(f"scopes must be of type str, got {type(text).__name__}")
        parts += text.split()
    return tuple(parts)


def is_loopback(host: str) -> bool:
    """Return true if the spelling of ``host`` is loopback; no name is resolved."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def no_token(service: str) -> AuthenticationRequired:
    """Return the error for a service without a stored token."""
    return AuthenticationRequired(
        f"no token is stored for {service!r}", hint="authenticate and store one with set_token"
    )
