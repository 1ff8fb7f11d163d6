"""From an expired record to a fresh one: one request to the endpoint for all who need it."""

import asyncio
from collections.abc import Callable

from lilux.primitives.errors import AuthenticationRequired, LiluxError, RefreshError
from lilux.runtime.auth.flight import join_flight
from lilux.runtime.auth.refresh import request_refresh
from lilux.runtime.auth.storage import TokenStorage
from lilux.runtime.auth.token import DEFAULT_LIFETIME, TokenRecord, no_token


async def renew(
    record: TokenRecord,
    storage: TokenStorage,
    *,
    clock: Callable[[], float],
    timeout_seconds: float,
) -> TokenRecord:
    """The fresh record that takes the place of ``record`` in ``storage``.

    Raises ``AuthenticationRequired`` if only the user can help, ``RefreshError`` if the endpoint
    did not or if somebody else's refresh takes too long. Cancellation ends the waiting, not the
    refresh.
    """
    require_refreshable(record)
    service = record.service
    lock_path = await asyncio.to_thread(storage.refresh_lock_path, service)
    flight = join_flight(
        (storage.identity, service),
        lock_path,
        lambda: _refresh(storage, service, clock=clock, timeout_seconds=timeout_seconds),
    )
    # One refresh by somebody else, then our own.
    patience = 2 * timeout_seconds
    try:
        async with asyncio.timeout(patience):
            return await asyncio.wrap_future(flight)
    except TimeoutError:
        raise RefreshError(
            f"the token of {service!r} could not be refreshed"
            f": another process has been at it for {patience:g} s; try again later"
        ) from None
    except LiluxError as error:
        # One instance raised in several tasks would mix up their tracebacks.
        raise type(error)(*error.args) from None


def require_refreshable(record: TokenRecord) -> None:
    """Raise ``AuthenticationRequired`` if ``record`` lacks what a refresh takes."""
    lacking = "refresh token" if record.refresh_token is None else "token_url to refresh it at"
    if not record.can_refresh:
        raise AuthenticationRequired(
            f"the token of {record.service!r} has expired and has no {lacking}"
            ": authenticate again and store the new token with set_token"
        )


def _refresh(
    storage: TokenStorage, service: str, *, clock: Callable[[], float], timeout_seconds: float
) -> TokenRecord:
    """Runs in a thread of its own that holds the refresh lock of ``service``."""
    while True:
        record = storage.load(service)
        if record is None:
            raise no_token(service)
        now = clock()
        if record.is_fresh(now):
            return record
        require_refreshable(record)
        grant = asyncio.run(request_refresh(record, timeout_seconds=timeout_seconds))
        renewed = record.renewed(grant, now=now, default_lifetime=DEFAULT_LIFETIME)
        if storage.replace(record, renewed):
            return renewed
        # Stored anew or cleared while the endpoint was asked: the user's word counts.
