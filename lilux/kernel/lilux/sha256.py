"""SHA-256, by OpenSSL or by the interpreter's implementation.

OpenSSL hashes several times as fast, but takes milliseconds to load, which a short program that
hashes a few small files does not regain.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    class Hash(Protocol):
        """A hash, as ``hashlib.sha256`` returns it."""

        def digest(self) -> bytes:
            """Return 32 bytes."""

        def hexdigest(self) -> str:
            """Return 64 lower-case hex digits."""


_make: Callable[[bytes], Hash] | None = None


def sha256(data: bytes) -> Hash:
    """Hash ``data``, as ``hashlib.sha256`` does."""
    return (_make or _openssl())(data)


def prefer_interpreter() -> None:
    """Use the interpreter's implementation from now on, unless OpenSSL is already in use.

    For short programs.
    """
    global _make  # noqa: PLW0603 - one choice for the whole process
    if _make is None:
        _make = _find_interpreter() or _openssl()


def _openssl() -> Callable[[bytes], Hash]:
    global _make  # noqa: PLW0603 - as above
    from hashlib import sha256 as found

    _make = found
    return found


def _find_interpreter() -> Callable[[bytes], Hash] | None:
    # `_sha256` up to Python 3.11, `_sha2` since 3.12. A distribution may omit them.
    for name in ("_sha256", "_sha2"):
        try:
            found: Callable[[bytes], Hash] = __import__(name).sha256
        except ImportError:
            continue
        return found
    return None
