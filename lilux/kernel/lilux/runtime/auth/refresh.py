"""Replacing an expired token: one refresh, shared by all concurrent callers.

Tasks, event loops and threads of a process share one refresh. Other processes wait for its lock,
and then find the new token.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from pathlib import Path

from lilux.primitives.errors import AuthenticationRequired, LiluxError, RefreshError
from lilux.runtime.auth.files import acquire_lock, release_lock
from lilux.runtime.auth.oauth2 import request_refresh
from lilux.runtime.auth.storage import TokenStorage
from lilux.runtime.auth.token import DEFAULT_LIFETIME, TokenRecord, no_token

Work = Callable[[], TokenRecord]
SharedRefresh = Future[TokenRecord]

_guard = threading.Lock()
_running: dict[Hashable, SharedRefresh] = {}


async def refresh(
    record: TokenRecord,
    storage: TokenStorage,
    *,
    clock: Callable[[], float],
    timeout_seconds: float,
) -> TokenRecord:
    """Return the fresh record that replaces ``record`` in ``storage``.

    Raises ``AuthenticationRequired`` if the user has to authenticate again, ``RefreshError`` if
    the endpoint fails or another process takes too long. Cancellation ends the wait, not the
    refresh.
    """
    _require_refreshable(record)
    service = record.service
    lock_path = await asyncio.to_thread(storage.refresh_lock_path, service)
    shared = _join(
        (storage.identity, service),
        lock_path,
        lambda: _refresh_stored(storage, service, clock=clock, timeout_seconds=timeout_seconds),
    )
    # Time for a refresh by another process, then for ours.
    patience = 2 * timeout_seconds
    try:
        async with asyncio.timeout(patience):
            return await asyncio.wrap_future(shared)
    except TimeoutError:
        raise RefreshError(
            f"the token of {service!r} could not be refreshed"
            f": another process has been refreshing it for {patience:g} s",
            hint="try again later",
        ) from None
    except LiluxError as error:
        # One instance raised in several tasks would mix up their tracebacks.
        raise type(error)(error.reason, hint=error.hint) from None


def _require_refreshable(record: TokenRecord) -> None:
    missing = "refresh token" if record.refresh_token is None else "token_url to refresh it at"
    if not record.can_refresh:
        raise AuthenticationRequired(
            f"the token of {record.service!r} has expired and has no {missing}",
            hint="authenticate again and store the new token with set_token",
        )


def _refresh_stored(
    storage: TokenStorage, service: str, *, clock: Callable[[], float], timeout_seconds: float
) -> TokenRecord:
    """Refresh the stored token; runs in a thread that holds the refresh lock of ``service``."""
    while True:
        record = storage.load(service)
        if record is None:
            raise no_token(service)
        now = clock()
        if record.is_fresh(now):
            return record
        _require_refreshable(record)
        grant = asyncio.run(request_refresh(record, timeout_seconds=timeout_seconds))
        renewed = record.renewed(grant, now=now, default_lifetime=DEFAULT_LIFETIME)
        if storage.replace(record, renewed):
            return renewed
        # The user stored or cleared a token during the request; that takes precedence.


def _join(key: Hashable, lock_path: Path, work: Work) -> SharedRefresh:
    """Return the running refresh of ``key``, or start one that calls ``work`` under its lock.

    A refresh cannot be cancelled: other callers may wait for it, and the server may already have
    replaced the refresh token, which must be stored. The interpreter does not exit while ``work``
    runs, but does not wait for a refresh that has not got its lock yet.
    """
    with _guard:
        shared = _running.get(key)
        if shared is None:
            shared = SharedRefresh()
            shared.set_running_or_notify_cancel()
            threading.Thread(
                target=_wait_for_lock, args=(key, shared, lock_path, work), daemon=True
            ).start()
            _running[key] = shared
        return shared


def _wait_for_lock(key: Hashable, shared: SharedRefresh, lock_path: Path, work: Work) -> None:
    try:
        lock = acquire_lock(lock_path)
    except BaseException as error:  # noqa: BLE001 - raised in the callers
        _finish(key, shared, error)
        return
    try:
        threading.Thread(target=_run, args=(key, shared, lock, work), daemon=False).start()
    except RuntimeError as error:
        release_lock(lock)
        _finish(key, shared, error)


def _run(key: Hashable, shared: SharedRefresh, lock: int, work: Work) -> None:
    outcome: TokenRecord | BaseException
    try:
        outcome = work()
    except BaseException as error:  # noqa: BLE001 - raised in the callers
        outcome = error
    release_lock(lock)
    _finish(key, shared, outcome)


def _finish(key: Hashable, shared: SharedRefresh, outcome: TokenRecord | BaseException) -> None:
    # Removed first: a later caller must read the stored token instead of this outcome.
    with _guard:
        _running.pop(key, None)
    if isinstance(outcome, BaseException):
        shared.set_exception(outcome)
    else:
        shared.set_result(outcome)


def _forget_running() -> None:
    global _guard  # noqa: PLW0603 - a lock that another thread held at the fork stays held
    _guard = threading.Lock()
    _running.clear()


# The threads that would finish the parent's refreshes do not exist in a forked child.
os.register_at_fork(after_in_child=_forget_running)
