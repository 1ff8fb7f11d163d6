"""Tokens of services: kept safe, handed out fresh, refreshed once for all who ask."""

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

    They are kept in the OS keychain if there is one (or in the ``keychain`` given; ``None`` for
    none), else encrypted in ``storage_dir``. Beside a keychain, ``storage_dir`` holds the locks.
    Nothing is remembered in memory: what another process stores or clears is seen at once.
    ``clock`` gives seconds since the epoch; ``refresh_timeout`` bounds a refresh in seconds.

    Raises ``KeyFileError`` if the key or a token file is open to others, and ``AuthError`` if a
    stored token was tampered with. No error holds a token or a secret.
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
            raise ValueError("refresh_timeout must be above 0 seconds")
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
        """Store the token of ``service`` in place of the one before.

        ``expires_in`` is in seconds, ``None`` for a token that does not expire. ``scopes`` are
        those that were granted, one by one or as OAuth's space-delimited text. To be refreshed,
        a token needs ``refresh_token`` and ``token_url`` (https, or http on loopback), and
        ``client_id`` and ``client_secret`` if the endpoint asks for them: by HTTP Basic, or in
        the form with ``client_auth="body"``.

        Raises ``ConfigurationError`` with neither keychain nor folder, ``ValueError`` or
        ``TypeError`` for values that cannot be right.
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
                f"there is no place to store the token of {service!r}"
                ": install lilux[keychain] for the OS keychain, or pass storage_dir to AuthStore"
            )
        self._storage.save(record)

    async def get_token(self, service: str, scope: str | None = None) -> str:
        """An access token of ``service`` that has not expired, refreshed if need be.

        All who ask while a refresh is under way, in this process or another, share it.
        Cancelling one of them leaves the refresh and the others alone.

        Raises ``AuthenticationRequired`` if there is none, if it was not granted ``scope`` (or
        one of several, space-delimited), or if it cannot be renewed without the user;
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
            from lilux.runtime.auth.renewal import renew

            record = await renew(
                record, self._storage, clock=self._clock, timeout_seconds=self._refresh_timeout
            )
            # The endpoint may have granted less than before.
            _require_scope(record, scope)
        return record.access_token

    def is_authenticated(self, service: str) -> bool:
        """Whether there is a token that has not expired or can be refreshed; asks nobody."""
        check_service(service)
        record = self._load(service)
        return record is not None and (record.can_refresh or record.is_fresh(self._clock()))

    def clear_token(self, service: str) -> None:
        """Forget the token of ``service``; nothing happens if there is none."""
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
            f"the token of {record.service!r} lacks the scope {' '.join(missing)!r}"
            ": authenticate again with that scope and store the new token with set_token"
        )
