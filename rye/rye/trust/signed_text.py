"""What the user signed before: the text of each file, by its path and content hash.

It is kept in the cache of the user and is information: it shows what changed, and tells an edit of
the user's own file from a file with a signature line that was copied from elsewhere. The
signature in a text is verified again whenever the text is used.
"""

from __future__ import annotations

from pathlib import Path

from rye.cache.disk import DiskCache


def keep_signed(path: Path, content: bytes, comment: str, cache: DiskCache) -> None:
    """Keep the text of a file that the user just signed; the cache must be flushed."""
    from rye.trust.signature import split_signature

    try:
        text = content.decode()
    except UnicodeDecodeError:
        return
    cache.keep(_kind(path), split_signature(content, comment).content_hash, text)


def text_signed_at(path: Path, content_hash: str, comment: str, cache: DiskCache) -> str | None:
    """The text with this content hash that was signed at this path; ``None`` if it is not known.

    The hash is checked, so that it is the text whoever wrote the cache.
    """
    from rye.trust.signature import split_signature

    text = cache.recall(_kind(path), content_hash) if content_hash else None
    if not isinstance(text, str):
        return None
    found = split_signature(text.encode(), comment).content_hash
    return text if found == content_hash else None


def signed_before(
    path: Path, content_hash: str, comment: str, public_key: bytes, cache: DiskCache
) -> str | None:
    """The text with this content hash that the owner of the key signed at this path.

    ``None`` if that is not known.
    """
    text = text_signed_at(path, content_hash, comment, cache)
    if text is None:
        return None
    return text if hash_signed_by(text.encode(), comment, public_key) == content_hash else None


def hash_signed_by(content: bytes, comment: str, public_key: bytes) -> str:
    """The content hash in the signature line, if the key made the line; otherwise empty.

    The content itself may have been changed since.
    """
    from lilux.primitives.signing import compute_key_fingerprint, verify_signature

    from rye.trust.signature import split_signature

    line = split_signature(content, comment).line
    if line is None or line.fingerprint != compute_key_fingerprint(public_key):
        return ""
    made = verify_signature(line.signed_digest, line.signature, public_key)
    return line.content_hash if made else ""


def _kind(path: Path) -> str:
    return f"signed {path}"
