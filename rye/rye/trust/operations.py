"""Signing, trusting and verifying as functions that return records and print nothing.

A :class:`~pathlib.Path` names a file, a ``str`` names an item (or a key by its fingerprint).
Relative paths are relative to the project.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from lilux.record import Record

from rye.context import Context
from rye.errors import ItemNotFoundError, KeyStoreError, RyeError
from rye.formats import format_of
from rye.items.reader import read_item
from rye.spaces.model import Resolution, Space
from rye.spaces.resolver import Resolver
from rye.trust.data_list import sign_data_files
from rye.trust.key_folder import KeyFileProblem, read_key_file
from rye.trust.key_format import (
    EntryFormatError,
    TrustedKey,
    is_public_key,
    parse_trusted_key,
    parse_trusted_keys,
    render_trusted_keys,
    time_now,
)
from rye.trust.key_source import KeyEntry, is_own_name
from rye.trust.signer import SignedItem, Signer
from rye.trust.store import TrustStore
from rye.trust.verify import Verdict, judge, refusal

MAX_EXPORT_BYTES = 1024 * 1024
_HEADER = b"[[key]]"


class ItemReport(Record, frozen=True, kw_only=True):
    """The result of verifying one file."""

    item_id: str
    """The id of a file in a space; the path of any other file."""
    path: Path
    verdict: Verdict | None
    """``None`` if the file could not be read."""
    error: RyeError | None
    """The error that ``verify_item`` would raise; ``None`` if the file is trusted."""

    @property
    def trusted(self) -> bool:
        """True if the item may run."""
        return self.error is None


def sign_item(target: Path | str, context: Context) -> SignedItem:
    """Sign one item or file with the user's own key, which is created on first use.

    Idempotent: a file with a valid line by this key is left alone; any other line is replaced.
    Raises :class:`KeyStoreError` if the key cannot be used, and what resolving, reading or writing
    the file raises.
    """
    return sign_items([target], context)[0]


def sign_items(targets: Iterable[Path | str], context: Context) -> tuple[SignedItem, ...]:
    """Sign the targets in order; stop at the first that cannot be signed, and raise its error."""
    resolver = Resolver(context)
    located = [_locate(target, resolver, context) for target in targets]
    signer = Signer.of_user(TrustStore(context, spaces=resolver.spaces).key_folder)
    for path, root, _ in located:
        sign_data_files(path, root, signer)
    return tuple([signer.sign_file(path, root) for path, root, _ in located])


def trust_add(source: Path | str, context: Context, *, owner: str | None = None) -> KeyEntry:
    """Trust the key in a file, or approve the key that the project lists under a fingerprint.

    The file is a ``public_key.pem`` or the ``.toml`` of another trust store; ``owner`` replaces the
    owner that the latter names. A key that is already trusted everywhere is left alone. Raises
    :class:`KeyStoreError`.
    """
    store = TrustStore(context)
    if isinstance(source, str):
        entry = store.find(source)
        if entry is not None:
            _refuse_small_order(entry.public_key, entry.path)
        return entry if entry is not None and entry.is_trusted_in(()) else store.approve(source)
    path = Path(os.path.realpath(context.project_path / source))
    public_key, stated_owner = _read_public_key(path)
    _refuse_small_order(public_key, path)
    return store.add(public_key, stated_owner if owner is None else owner)


def trust_add_file(path: Path, context: Context, *, owner: str | None = None) -> list[KeyEntry]:
    """Trust every key in a file: one, or those of ``rye trust export``. As :func:`trust_add`."""
    real = Path(os.path.realpath(context.project_path / path))
    try:
        data = read_key_file(real, guarded=False, limit=MAX_EXPORT_BYTES)
        keys = parse_trusted_keys(data) if _HEADER in data else ()
    except KeyFileProblem as error:
        raise KeyStoreError(f"cannot trust this key: {error}") from None
    except EntryFormatError as error:
        raise KeyStoreError(
            f"cannot trust these keys: {path}: {error}",
            hint="export them again with: rye trust export",
        ) from None
    if not keys:
        return [trust_add(path, context, owner=owner)]
    if owner is not None:
        raise KeyStoreError(f"{path} names the owners of its keys", hint="leave --owner out")
    for key in keys:
        _refuse_small_order(key.public_key, real)
    store = TrustStore(context)
    return [store.add(key.public_key, key.owner) for key in keys]


def trust_export(context: Context, owner: str = "") -> bytes:
    """Return a file for :func:`trust_add_file`, with every key that is trusted in all projects.

    The user's own key has the owner that the project names, or else ``owner``.
    """
    entries = [entry for entry in trust_list(context) if entry.is_trusted_in(())]
    named = {one.fingerprint: one.owner for one in entries if not is_own_name(one.owner)}
    keys = {
        entry.fingerprint: TrustedKey(
            fingerprint=entry.fingerprint,
            owner=named.get(entry.fingerprint) or (owner if entry.own else ""),
            public_key=entry.public_key,
            created=entry.created or time_now(),
        )
        for entry in entries
    }
    return render_trusted_keys(keys.values())


def trust_remove(fingerprint: str, context: Context) -> tuple[Path, ...]:
    """Stop trusting a key; return the removed files. Raises :class:`KeyStoreError`."""
    return TrustStore(context).remove(fingerprint)


def trust_list(context: Context) -> tuple[KeyEntry, ...]:
    """Return every key of the three spaces, with its problem if it cannot be used."""
    return TrustStore(context).entries()


def verify_paths(targets: Iterable[Path | str], context: Context) -> tuple[ItemReport, ...]:
    """Verify files or items. A bad file is reported; an id that cannot be resolved is raised."""
    resolver = Resolver(context)
    store = TrustStore(context, spaces=resolver.spaces)
    located = [_locate(target, resolver, context) for target in targets]
    return tuple([_report(path, root, item_id, store) for path, root, item_id in located])


def verify_all(
    context: Context, space: Space | None = None, store: TrustStore | None = None
) -> tuple[ItemReport, ...]:
    """Verify every item of one space, or of all, including items that another space shadows."""
    resolver = Resolver(context)
    if store is None:
        store = TrustStore(context, spaces=resolver.spaces)
    return tuple(
        [
            _report(found.path, found.space.root, found.item_id, store)
            for each in (resolver.spaces if space is None else (space,))
            for found in resolver.iter_items(each)
            if found.path is not None
        ]
    )


def _report(path: Path, space_root: Path, item_id: str, store: TrustStore) -> ItemReport:
    try:
        file = read_item(path, space_root)
    except RyeError as error:
        return ItemReport(item_id=item_id, path=path, verdict=None, error=error)
    comment = format_of(path).comment
    verdict = judge(file, comment, store)
    refused = None if verdict.trusted else refusal(file, comment, store, item_id, verdict)
    return ItemReport(item_id=item_id, path=path, verdict=verdict, error=refused)


def _locate(target: Path | str, resolver: Resolver, context: Context) -> tuple[Path, Path, str]:
    """Return the path of a target, the folder that must contain it, and its id."""
    if isinstance(target, str):
        return _location_of(resolver.resolve(target))
    path = Path(os.path.normpath(context.project_path / target))
    for space in resolver.spaces:
        if path.is_relative_to(space.tools):
            return path, space.root, path.relative_to(space.tools).with_suffix("").as_posix()
    return path, Path(os.path.realpath(path)).parent, str(path)


def _location_of(found: Resolution) -> tuple[Path, Path, str]:
    if found.path is None:
        raise ItemNotFoundError(
            f"{found.item_id} is a primitive without a file", hint="name an item that has one"
        )
    return found.path, found.space.root, found.item_id


def _read_public_key(path: Path) -> tuple[bytes, str]:
    try:
        data = read_key_file(path, guarded=False)
        if path.suffix == ".toml":
            key = parse_trusted_key(data, path.stem)
            return key.public_key, key.owner
    except KeyFileProblem as error:
        raise KeyStoreError(f"cannot trust this key: {error}") from None
    except EntryFormatError as error:
        raise KeyStoreError(
            f"cannot trust this key: {path}: {error}", hint="pass the public_key.pem of its owner"
        ) from None
    # Mail and editors change line endings, which the fingerprint depends on.
    return b"\n".join(data.strip().splitlines()) + b"\n", ""


def _refuse_small_order(public_key: bytes, path: Path) -> None:
    from lilux.primitives.signing.ed25519 import has_small_order

    if is_public_key(public_key) and has_small_order(public_key):
        raise KeyStoreError(
            f"{path} is an Ed25519 key of small order, for which anyone can sign",
            hint="ask its owner for another key",
        )
