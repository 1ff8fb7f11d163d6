"""Verifying an item: its bytes, a comment sign and the trust store in; a verdict out."""

from __future__ import annotations

from enum import Enum

from lilux.record import Record
from lilux.sha256 import sha256

from rye.errors import (
    ChangedError,
    ForgedError,
    KeyStoreError,
    RevokedKeyError,
    TrustError,
    UnsignedError,
    UntrustedKeyError,
)
from rye.items.element import ItemFile
from rye.trust.key_source import KeyEntry, Place
from rye.trust.store import TrustStore

# Far more than the items of a machine; the bound keeps a server from growing without end.
_MAX_VERDICTS = 16_384


class Standing(Enum):
    """The possible results of a verification."""

    TRUSTED = "trusted"
    UNSIGNED = "unsigned"
    CHANGED = "changed"
    FORGED = "forged"
    UNTRUSTED = "untrusted"
    REVOKED = "revoked"


class Verdict(Record, frozen=True, kw_only=True):
    """The result of verifying an item by its bytes, its signature line and the trust store."""

    standing: Standing
    content_hash: str
    """SHA-256 of the content without the signature line, whatever the standing."""
    fingerprint: str = ""
    """The key that the signature line names."""
    signed_at: str = ""
    """The timestamp of the signature line."""

    @property
    def trusted(self) -> bool:
        """True if the item may run."""
        return self.standing is Standing.TRUSTED


def judge(file: ItemFile, comment: str, store: TrustStore) -> Verdict:
    """Return the verdict about an item. Only keys are read.

    The path matters only for the system space that contains it; see :meth:`TrustStore.place`.
    Judging the same bytes again costs a hash and a lookup while the state of the store is the same.
    The store notices changes in its ``stamp()``: call that once before the items of one call.
    """
    verdicts = store.verdicts
    place = store.place(file.path)
    key = (sha256(file.content).digest(), comment, place)
    verdict = verdicts.get(key)
    if verdict is None:
        verdict = _judge(file.content, comment, store, place)
        if len(verdicts) >= _MAX_VERDICTS:
            verdicts.clear()
        verdicts[key] = verdict
    return verdict


def verify_item(file: ItemFile, comment: str, store: TrustStore, item_id: str) -> Verdict:
    """Return the verdict about a trusted item; raise an error for any other.

    Raises :class:`UnsignedError`, :class:`ChangedError`, :class:`ForgedError`,
    :class:`UntrustedKeyError` or :class:`RevokedKeyError`, each ending in the command that fixes
    it, or :class:`KeyStoreError` if the entry of the key in the trust store cannot be used.
    """
    verdict = judge(file, comment, store)
    if verdict.trusted:
        return verdict
    raise refusal(file, comment, store, item_id, verdict)


def refusal(
    file: ItemFile, comment: str, store: TrustStore, item_id: str, verdict: Verdict
) -> TrustError:
    """Return the error that says why an item with this verdict may not run."""
    import shlex

    path, key = file.path, verdict.fingerprint
    sign = f"rye sign {shlex.quote(str(path))}"
    if verdict.standing is Standing.UNTRUSTED:
        return _untrusted(item_id, file, key, store)
    if verdict.standing is Standing.REVOKED:
        return _revoked(item_id, file, key, store)
    if verdict.standing is Standing.CHANGED:
        by_author = changed_by_author(file, comment, store)
        return ChangedError(
            f"{item_id} changed since you signed it at {verdict.signed_at}: {path}"
            if by_author
            else f"{item_id} was changed after key {key} signed it at {verdict.signed_at}: {path}",
            hint=f"read what changed, then sign it again with: {sign}",
        )
    if verdict.standing is Standing.FORGED:
        return ForgedError(
            f"{item_id} has a signature that key {key} did not make: {path}",
            hint="get the file from its author again; "
            f"or read it, and if you trust it, sign it with: {sign}",
        )
    from rye.trust.signature import has_broken_line

    if has_broken_line(file.content, comment):
        return UnsignedError(
            f"{item_id} is not signed: {path} has a malformed signature line",
            hint=f"read the file, then sign it with: {sign}",
        )
    return UnsignedError(
        f"{item_id} is not signed: {path}", hint=f"read the file, then sign it with: {sign}"
    )


def changed_by_author(file: ItemFile, comment: str, store: TrustStore) -> bool:
    """True if the user signed an earlier content of this file, which was changed since.

    A signature line of the user that was copied from another file is not enough.
    """
    from rye.trust.signature import split_signature
    from rye.trust.signed_text import signed_before

    line = split_signature(file.content, comment).line
    entry = None if line is None else store.find(line.fingerprint, store.place(file.path))
    if line is None or entry is None or not entry.own or entry.problem:
        return False
    key, cache = entry.public_key, store.disk_cache
    return signed_before(file.path, line.content_hash, comment, key, cache) is not None


def _judge(content: bytes, comment: str, store: TrustStore, place: Place) -> Verdict:
    digest = _hash(content)
    known = _recalled(digest, comment, store, place)
    return known or _verified(content, digest, comment, store, place)


