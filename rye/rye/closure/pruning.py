"""What the store contains, and removing what was not used for long.

A copy is removed as a whole, with what was compiled from it. A tool that is running from it may
fail when it loads another module; the next call makes the copy again.
"""

from __future__ import annotations

import os
import time

from lilux.record import Record

from rye.closure.manifest import is_digest
from rye.closure.writer import remove_copy
from rye.ownership import is_private

MAX_AGE = 30 * 24 * 3600.0
"""Seconds since the last use, which is recorded once a day."""
MAX_BYTES = 1024**3
_UNFINISHED_AGE = 3600.0
"""Seconds after which a temporary folder belongs to no process."""
_STAMP = ".pruned"
_DAY = 24 * 3600.0


class Kept(Record, frozen=True, kw_only=True):
    """One closure in the store."""

    digest: str
    size: int
    """Bytes, with what was compiled from it."""
    used: float
    """The time of the last use, in seconds since 1970; up to a day old."""
    folders: tuple[str, ...]


def kept_closures(folder: str) -> list[Kept]:
    """The closures in a store, the last used one first; none if it is missing or not private."""
    found: dict[str, list[str]] = {}
    if is_private(folder):
        for name in sorted(os.listdir(folder)):  # noqa: PTH208 - texts
            digest = name.partition(".")[0]
            if is_digest(digest):
                found.setdefault(digest, []).append(f"{folder}/{name}")
    kept = [
        Kept(
            digest=digest,
            size=sum(_size(one) for one in folders),
            used=max(_changed(one) for one in folders),
            folders=tuple(folders),
        )
        for digest, folders in found.items()
    ]
    return sorted(kept, key=lambda one: -one.used)


def prune(
    folder: str, *, max_age: float = MAX_AGE, max_bytes: int = MAX_BYTES, now: float | None = None
) -> list[Kept]:
    """Remove closures that were not used for ``max_age`` seconds, and then the least recently used
    ones until the others take at most ``max_bytes``. Return the removed ones.
    """
    now = time.time() if now is None else now
    removed: list[Kept] = []
    total = 0
    for one in kept_closures(folder):
        total += one.size
        if now - one.used >= max_age or total > max_bytes:
            for path in one.folders:
                remove_copy(path)
            total -= one.size
            removed.append(one)
    _remove_unfinished(folder, now)
    return removed


def prune_daily(folder: str) -> None:
    """Prune by the default limits, if no process did so today. Raises nothing."""
    stamp = f"{folder}/{_STAMP}"
    try:
        if time.time() - _changed(stamp) < _DAY:
            return
        os.close(os.open(stamp, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        os.utime(stamp)
        prune(folder)
    except OSError:
        return


def _remove_unfinished(folder: str, now: float) -> None:
    if not is_private(folder):
        return
    for name in os.listdir(folder):  # noqa: PTH208 - texts
        path = f"{folder}/{name}"
        if name.endswith(".tmp") and now - _changed(path) > _UNFINISHED_AGE:
            remove_copy(path)


def _size(folder: str) -> int:
    total = 0
    for parent, _, files in os.walk(folder):
        for name in files:
            try:
                total += os.lstat(f"{parent}/{name}").st_size
            except OSError:
                continue
    return total


def _changed(path: str) -> float:
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return 0.0
