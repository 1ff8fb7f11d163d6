"""The signature line: finding it, reading it, writing it. No I/O, and no opinion about keys.

::

    # rye:signed:20261103T142530Z:9f86d0…:mTq3…==:4be1c20d9a7f3358
    │            │                │       │       └ fingerprint of the key, 16 hex digits
    │            │                │       └ Ed25519 signature, padded base64url
    │            │                └ SHA-256 of all the other bytes of the file, lower-case hex
    │            └ UTC in the basic format of ISO 8601, which has no colons, so that the line can be
    │              taken apart at its colons
    └ the comment sign of the file's language, and one blank

There is exactly one place for it: line 1, or line 2 after a shebang. A byte order mark may stand
before either. The hash covers mark and shebang; the same text anywhere else is plain content, and
hashed as such. There is exactly one spelling too: whatever differs from it, be it a trailing blank
or a capital, is no signature line. The line ends in ``\\n`` or ``\\r\\n``.

The key signs ``sha256("{timestamp}:{content hash}")``, so neither can be exchanged. What is signed
is content, not a place or a name: the same bytes with the same line are as good elsewhere. Which
of two signed contents an id stands for is pinned by the lockfile.
"""

from __future__ import annotations

import functools
import hashlib
import re
from datetime import UTC, datetime
from typing import NamedTuple

from lilux.patterns import pattern
from lilux.record import Record

TIMESTAMP_FORMAT = "%Y%m%dT%H%M%SZ"

_PREFIX = pattern(rb"(?:\xef\xbb\xbf)?(?:#![^\n]*\n)?")
_BARE_SHEBANG = pattern(rb"(?:\xef\xbb\xbf)?#![^\n]*")
# 64 bytes in base64 leave four idle bits in the last digit; they are zero in one spelling only.
_FIELDS = (
    rb"rye:signed:([0-9]{8}T[0-9]{6}Z):([0-9a-f]{64}):([A-Za-z0-9_-]{85}[AQgw]==):([0-9a-f]{16})"
)


class SignatureLine(Record, frozen=True, kw_only=True):
    """What a signature line says. Whether it is true is another question."""

    timestamp: str
    content_hash: str
    signature: str
    fingerprint: str

    @property
    def signed_digest(self) -> str:
        """The hex digest that the key has signed."""
        return signed_digest(self.timestamp, self.content_hash)

    def render(self, comment: str) -> str:
        """The line, without its end."""
        return (
            f"{comment} rye:signed:{self.timestamp}:{self.content_hash}"
            f":{self.signature}:{self.fingerprint}"
        )


class SplitItem(NamedTuple):
    """An item taken apart: ``line`` is ``None`` if there is none, and all bytes are content."""

    line: SignatureLine | None
    signed_bytes: bytes
    content_hash: str


def split_signature(content: bytes, comment: str) -> SplitItem:
    """Take the signature line out of ``content``; the rest is what its hash has to cover."""
    start = _start_of_line(content)
    match = _strict_line(comment).match(content, start)
    if match is None:
        return SplitItem(None, content, hashlib.sha256(content).hexdigest())
    rest = content[:start] + content[match.end() :]
    timestamp, content_hash, signature, fingerprint = (
        part.decode("ascii") for part in match.groups()
    )
    line = SignatureLine(
        timestamp=timestamp,
        content_hash=content_hash,
        signature=signature,
        fingerprint=fingerprint,
    )
    return SplitItem(line, rest, hashlib.sha256(rest).hexdigest())


def has_broken_line(content: bytes, comment: str) -> bool:
    """Tell whether something that was meant as a signature line stands in its place, misspelt."""
    start = _start_of_line(content)
    return (
        _strict_line(comment).match(content, start) is None
        and _loose_line(comment).match(content, start) is not None
    )


def compose(
    content: bytes, comment: str, *, private_key: bytes, fingerprint: str, timestamp: str
) -> bytes:
    """Give ``content`` with a signature line by ``private_key``, in place of the one it had.

    A misspelt line in that place is replaced as well. A shebang that is the whole file gets an end
    of line. The new line ends as the first line of the file does.

    Raises ``ValueError`` for a key that is not the PEM of an Ed25519 private key.
    """
    from lilux.primitives.signing import sign_hash

    if _BARE_SHEBANG.fullmatch(content):
        content += b"\n"
    start = _start_of_line(content)
    head, rest = content[:start], content[start:]
    old = _loose_line(comment).match(rest)
    if old is not None:
        rest = rest[old.end() :]
    content_hash = hashlib.sha256(head + rest).hexdigest()
    line = SignatureLine(
        timestamp=timestamp,
        content_hash=content_hash,
        signature=sign_hash(signed_digest(timestamp, content_hash), private_key),
        fingerprint=fingerprint,
    )
    end = "\r\n" if _first_line_end(content) == b"\r\n" else "\n"
    return head + f"{line.render(comment)}{end}".encode() + rest


def signed_digest(timestamp: str, content_hash: str) -> str:
    """The digest that stands for both: SHA-256 of ``{timestamp}:{content_hash}``, in hex."""
    return hashlib.sha256(f"{timestamp}:{content_hash}".encode("ascii")).hexdigest()


def timestamp_now() -> str:
    """The present second as a signature line spells it."""
    return datetime.now(UTC).strftime(TIMESTAMP_FORMAT)


def _start_of_line(content: bytes) -> int:
    match = _PREFIX.match(content)
    return match.end() if match is not None else 0


def _first_line_end(content: bytes) -> bytes:
    index = content.find(b"\n")
    return b"\r\n" if index > 0 and content[index - 1] == 0x0D else b"\n"


@functools.cache
def _strict_line(comment: str) -> re.Pattern[bytes]:
    return re.compile(re.escape(comment.encode()) + rb" " + _FIELDS + rb"\r?\n")


@functools.cache
def _loose_line(comment: str) -> re.Pattern[bytes]:
    return re.compile(
        rb"[ \t]*" + re.escape(comment.encode()) + rb"[ \t]*rye:signed:[^\n]*(?:\n|\Z)",
        re.IGNORECASE,
    )
