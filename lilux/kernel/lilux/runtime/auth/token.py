"""What is known about one service's token: a frozen record that never shows its secrets."""

import ipaddress
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal
from urllib.parse import urlsplit

from lilux.primitives.errors import AuthenticationRequired

# A token that is about to end would end on its way to the service.
LEEWAY_SECONDS = 30.0

# What is assumed where nobody says how long a token lives.
DEFAULT_LIFETIME = 3600.0

ClientAuth = Literal["basic", "body"]


@dataclass(frozen=True, kw_only=True)
class TokenGrant:
    """What a token endpoint granted; ``lifetime`` in seconds, ``None`` where it said nothing."""

    access_token: str = field(repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    lifetime: float | None = None
    scopes: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class TokenRecord:
    """One service's token and how to renew it.

    ``expires_at`` is in seconds since the epoch and ``lifetime`` in seconds; both are ``None``
    for a token that does not expire. Raises ``ValueError`` or ``TypeError`` for values that no
    OAuth2 server hands out; the messages name the field and never its value.
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
            raise ValueError("client_secret was given without client_id: pass both")
        if self.client_auth not in ("basic", "body"):
            raise ValueError("client_auth must be 'basic' or 'body'")

    @property
    def can_refresh(self) -> bool:
        """Whether a new access token can be had without the user."""
        return self.refresh_token is not None and self.token_url is not None

    def is_fresh(self, now: float) -> bool:
        """Whether the access token is good for a while yet.

        The leeway is at most a tenth of the lifetime, so that a short-lived token is usable.
        """
        if self.expires_at is None:
            return True
        lifetime = self.lifetime if self.lifetime is not None else math.inf
        return now < self.expires_at - min(LEEWAY_SECONDS, max(lifetime, 0.0) / 10)

    def missing_scopes(self, scope: str) -> tuple[str, ...]:
        """The parts of the space-delimited ``scope`` that this token was not granted."""
        return tuple(part for part in split_scopes(scope) if part not in self.scopes)

    def renewed(self, grant: TokenGrant, *, now: float, default_lifetime: float) -> "TokenRecord":
        """This record with ``grant`` taken over; what the grant leaves out stays as it was."""
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
    """Refuse a name that cannot be shown in a message or kept in a keychain."""
    if not isinstance(service, str):
        raise TypeError(f"service must be a str, got {type(service).__name__}")
    if not service or not service.isprintable():
        raise ValueError("service must be a name of printable characters")


def check_credential(name: str, value: str) -> None:
    """Refuse what RFC 6749 (appendix A) does not allow, a line break in a header above all."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, got {type(value).__name__}")
    if not value or not (value.isascii() and value.isprintable()):
        raise ValueError(f"{name} must be one or more printable ASCII characters")


def check_token_url(url: str) -> None:
    """Refuse an endpoint that the refresh token must not be sent to."""
    check_credential("token_url", url)
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError:
        raise ValueError("token_url is not a URL: pass one like https://host/token") from None
    if " " in url or "\\" in url or not host:
        raise ValueError("token_url is not a URL: pass one like https://host/token")
    if "@" in parts.netloc:
        raise ValueError("token_url holds a user or password: pass client_id and client_secret")
    if parts.fragment:
        raise ValueError("token_url has a fragment: leave out what follows '#'")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(host)):
        raise ValueError("token_url must be https: plain http is for loopback only")


def check_seconds(name: str, value: object) -> float:
    """``value`` as a number of seconds; a text or a boolean is none."""
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
    """Scopes one by one, from as many texts in which blanks divide them (RFC 6749, 3.3)."""
    parts: list[str] = []
    for text in (scopes,) if isinstance(scopes, str) else scopes:
        if not isinstance(text, str):
            raise TypeError(f"scopes must be of type str, got {type(text).__name__}")
        parts += text.split()
    return tuple(parts)


def is_loopback(host: str) -> bool:
    """Whether ``host`` is this machine by its spelling; nothing is looked up."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def no_token(service: str) -> AuthenticationRequired:
    """The error for a service of which nothing is stored."""
    return AuthenticationRequired(
        f"no token is stored for {service!r}: authenticate and store one with set_token"
    )
