"""The judgement: bytes, a comment sign and keys in; a verdict out."""

from __future__ import annotations

from lilux.sha256 import sha256

from rye.errors import (
    ChangedError,
    ForgedError,
    KeyStoreError,
    TrustError,
    UnsignedError,
    UntrustedKeyError,
)
from rye.items.element import ItemFile
from rye.trust.key_source import KeyEntry, Place
from rye.trust.model import Standing, Verdict
from rye.trust.store import TrustStore

# Far more than a machine has items; a bound only so that a server cannot grow without end.
_MAX_VERDICTS = 16_384


def judge(file: ItemFile, comment: str, store: TrustStore) -> Verdict:
    """Say where an item stands. Nothing is read but keys.

    Of the path, it only matters which system space it is in: see :meth:`TrustStore.place`.
    What was judged before by the same state of the store costs a hash and a lookup. The store
    sees changes when its ``stamp()`` is called: call that once before the items of one call.
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
    """Judge an item that is about to run, and let only a trusted one pass.

    Raises :class:`UnsignedError`, :class:`ChangedError`, :class:`ForgedError` or
    :class:`UntrustedKeyError`, each ending in the command that mends it, or
    :class:`KeyStoreError` if the trust store has the key in an entry that cannot be used.
    """
    verdict = judge(file, comment, store)
    if verdict.trusted:
        return verdict
    raise refusal(file, comment, store, item_id, verdict)


def refusal(
    file: ItemFile, comment: str, store: TrustStore, item_id: str, verdict: Verdict
) -> TrustError:
    """The error that tells why an item with this verdict may not run."""
    import shlex

    path, key = file.path, verdict.fingerprint
    sign = f"rye sign {shlex.quote(str(path))}"
    if verdict.standing is Standing.UNTRUSTED:
        return _untrusted(item_id, file, key, store)
    if verdict.standing is Standing.CHANGED:
        return ChangedError(
            f"{item_id} was changed after key {key} signed it at {verdict.signed_at}: {path}",
            hint=f"read what changed, then sign it again with: {sign}",
        )
    if verdict.standing is Standing.FORGED:
        return ForgedError(
            f"{item_id} bears a signature that key {key} did not make: {path}",
            hint="get the file from its author again; "
            f"or read it, and if you vouch for it, sign it with: {sign}",
        )
    from rye.trust.signature import has_broken_line

    if has_broken_line(file.content, comment):
        return UnsignedError(
            f"{item_id} is not signed: {path} has a signature line that is misspelt",
            hint=f"read the file, then sign it with: {sign}",
        )
    return UnsignedError(
        f"{item_id} is not signed: {path}", hint=f"read the file, then sign it with: {sign}"
    )


def _judge(content: bytes, comment: str, store: TrustStore, place: Place) -> Verdict:
    digest = _hash(content)
    known = _recalled(digest, comment, store, place)
    return known or _worked_out(content, digest, comment, store, place)


def _recalled(digest: str, comment: str, store: TrustStore, place: Place) -> Verdict | None:
    """By a signature that was verified before, under a key that must be the same now.

    Whether that key counts is not remembered, but asked of the store as ever.
    """
    known = store.disk_cache.recall(f"signature {comment}", digest)
    if not isinstance(known, dict):
        return None
    entry = store.find(known["fingerprint"], place)
    if entry is None or entry.problem or _hash(entry.public_key) != known["public_key_sha256"]:
        return None
    return Verdict(
        standing=Standing.TRUSTED if entry.counts_in(place) else Standing.UNTRUSTED,
        content_hash=known["content_hash"],
        fingerprint=known["fingerprint"],
        signed_at=known["signed_at"],
    )


def _worked_out(
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
        # Untrusted is also what bears a good signature by a key that does not count here.
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
    # Also with a key that does not count: nobody should be told to trust a key for a signature
    # that it did not make.
    if not verify_signature(digest, signature, entry.public_key):
        return Standing.FORGED
    return Standing.TRUSTED if entry.counts_in(place) else Standing.UNTRUSTED


def _hash(data: bytes) -> str:
    return sha256(data).hexdigest()


def _untrusted(item_id: str, file: ItemFile, key: str, store: TrustStore) -> TrustError:
    entry = store.find(key, store.place(file.path))
    if entry is None:
        return UntrustedKeyError(
            f"{item_id} is signed by key {key}, which nobody here vouches for: {file.path}",
            hint="if you know whose it is, get the public key from its owner, "
            "and trust it with: rye trust add PUBLIC_KEY.pem",
        )
    if entry.problem:
        return KeyStoreError(f"{item_id} is signed by key {key}, but {entry.problem}")
    if entry.within is not None:
        import shlex

        return UntrustedKeyError(
            f"{item_id} is signed by key {key}, which the bundle {entry.bundle} brings "
            f"for what is below {entry.within}, and not for this copy: {file.path}",
            hint="read the file, and if you vouch for it here, sign it with: "
            f"rye sign {shlex.quote(str(file.path))}",
        )
    return UntrustedKeyError(
        f"{item_id} is signed by key {key}, which the project brings as that of {entry.owner!r} "
        f"and you have not approved: {file.path}",
        hint=f"if you know that it is, approve it with: rye trust add {key}",
    )
