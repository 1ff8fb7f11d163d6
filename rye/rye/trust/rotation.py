"""Replacing the user's own key, and revoking keys.

A rotation makes a new key and signs with it what the old key had signed. The old key stays trusted,
because others still have files that it signed, until it is revoked. Its private half is removed: it
is not needed any more, and it may be the one that leaked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from lilux.files.atomic import atomic_write
from lilux.primitives.errors import KeyFileError
from lilux.primitives.signing import compute_key_fingerprint, load_keypair, save_keypair
from lilux.record import Record, replaced

from rye.context import Context
from rye.errors import KeyStoreError, RyeError
from rye.spaces.resolver import Resolver
from rye.trust.data_list import SUFFIX
from rye.trust.key_format import FINGERPRINT, render_trusted_key, time_now, trusted_key
from rye.trust.key_source import OWN_NAME, KeyEntry, is_own_name
from rye.trust.operations import ItemReport, verify_all, verify_paths
from rye.trust.revocation import Revocation, write_revocation
from rye.trust.signer import Signer
from rye.trust.store import TrustStore


class Rotation(Record, frozen=True, kw_only=True):
    """What a rotation did."""

    old: str
    new: str
    signed: tuple[str, ...]
    """The ids of the items that the new key has signed instead of the old one."""
    left: tuple[str, ...]
    """The ids of the items that name the old key and were left alone: they were changed after they
    were signed, or the old key is revoked, so that somebody else may have signed them."""
    failed: tuple[RyeError, ...]
    """Why other items could not be signed again."""
    shared: Path | None
    """Where the project lists the new key; ``None`` if it does not list the old one."""
    revoked: bool
    """True if the old key was revoked before."""


class RevokedKey(Record, frozen=True, kw_only=True):
    """What a revocation did."""

    revocations: tuple[Revocation, ...]
    removed: tuple[Path, ...]
    """The files of the user that had made the key trusted."""
    items: tuple[str, ...]
    """The ids of the items that are signed by the key, and do not run any more."""


def rotate_key(context: Context) -> Rotation:
    """Replace the user's key by a new one. Raises :class:`KeyStoreError` if there is none yet."""
    store = TrustStore(context)
    old_public = _own_public_key(store.key_folder)
    old = compute_key_fingerprint(old_public)
    listed = _entry_in_project(store, old)
    # Before the new key is written: an interrupt must not leave the old one without trust.
    named = [one for one in _own_items(context) if _names(old, one[1])]
    revoked = store.revocation_of(old) is not None
    if not revoked:
        store.add(old_public, f"{OWN_NAME}, until {time_now()[:10]}")
    signer = Signer.fresh()
    try:
        save_keypair(signer.private_key, signer.public_key, store.key_folder)
    except KeyFileError as error:
        raise KeyStoreError(f"cannot replace your key: {error}") from None
    signed, failed = [], []
    for root, report in named:
        if report.verdict is None or not report.trusted:
            continue
        try:
            signer.sign_file(report.path, root, only=report.verdict.content_hash)
        except RyeError as error:
            failed.append(error)
        else:
            signed.append(report.item_id)
    shared = None
    if listed is not None:
        key = trusted_key(signer.public_key, listed.owner, time_now())
        shared = listed.path.parent / f"{key.fingerprint}.toml"
        atomic_write(shared, render_trusted_key(key))
    return Rotation(
        old=old,
        new=signer.fingerprint,
        signed=tuple(signed),
        left=tuple([report.item_id for _, report in named if not report.trusted]),
        failed=tuple(failed),
        shared=shared,
        revoked=revoked,
    )


def revoke_key(
    fingerprint: str, context: Context, *, reason: str = "", only_user: bool = False
) -> RevokedKey:
    """Refuse every signature by a key: for the user, and for all who use the project.

    Raises :class:`KeyStoreError` for the key that the user signs with, for what is not a
    fingerprint, and if a file cannot be written.
    """
    store = TrustStore(context)
    entries = [one for one in store.entries() if one.fingerprint == fingerprint]
    if any(one.own for one in entries):
        raise KeyStoreError(
            f"{fingerprint} is the key that you sign with", hint="replace it with: rye key rotate"
        )
    owner = next((one.owner for one in entries if not is_own_name(one.owner)), "")
    reports = list(_own_items(context)) if re.fullmatch(FINGERPRINT, fingerprint) else []
    items = tuple([one.item_id for _, one in reports if _names(fingerprint, one)])
    folders = [store.revocations.user]
    in_project = (context.project_path / ".ai").is_dir() and not only_user
    if in_project and store.revocations.project is not store.revocations.user:
        folders.append(store.revocations.project)
    written = tuple([write_revocation(one, fingerprint, owner, reason) for one in folders])
    return RevokedKey(revocations=written, removed=store.withdraw(fingerprint), items=items)


def _own_public_key(folder: Path) -> bytes:
    try:
        return load_keypair(folder)[1]
    except KeyFileError as error:
        raise KeyStoreError(
            f"cannot replace your key: {error.reason}", hint="create one with: rye init"
        ) from None


def _entry_in_project(store: TrustStore, fingerprint: str) -> KeyEntry | None:
    found = [one for one in store.entries() if one.fingerprint == fingerprint]
    return next((one for one in found if one.space == "project" and not one.problem), None)


def _own_items(context: Context) -> Iterator[tuple[Path, ItemReport]]:
    """Every file of the project and of the user that may be signed, with the root of its space."""
    for space in Resolver(context).spaces:
        if space.name == "system":
            continue
        for report in verify_all(context, space):
            yield space.root, report
            listed = report.path.with_name(f"{report.path.name}{SUFFIX}")
            if listed.is_file():
                for one in verify_paths([listed], context):
                    yield space.root, replaced(one, item_id=f"{report.item_id} (its files)")


def _names(fingerprint: str, report: ItemReport) -> bool:
    """True if the signature line names the key, which may not have made the signature."""
    return report.verdict is not None and report.verdict.fingerprint == fingerprint
