"""What was worked out from the bytes of files, for the next process that meets the same bytes.

Parsing YAML or verifying a signature takes microseconds, but loading what does it takes longer than
starting Python. So the outcome is kept by the SHA-256 of the bytes, in a folder below
``{user space}/.ai/cache/items`` for each version of Rye.

Whoever may write there decides what Rye believes, as he does by writing into ``trusted_keys`` next
to it: the folder counts only if it is the user's and closed to everyone else, and if nobody else
could have put it there. Nothing here is a reason to fail; what is missing, foreign, too large or
damaged is worked out anew. Only what follows from files is kept: never a parameter, a secret or a
variable of the environment.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from lilux.files.bounded_read import FileTooLargeError, read_bounded
from lilux.sha256 import sha256

from rye import __version__
from rye.ownership import is_closed, is_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FORMAT = 1
"""To be raised when an entry would mean something else to another state of this program."""
MAX_ENTRY_BYTES = 64 * 1024
MAX_ENTRIES = 4096
MAX_UNWRITTEN = 1024
"""Of a process that stays and never flushes."""

_DIGEST_DIGITS = 64


class _ForeignError(OSError):
    """An entry that is not the user's alone."""


class DiskCache:
    """Values of JSON by a kind and a digest. Without a folder it remembers nothing."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = None if folder is None else f"{folder}/{__version__}-{FORMAT}"
        self._usable: bool | None = None
        self._new: dict[str, bytes] = {}

    def recall(self, kind: str, digest: str) -> Any:
        """What was kept, or ``None``; raises nothing."""
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
        """Remember ``value``, which must be JSON, from the next :meth:`flush` on."""
        if self._folder is None or len(self._new) >= MAX_UNWRITTEN:
            return
        try:
            body = json.dumps(value, allow_nan=False, separators=(",", ":")).encode("ascii")
            faithful = json.loads(body) == value
        except (TypeError, ValueError, RecursionError):
            return
        if faithful and len(body) < MAX_ENTRY_BYTES - _DIGEST_DIGITS:
            name = _name(kind, digest)
            self._new[name] = _sealed(name, body)

    def flush(self) -> None:
        """Write what is new; a folder that cannot be used costs nothing but time."""
        new, self._new = self._new, {}
        if new and self._folder is not None:
            from rye.cache.writer import write_entries

            self._usable = None
            write_entries(self._folder, new, MAX_ENTRIES)

    def _is_usable(self) -> bool:
        if self._usable is None:
            self._usable = self._folder is not None and is_private(self._folder)
        return self._usable


def cache_of(user_space: Path) -> DiskCache:
    """The cache of a user."""
    return DiskCache(user_space / ".ai" / "cache" / "items")


def _require_own(status: os.stat_result) -> None:
    if not is_closed(status):
        raise _ForeignError


def _name(kind: str, digest: str) -> str:
    """Of digits alone, whatever the kind is called."""
    return sha256(f"{kind}\n{digest}".encode()).hexdigest()


def _sealed(name: str, body: bytes) -> bytes:
    return _seal(name, body) + body


def _checked(name: str, data: bytes) -> bytes:
    seal, body = data[:_DIGEST_DIGITS], data[_DIGEST_DIGITS:]
    if seal != _seal(name, body):
        raise ValueError("damaged")
    return body


def _seal(name: str, body: bytes) -> bytes:
    """Shows damage, and an entry in the place of another; it is no protection against malice."""
    head = f"{__version__} {FORMAT} {name}\n".encode()
    return sha256(head + body).hexdigest().encode("ascii")
