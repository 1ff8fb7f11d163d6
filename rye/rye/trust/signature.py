"""The signature line: finding it, parsing it, writing it. No I/O, and no decision about trust.

::

    # rye:signed:20261103T142530Z:9f86d0…:mTq3…==:4be1c20d9a7f3358
    │            │                │       │       └ fingerprint of the key, 16 hex digits
    │            │                │       └ Ed25519 signature, padded base64url
    │            │                └ SHA-256 of all the other bytes of the file, lower-case hex
    │            └ UTC in the basic format of ISO 8601, which has no colons, so that the line can be
    │              split at its colons
    └ the comment sign of the file's language, and one space

The line has exactly one place: line 1, or line 2 after a shebang. A byte order mark may come before
either. The hash covers the mark and the shebang. The same text anywhere else is content, and is
hashed. The line also has exactly one spelling: with a trailing space or a capital letter, it is not
a signature line. It ends in ``\\n`` or ``\\r\\n``.

The key signs ``sha256("{timestamp}:{content hash}")``, so neither can be replaced. It signs the
content, not a path or a name: the same bytes are valid in another place. Which of two signed
contents an id stands for is pinned by the lockfile.
"""

from __future__ import annotations

import functools
import hashlib
import re
from datetime import UTC, datetime
from typing import NamedTuple

from lilux.record import Record

TIMESTAMP_FORMAT = "%Y%m%dT%H%M%SZ"

_PREFIX = rb"(?:\xef\xbb\xbf)?(?:#![^\n]*\n)?"
_BARE_SHEBANG = rb"(?:\xef\xbb\xbf)?#![^\n]*"
# 64 bytes in base64 leave four unused bits in the last digit, which are zero in only one spelling.
_FIELDS = (
    rb"rye:signed:([0-9]{8}T[0-9]{6}Z):([0-9a-f]{64}):([A-Za-z0-9_-]{85}[AQgw]==):([0-9a-f]{16})"
)


class SignatureLine(Record, frozen=True, kw_only=True):
    """The fields of a signature line, not verified."""

    timestamp: str
    content_hash: str
    signature: str
    fingerprint: str

    @property
    def signed_digest(self) -> str:
        """The hex digest that the key signed."""
        return signed_digest(self.timestamp, self.content_hash)

    def render(self, comment: str) -> str:
        """Return the line without its line ending."""
        return (
            f"{comment} rye:signed:{self.timestamp}:{self.content_hash}"
            f":{self.signature}:{self.fingerprint}"
        )


class SplitItem(NamedTuple):
    """An item and its signature line, which is ``None`` if all bytes are content."""

    line: SignatureLine | None
    signed_bytes: bytes
    content_hash: str


def split_signature(content: bytes, comment: str) -> SplitItem:
    """Separate the signature line from the rest of ``content``, which its hash covers."""
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
    """True if the place of the signature line has a malformed one."""
    start = _start_of_line(content)
    return (
        _strict_line(comment).match(content, start) is None
        and _loose_line(comment).match(content, start) is not None
    )


def compose(
    content: bytes, comment: str, *, private_key: bytes, fingerprint: str, timestamp: str
) -> bytes:
    """Return ``content`` with a signature line by ``private_key``, which replaces an old one.

    A malformed line is replaced as well. A shebang without a line ending gets one. The new line has
    the same line ending as the first line of the file.

    Raises ``ValueError`` for a key that is not the PEM of an Ed25519 private key.
    """
    from lilux.primitives.signing import sign_hash

    if re.fullmatch(_BARE_SHEBANG, content):
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
    """Return the digest that a key signs: SHA-256 of ``{timestamp}:{content_hash}``, in hex."""
    return hashlib.sha256(f"{timestamp}:{content_hash}".encode("ascii")).hexdigest()


def timestamp_now() -> str:
    """Return the current time in the format of a signature line."""
    return datetime.now(UTC).strftime(TIMESTAMP_FORMAT)


def _start_of_line(content: bytes) -> int:
    match = re.match(_PREFIX, content)
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
