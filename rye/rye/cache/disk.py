"""A cache of what was computed from the bytes of files, for later processes.

Parsing YAML or verifying a signature takes microseconds, but loading the libraries that do it takes
longer than starting Python. So the results are kept by the SHA-256 of the bytes, in a folder below
``{user space}/.ai/cache/items`` for each version of Rye.

A program that can write there decides what Rye believes, as it could by writing into
``trusted_keys``. So the folder is used only if it belongs to the user, nobody else has access, and
nobody else could have replaced it. A missing, foreign, oversized or damaged entry is never an
error: the result is computed again. Only what follows from files is kept, never a parameter, a
secret or a variable of the environment.
"""

from __future__ import annotations

import json
import os
from _thread import allocate_lock  # `threading` would slow down every start
from pathlib import Path

from lilux.files.bounded_read import FileTooLargeError, read_bounded
from lilux.sha256 import sha256

from rye import __version__
from rye.ownership import is_closed, is_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FORMAT = 5
"""Increase this when entries get another meaning without a new version of Rye."""
MAX_ENTRY_BYTES = 64 * 1024
MAX_ENTRIES = 4096
MAX_UNWRITTEN = 1024
"""A bound for processes that never flush."""

_DIGEST_DIGITS = 64


class _ForeignError(OSError):
    """The entry belongs to another user, or others can access it."""


class DiskCache:
    """JSON values by kind and digest. Without a folder, nothing is kept.

    Threads may share a cache.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = None if folder is None else f"{folder}/{__version__}-{FORMAT}"
        self._usable: bool | None = None
        self._new: dict[str, bytes] = {}
        # A flush must not iterate over entries while another thread adds one.
        self._adding = allocate_lock()

    def recall(self, kind: str, digest: str) -> Any:
        """Return the value, or ``None``; raises nothing."""
        if not self._is_usable():
            return None
        name = _name(kind, digest)
        try:
            data = read_bounded(
                f"{self._folder}/{name}", MAX_ENTRY_BYTES, follow_links=False, check=_require_own
            )
            return json.loads(_checked(name, data))
        except (OSError, ValueError, FileTooLargeError, RecursionError):
            return None

    def keep(self, kind: str, digest: str, value: Any) -> None:
        """Keep ``value``, which must be JSON; the next :meth:`flush` writes it."""
        if self._folder is None or len(self._new) >= MAX_UNWRITTEN:
            return
        try:
            body = json.dumps(value, allow_nan=False, separators=(",", ":")).encode("ascii")
            faithful = json.loads(body) == value
        except (TypeError, ValueError, RecursionError):
            return
        if faithful and len(body) < MAX_ENTRY_BYTES - _DIGEST_DIGITS:
            name = _name(kind, digest)
            entry = _seal(name, body) + body
            with self._adding:
                self._new[name] = entry

    def flush(self) -> None:
        """Write the new values. A folder that cannot be used is not an error."""
        with self._adding:
            new, self._new = self._new, {}
        if new and self._folder is not None:
            from rye.cache.writer import write_entries

            self._usable = None
            write_entries(self._folder, new, MAX_ENTRIES)

    def _is_usable(self) -> bool:
        usable = self._usable
        if usable is None:
            usable = self._usable = self._folder is not None and is_private(self._folder)
        return usable


def cache_of(user_space: Path) -> DiskCache:
    """Return the cache in a user space."""
    return DiskCache(user_space / ".ai" / "cache" / "items")


def _require_own(status: os.stat_result) -> None:
    if not is_closed(status):
        raise _ForeignError


def _name(kind: str, digest: str) -> str:
    """Return the file name of an entry: hex digits only, whatever the kind is."""
    return sha256(f"{kind}\n{digest}".encode()).hexdigest()


def _checked(name: str, data: bytes) -> bytes:
    seal, body = data[:_DIGEST_DIGITS], data[_DIGEST_DIGITS:]
    if seal != _seal(name, body):
        raise ValueError("damaged")
    return body


def _seal(name: str, body: bytes) -> bytes:
    """Return a checksum that detects damage and swapped entries; it does not stop an attacker."""
    head = f"{__version__} {FORMAT} {name}\n".encode()
    return sha256(head + body).hexdigest().encode("ascii")
