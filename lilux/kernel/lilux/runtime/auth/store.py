"""The store of access tokens, and the rules for handing one out."""

import time
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from lilux.primitives.errors import AuthenticationRequired, ConfigurationError
from lilux.runtime.auth.token import (
    DEFAULT_LIFETIME,
    ClientAuth,
    TokenRecord,
    check_seconds,
    check_service,
    no_token,
    split_scopes,
)

if TYPE_CHECKING:
    from lilux.runtime.auth.keychain import Keychain
    from lilux.runtime.auth.storage import TokenStorage


class AuthStore:
    """The tokens of one application, ``service_name``, by service.

    They are stored in the OS keychain if there is one (or in ``keychain``; ``None`` disables it),
    else encrypted in ``storage_dir``. With a keychain, ``storage_dir`` contains the locks.
    Tokens are not cached in memory: changes by another process are visible at once. ``clock``
    returns seconds since the epoch; ``refresh_timeout`` bounds a refresh in seconds.

    Methods raise ``KeyFileError`` if other users can access the key or a token file, and
    ``AuthError`` if a stored token was tampered with. No error contains a token or a secret.
    """

    def __init__(
        self,
        service_name: str = "lilux",
        storage_dir: str | Path | None = None,
        *,
        keychain: "Keychain | Literal['auto'] | None" = "auto",
        clock: Callable[[], float] = time.time,
        refresh_timeout: float = 30.0,
    ) -> None:
        check_service(service_name)
        if check_seconds("refresh_timeout", refresh_timeout) <= 0:
            raise ValueError("refresh_timeout must be greater than 0 seconds")
        self._service_name = service_name
        # A later change of the current directory must not change where tokens are.
        self._storage_dir = None if storage_dir is None else Path(storage_dir).absolute()
        self._keychain = keychain
        self._clock = clock
        self._refresh_timeout = refresh_timeout

    def set_token(
        self,
        service: str,
        access_token: str,
        refresh_token: str | None = None,
        expires_in: float | None = DEFAULT_LIFETIME,
        scopes: Iterable[str] | None = None,
        *,
        token_url: str | None = None,
        client_id: str | None = None,
        client_secret: str | None = None,
        client_auth: ClientAuth = "basic",
    ) -> None:
        """Store the token of ``service``, replacing the one before.

        ``expires_in`` is in seconds, ``None`` for a token that does not expire. ``scopes`` are
        the granted ones, as a list or as OAuth's space-delimited text. A refresh requires
        ``refresh_token`` and ``token_url`` (https, or http on loopback), and ``client_id`` and
        ``client_secret`` if the endpoint requires them: sent by HTTP Basic, or in the form with
        ``client_auth="body"``.

        Raises ``ConfigurationError`` without keychain and folder, ``ValueError`` or ``TypeError``
        for invalid values.
        """
        lifetime = None if expires_in is None else check_seconds("expires_in", expires_in)
        record = TokenRecord(
            service=service,
            access_token=access_token,
            refresh_token=refresh_token,
            expires_at=None if lifetime is None else self._clock() + lifetime,
            lifetime=lifetime,
            scopes=split_scopes(scopes or ()),
            token_url=token_url,
            client_id=client_id,
            client_secret=client_secret,
            client_auth=client_auth,
        )
        if self._storage is None:
            raise ConfigurationError(
                f"the token of {service!r} cannot be stored: no keychain and no folder",
                hint="install lilux[keychain] for the OS keychain, "
                "or pass storage_dir to AuthStore",
            )
        self._storage.save(record)

    async def get_token(self, service: str, scope: str | None = None) -> str:
        """Return an access token of ``service`` that has not expired, refreshed if necessary.

        Concurrent callers, in this process or another, share one refresh. Cancelling one of them
        affects neither the refresh nor the others.

        Raises ``AuthenticationRequired`` if there is no token, if it was not granted ``scope``
        (or one of several, space-delimited), or if it cannot be refreshed without the user;
        ``RefreshError`` if the token endpoint refuses or cannot be reached.
        """
        import asyncio

        check_service(service)
        if scope is not None and not isinstance(scope, str):
            raise TypeError(f"scope must be a str, got {type(scope).__name__}")
        record = await asyncio.to_thread(self._load, service)
        if record is None or self._storage is None:
            raise no_token(service)
        _require_scope(record, scope)
        if not record.is_fresh(self._clock()):
            from lilux.runtime.auth.refresh import refresh

            record = await refresh(
                record, self._storage, clock=self._clock, timeout_seconds=self._refresh_timeout
            )
            # The endpoint may have granted less than before.
            _require_scope(record, scope)
        return record.access_token

    def is_authenticated(self, service: str) -> bool:
        """Return true if there is a token that is fresh or can be refreshed; sends no request."""
        check_service(service)
        record = self._load(service)
        return record is not None and (record.can_refresh or record.is_fresh(self._clock()))

    def clear_token(self, service: str) -> None:
        """Remove the token of ``service``, if there is one."""
        check_service(service)
        if self._storage is not None:
            self._storage.delete(service)

    @cached_property
    def _storage(self) -> "TokenStorage | None":
        from lilux.runtime.auth.storage import open_storage

        return open_storage(self._service_name, self._storage_dir, self._keychain)

    def _load(self, service: str) -> TokenRecord | None:
        return None if self._storage is None else self._storage.load(service)


def _require_scope(record: TokenRecord, scope: str | None) -> None:
    missing = record.missing_scopes(scope or "")
    if missing:
        raise AuthenticationRequired(
            f"the token of {record.service!r} lacks the scope {' '.join(missing)!r}",
            hint="authenticate again with that scope and store the new token with set_token",
        )
