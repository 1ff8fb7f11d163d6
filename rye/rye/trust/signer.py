"""Signing files: a key writes a signature line into a file, atomically."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from lilux.files.atomic import atomic_write
from lilux.primitives.errors import KeyFileError
from lilux.primitives.signing import (
    compute_key_fingerprint,
    ensure_keypair,
    generate_keypair,
    verify_signature,
)
from lilux.record import Record, field

from rye.errors import ItemFormatError, KeyStoreError
from rye.formats import FALLBACK, format_of, may_be_item
from rye.items.reader import read_item
from rye.trust.signature import compose, split_signature, timestamp_now

# Never items, but files that tools may depend on, in formats with ``#`` comments.
_SIGNABLE_DEPENDENCIES = frozenset({".toml", ".pyi", ".files"})


class SignedItem(Record, frozen=True, kw_only=True):
    """A file with a valid signature line."""

    path: Path
    fingerprint: str
    content_hash: str
    changed: bool
    """``False`` if the file already had a valid line by the same key."""


class Signer(Record, frozen=True, kw_only=True):
    """A key pair in memory."""

    private_key: bytes = field(repr=False)
    public_key: bytes

    @classmethod
    def of_user(cls, key_folder: Path) -> Signer:
        """Return the user's own key pair, created on first use; raises :class:`KeyStoreError`."""
        try:
            private_key, public_key = ensure_keypair(key_folder)
        except KeyFileError as error:
            raise KeyStoreError.of_problem(f"cannot use your key: {error}") from None
        return cls(private_key=private_key, public_key=public_key)

    @classmethod
    def fresh(cls) -> Signer:
        """Return a new key pair, which is not stored."""
        private_key, public_key = generate_keypair()
        return cls(private_key=private_key, public_key=public_key)

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the key."""
        return compute_key_fingerprint(self.public_key)

    def sign_file(self, path: Path, space_root: Path, *, only: str = "") -> SignedItem:
        """Write a signature line into the file, or replace its line; the mode is kept.

        A file with a valid line by this key is left alone. ``only`` is the hash of the content that
        may be signed, without a signature line; by default any. Raises what ``read_item`` raises,
        and :class:`ItemFormatError` for a file that cannot have a line, cannot be written or has
        another content.
        """
        # A link is followed: the file is replaced, and the link stays.
        real = Path(os.path.realpath(path))
        content = read_item(real, Path(os.path.realpath(space_root))).content
        comment = _comment_of(path)
        if only and split_signature(content, comment).content_hash != only:
            raise ItemFormatError(
                path, "was changed meanwhile and was not signed", hint="read it, then sign it"
            )
        changed = not self._has_signed(content, comment)
        if changed:
            content = compose(
                content,
                comment,
                private_key=self.private_key,
                fingerprint=self.fingerprint,
                timestamp=timestamp_now(),
            )
            _replace(real, content)
        return SignedItem(
            path=path,
            fingerprint=self.fingerprint,
            content_hash=split_signature(content, comment).content_hash,
            changed=changed,
        )

    def _has_signed(self, content: bytes, comment: str) -> bool:
        line, _, content_hash = split_signature(content, comment)
        return (
            line is not None
            and line.content_hash == content_hash
            and line.fingerprint == self.fingerprint
            and verify_signature(line.signed_digest, line.signature, self.public_key)
        )


def _comment_of(path: Path) -> str:
    found = format_of(path)
    suffix = path.suffix
    if found is FALLBACK and not may_be_item(suffix) and suffix not in _SIGNABLE_DEPENDENCIES:
        raise ItemFormatError(
            path,
            f"cannot have a signature line, because {suffix} files have no comments",
            hint="use a format that has comments",
        )
    return found.comment


def _replace(path: Path, content: bytes) -> None:
    try:
        atomic_write(path, content, mode=stat.S_IMODE(path.stat().st_mode))
    except OSError as error:
        reason = (error.strerror or "input/output error").lower()
        raise ItemFormatError(
            path, f"cannot be written ({reason})", hint="sign it where you can write to it"
        ) from error
