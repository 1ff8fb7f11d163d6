"""One refresh for all who ask meanwhile: threads and loops share it, processes queue for it."""

import os
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from pathlib import Path

from lilux.runtime.auth.files import acquire_lock, release_lock
from lilux.runtime.auth.token import TokenRecord

Work = Callable[[], TokenRecord]
Flight = Future[TokenRecord]

_guard = threading.Lock()
_flights: dict[Hashable, Flight] = {}


def join_flight(key: Hashable, lock_path: Path, work: Work) -> Flight:
    """The flight under way for ``key``, or a new one that calls ``work`` holding ``lock_path``.

    A flight cannot be cancelled: a passenger that leaves disturbs nobody, and a refresh token
    that the server has already replaced is still written down. The interpreter does not exit
    while ``work`` runs, but does not stay for one that still waits for its lock.
    """
    with _guard:
        flight = _flights.get(key)
        if flight is None:
            flight = Flight()
            flight.set_running_or_notify_cancel()
            threading.Thread(
                target=_wait_for_lock, args=(key, flight, lock_path, work), daemon=True
            ).start()
            _flights[key] = flight
        return flight


def _wait_for_lock(key: Hashable, flight: Flight, lock_path: Path, work: Work) -> None:
    try:
        lock = acquire_lock(lock_path)
    except BaseException as error:  # noqa: BLE001 - told to the passengers
        _land(key, flight, error)
        return
    try:
        threading.Thread(target=_fly, args=(key, flight, lock, work), daemon=False).start()
    except RuntimeError as error:
        release_lock(lock)
        _land(key, flight, error)


def _fly(key: Hashable, flight: Flight, lock: int, work: Work) -> None:
    outcome: TokenRecord | BaseException
    try:
        outcome = work()
    except BaseException as error:  # noqa: BLE001 - told to the passengers
        outcome = error
    release_lock(lock)
    _land(key, flight, outcome)


def _land(key: Hashable, flight: Flight, outcome: TokenRecord | BaseException) -> None:
    # Out of the table first: who comes now must look at the stored token, not at this outcome.
    with _guard:
        _flights.pop(key, None)
    if isinstance(outcome, BaseException):
        flight.set_exception(outcome)
    else:
        flight.set_result(outcome)


def _forget_flights() -> None:
    global _guard  # noqa: PLW0603 - a lock that another thread held at the fork stays held
    _guard = threading.Lock()
    _flights.clear()


# The threads that would land the parent's flights do not exist in a forked child.
os.register_at_fork(after_in_child=_forget_flights)
