"""Sign files after an edit: refuse what cannot run, show what changed, update the pins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from lilux.record import replaced

from rye.authoring.changes import changes, stored_text
from rye.authoring.check import mistakes, refuse_what_cannot_run
from rye.context import Context
from rye.errors import RyeError
from rye.executor.chain.snapshot import Library
from rye.executor.locks.file import LockfileResolver, StoredLock
from rye.executor.locks.pins import Pinned
from rye.executor.pinning import Locking
from rye.formats import format_of
from rye.items.reader import read_item
from rye.trust.data_list import sign_data_files
from rye.trust.signed_text import hash_signed_by, keep_signed, signed_before
from rye.trust.signer import SignedItem, Signer


class Signed(NamedTuple):
    """A file that is signed now."""

    item: SignedItem
    previous: str
    """The content hash that the same key signed before; empty if that is unknown."""
    mistakes: tuple[str, ...]
    """What the author cannot have meant, as ``rye check`` reports it."""
    changes: tuple[str, ...]
    """The lines that changed since that signature; empty if its text is unknown."""


class SigningRoom:
    """Signs files of the project and the user with the user's key."""

    def __init__(self, context: Context, signer: Signer) -> None:
        self._context = context
        self._signer = signer
        self._library = Library(context)
        self._cache = self._library.disk_cache
        self._lockfiles = LockfileResolver(context)

    def sign(self, item_id: str, path: Path, root: Path) -> Signed:
        """Sign one file. Raises for a file that cannot run, and what reading and writing raise."""
        refuse_what_cannot_run(item_id, path, root, self._library)
        found = mistakes(item_id, path, root, self._library)
        comment = format_of(path).comment
        before = read_item(path, root).content
        previous = hash_signed_by(before, comment, self._signer.public_key)
        lists = sign_data_files(path, root, self._signer)
        item = self._signer.sign_file(path, root)
        item = replaced(item, changed=item.changed or lists)
        lock = self._lock(item_id)
        previous = previous or ("" if lock is None else lock.lockfile.root.integrity)
        old = self._signed_before(path, previous, comment)
        if old is None and lock is not None and lock.lockfile.root.integrity == previous:
            old = self._ran_before(lock, comment)
        now = read_item(path, root).content
        keep_signed(path, now, comment, self._cache)
        self._cache.flush()
        if old is None:
            return Signed(item, "", tuple(found), ())
        lines = tuple(changes(old, now.decode(), comment))
        return Signed(item, previous, tuple(found), lines)

    def _signed_before(self, path: Path, previous: str, comment: str) -> str | None:
        return signed_before(path, previous, comment, self._signer.public_key, self._cache)

    def _ran_before(self, lock: StoredLock, comment: str) -> str | None:
        """The pinned text, if it ran here and the same key signed it.

        The cache of signed texts is small, and every version of Rye has its own.
        """
        pinned = lock.lockfile.root.integrity
        closure = str(lock.lockfile.extra.get("closure") or "")
        text = stored_text(closure, pinned, comment, self._context)
        key = self._signer.public_key
        own = text is not None and hash_signed_by(text.encode(), comment, key) == pinned
        return text if own else None

    def _lock(self, item_id: str) -> StoredLock | None:
        try:
            return self._lockfiles.find(item_id)
        except RyeError:
            return None


def follow_with_pins(done: Iterable[Signed], context: Context) -> Iterator[Pinned]:
    """Update the pins of content that the same person signed before; see ``Locking.follow``."""
    signed: Mapping[str, str] = {
        one.item.content_hash: one.previous for one in done if one.previous != one.item.content_hash
    }
    if any(signed.values()):
        yield from Locking(context).follow(signed)


def stale_pins(done: Sequence[Signed], context: Context, updated: Sequence[Pinned]) -> list[str]:
    """The signed tools whose pin is of other content and was not updated."""
    followed = {one.item_id for one in updated}
    lockfiles = LockfileResolver(context)
    stale = []
    for one in done:
        item_id = _item_id(one.item.path, context)
        if item_id is None or item_id in followed:
            continue
        try:
            lock = lockfiles.find(item_id)
        except RyeError:
            continue
        if lock is not None and lock.lockfile.root.integrity != one.item.content_hash:
            stale.append(item_id)
    return stale


def _item_id(path: Path, context: Context) -> str | None:
    for folder in (context.project_path, context.user_space):
        tools = folder / ".ai" / "tools"
        if path.is_relative_to(tools):
            return path.relative_to(tools).with_suffix("").as_posix()
    return None
