"""Sign files after an edit: refuse what cannot run, show what changed, update the pins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rye.authoring.check import mistakes, refuse_what_cannot_run
from rye.authoring.signed_text import changes, keep_signed, own_hash, signed_before
from rye.context import Context
from rye.errors import RyeError
from rye.executor.chain.snapshot import Library
from rye.executor.locks.file import LockfileResolver
from rye.executor.locks.pins import Pinned
from rye.executor.pinning import Locking
from rye.formats import format_of
from rye.items.reader import read_item
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
        previous = own_hash(before, comment, self._signer)
        item = self._signer.sign_file(path, root)
        if not previous:
            previous = self._pinned_and_own(item_id, comment)
        now = read_item(path, root).content
        keep_signed(now, comment, self._cache)
        self._cache.flush()
        old = signed_before(previous, comment, self._signer, self._cache) if previous else None
        lines = () if old is None else tuple(changes(old, now.decode(), comment))
        return Signed(item, previous, tuple(found), lines)

    def _pinned_and_own(self, item_id: str, comment: str) -> str:
        """The pinned content hash, if the user signed that content.

        For a file that was written anew, without its signature line.
        """
        try:
            lock = self._lockfiles.find(item_id)
        except RyeError:
            return ""
        pinned = "" if lock is None else lock.lockfile.root.integrity
        known = signed_before(pinned, comment, self._signer, self._cache) if pinned else None
        return "" if known is None else pinned


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
