"""SHA-256, by OpenSSL or by the interpreter itself.

OpenSSL's is several times as fast, but takes milliseconds to load: more than a program that hashes
a few small files and ends would ever gain by it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    class Hash(Protocol):
        """The hash of the bytes that were given."""

        def digest(self) -> bytes:
            """32 bytes."""

        def hexdigest(self) -> str:
            """64 lower-case hex digits."""


_make: Callable[[bytes], Hash] | None = None


def sha256(data: bytes) -> Hash:
    """What ``hashlib.sha256`` gives."""
    return (_make or _openssl())(data)


def prefer_interpreter() -> None:
    """Hash by the interpreter's own code from now on, unless OpenSSL's is in use already.

    For a program that does one thing and ends.
    """
    global _make  # noqa: PLW0603 - one choice for the whole process
    if _make is None:
        _make = _interpreters() or _openssl()


def _openssl() -> Callable[[bytes], Hash]:
    global _make  # noqa: PLW0603 - as above
    from hashlib import sha256 as found

    _make = found
    return found


def _interpreters() -> Callable[[bytes], Hash] | None:
    # One name up to Python 3.11, the other since; `random` looks for them in the same way. A
    # distribution may have left them out.
    for name in ("_sha256", "_sha2"):
        try:
            found: Callable[[bytes], Hash] = __import__(name).sha256
        except ImportError:
            continue
        return found
    return None