def _recalled(digest: str, comment: str, store: TrustStore, place: Place) -> Verdict | None:
    """Return the verdict if the signature was verified before, under the key of the same name.

    The store decides on every call whether that key is trusted; that is never remembered.
    """
    known = store.disk_cache.recall(f"signature {comment}", digest)
    if not isinstance(known, dict):
        return None
    entry = store.find(known["fingerprint"], place)
    if entry is None or entry.problem or _hash(entry.public_key) != known["public_key_sha256"]:
        return None
    return Verdict(
        standing=_standing_of_key(entry, place),
        content_hash=known["content_hash"],
        fingerprint=known["fingerprint"],
        signed_at=known["signed_at"],
    )


def _verified(
    content: bytes, digest: str, comment: str, store: TrustStore, place: Place
) -> Verdict:
    from rye.trust.signature import split_signature

    line, _, content_hash = split_signature(content, comment)
    if line is None:
        return Verdict(standing=Standing.UNSIGNED, content_hash=content_hash)
    if line.content_hash != content_hash:
        standing = Standing.CHANGED
    else:
        entry = store.find(line.fingerprint, place)
        standing = _standing_of_signature(line.signed_digest, line.signature, entry, place)
        if entry is None and store.revocation_of(line.fingerprint) is not None:
            standing = Standing.REVOKED
        # A valid signature by an untrusted key is remembered as well.
        if entry is not None and not entry.problem and standing is not Standing.FORGED:
            known = {
                "content_hash": content_hash,
                "fingerprint": line.fingerprint,
                "signed_at": line.timestamp,
                "public_key_sha256": _hash(entry.public_key),
            }
            store.disk_cache.keep(f"signature {comment}", digest, known)
    return Verdict(
        standing=standing,
        content_hash=content_hash,
        fingerprint=line.fingerprint,
        signed_at=line.timestamp,
    )


def _standing_of_signature(
    digest: str, signature: str, entry: KeyEntry | None, place: Place
) -> Standing:
    from lilux.primitives.signing import verify_signature

    if entry is None or entry.problem:
        return Standing.UNTRUSTED
    # An untrusted key is verified too, so that the user is not asked to trust a key because of
    # a signature that it did not make.
    if not verify_signature(digest, signature, entry.public_key):
        return Standing.FORGED
    return _standing_of_key(entry, place)


def _standing_of_key(entry: KeyEntry, place: Place) -> Standing:
    if entry.revoked is not None:
        return Standing.REVOKED
    return Standing.TRUSTED if entry.is_trusted_in(place) else Standing.UNTRUSTED


def _hash(data: bytes) -> str:
    return sha256(data).hexdigest()


def _removed(item_id: str, file: ItemFile, key: str, removed: str) -> TrustError:
    import shlex

    return UntrustedKeyError(
        f"{item_id} is signed by key {key}, which you stopped trusting on {removed[:10]}: "
        f"{file.path}",
        hint="get the file signed by somebody whom you trust; or read it, and if you trust it, "
        f"sign it with: rye sign {shlex.quote(str(file.path))}",
    )


def _revoked(item_id: str, file: ItemFile, key: str, store: TrustStore) -> TrustError:
    import shlex

    revocation = store.revocation_of(key)
    words = "" if revocation is None else revocation.words
    owner = f" of {revocation.owner}" if revocation is not None and revocation.owner else ""
    return RevokedKeyError(
        f"{item_id} is signed by key {key}{owner}, which was revoked{words}: {file.path}",
        hint="get the file from its author, signed again with another key; "
        f"or read it, and if you trust it, sign it with: rye sign {shlex.quote(str(file.path))}",
    )


def _untrusted(item_id: str, file: ItemFile, key: str, store: TrustStore) -> TrustError:
    entry = store.find(key, store.place(file.path))
    if (entry is None or not entry.problem) and (removed := store.removed_on(key)):
        return _removed(item_id, file, key, removed)
    if entry is None:
        return UntrustedKeyError(
            f"{item_id} is signed by key {key}, which you do not trust: {file.path}",
            hint="if you know whose key it is, get the public key from its owner, "
            "and trust it with: rye trust add PUBLIC_KEY.pem",
        )
    if entry.problem:
        return KeyStoreError.of_problem(f"{item_id} is signed by key {key}, but {entry.problem}")
    if entry.within is not None:
        import shlex

        return UntrustedKeyError(
            f"{item_id} is signed by key {key}, which is trusted for the bundle {entry.bundle} "
            f"in {entry.within}, but not for this copy: {file.path}",
            hint="read the file, and if you trust it, sign it with: "
            f"rye sign {shlex.quote(str(file.path))}",
        )
    whose = f"{entry.owner}'" if entry.owner.endswith("s") else f"{entry.owner}'s"
    return UntrustedKeyError(
        f"{item_id} is signed by key {key}, which this project lists as {whose}; "
        f"you have not approved it: {file.path}",
        hint=f"if you know that the key is theirs, approve it with: rye trust add {key}",
    )
