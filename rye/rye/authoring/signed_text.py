"""What the user signed before: the text of each signed file, kept by its content hash.

It is kept in the cache of the user, and is information: it shows what changed, and tells that a pin
is of content that the user signed. A signature in it is verified like any other.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from lilux.primitives.signing import verify_signature

from rye.cache.disk import DiskCache
from rye.trust.signature import split_signature
from rye.trust.signer import Signer

_KIND = "signed text"
MAX_LINES = 60


def keep_signed(content: bytes, comment: str, cache: DiskCache) -> None:
    """Keep the text of a file that was just signed; the cache must be flushed."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return
    cache.keep(_KIND, split_signature(content, comment).content_hash, text)


def signed_before(content_hash: str, comment: str, signer: Signer, cache: DiskCache) -> str | None:
    """The text with this content hash, if the signer signed it; ``None`` if that is unknown."""
    text = cache.recall(_KIND, content_hash)
    if not isinstance(text, str):
        return None
    return text if own_hash(text.encode(), comment, signer) == content_hash else None


def own_hash(content: bytes, comment: str, signer: Signer) -> str:
    """The content hash in the signature line, if the signer made the line; otherwise empty.

    The content itself may have been changed since.
    """
    line = split_signature(content, comment).line
    if line is None or line.fingerprint != signer.fingerprint:
        return ""
    made = verify_signature(line.signed_digest, line.signature, signer.public_key)
    return line.content_hash if made else ""


def changes(old: str, new: str, comment: str) -> Iterator[str]:
    """The lines that differ, as in a unified diff without its head; at most ``MAX_LINES``."""
    before, after = [_lines(text, comment) for text in (old, new)]
    lines = list(difflib.unified_diff(before, after, n=1, lineterm=""))[2:]
    shown = [line for line in lines if not line.startswith("@@")]
    yield from shown[:MAX_LINES]
    if shown[MAX_LINES:]:
        yield f"… and {len(shown) - MAX_LINES} more lines"


def _lines(text: str, comment: str) -> list[str]:
    return split_signature(text.encode(), comment).signed_bytes.decode().splitlines()
