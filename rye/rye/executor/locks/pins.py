"""The results of pinning and checking, and the differences between two lockfiles."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Literal, NamedTuple

from lilux.primitives.lockfile import Lockfile

from rye.errors import RyeError
from rye.executor.chain.dependencies import PROJECT
from rye.executor.locks.file import StoredLock

CheckState = Literal["ok", "mismatch", "leftover", "corrupt", "missing"]


class PinState(Enum):
    """What pinning did to the lockfile."""

    CREATED = "created"
    UNCHANGED = "unchanged"
    UPDATED = "updated"


class PinChange(NamedTuple):
    """One element or dependency whose pin changed; ``old`` or ``new`` is empty if not pinned."""

    name: str
    old: str
    new: str


class Pinned(NamedTuple):
    """A tool whose lockfile matches its files."""

    item_id: str
    version: str
    path: Path
    state: PinState
    chain: tuple[str, ...]
    dependencies: int
    unsigned: tuple[str, ...] = ()
    """The dependencies that no signature covers, relative to the project."""
    changes: tuple[PinChange, ...] = ()
    widened: tuple[str, ...] = ()
    """What the tool may do in addition, such as ``write ~/.config``."""
    replaced: str = ""
    """The content hash of the tool that was pinned before; empty if none was, or it is the same."""
    replaced_closure: str = ""
    """The digest of everything that was pinned before, under which it may still be stored."""


class PinCheck(NamedTuple):
    """One lockfile of the project, checked against the current files."""

    path: Path
    item_id: str
    version: str
    state: CheckState
    """``ok``, ``mismatch``, ``leftover`` (one of several lockfiles of the tool), ``corrupt`` or
    ``missing`` (the tool no longer exists)."""
    error: RyeError | None = None

    @property
    def good(self) -> bool:
        """True if the lock is valid."""
        return self.error is None


def pinned(lock: StoredLock, state: PinState, old: StoredLock | None = None) -> Pinned:
    """The record of a lock that was made, found, or written over ``old``."""
    root, entries = lock.lockfile.root, lock.lockfile.resolved_chain
    return Pinned(
        item_id=root.tool_id,
        version=root.version,
        path=lock.path,
        state=state,
        chain=tuple(str(entry["item_id"]) for entry in entries),
        dependencies=len(lock.lockfile.verified_deps or {}),
        unsigned=tuple(
            name.removeprefix(PROJECT)
            for name in lock.lockfile.verified_deps or {}
            if name.startswith(PROJECT)
        ),
        changes=() if old is None else _changes(old.lockfile, lock.lockfile),
        widened=() if old is None else _widened(old.lockfile, lock.lockfile),
        replaced="" if old is None else _replaced(old.lockfile, lock.lockfile),
        replaced_closure="" if old is None else str(old.lockfile.extra.get("closure") or ""),
    )


def _replaced(old: Lockfile, new: Lockfile) -> str:
    return "" if old.root.integrity == new.root.integrity else old.root.integrity


def follows(old: Lockfile, new: Lockfile, signed: Mapping[str, str]) -> bool:
    """True if every difference comes from files that their author signed again.

    ``signed`` maps the content hash of each such file to the one that the same key signed before.
    If one of them is the tool, it may name another executor, and new files that are validly signed
    then follow from its content. A file that is pinned before and after must be the same, or one
    of ``signed``; a file of the project, which has no signature, must be the same.
    """
    before, after = _hashes(old), _hashes(new)
    by_author = signed.get(new.root.integrity) == old.root.integrity
    if not by_author and new.root.integrity != old.root.integrity:
        return False
    for name, (space, digest) in after.items():
        if name not in before:
            if name.startswith(PROJECT) or not (by_author or digest in signed):
                return False
        elif before[name] != (space, digest) and before[name] != (space, signed.get(digest)):
            return False
    return True


def _hashes(lockfile: Lockfile) -> dict[str, tuple[object, str]]:
    found: dict[str, tuple[object, str]] = {
        str(entry.get("item_id")): (entry.get("space"), str(entry.get("integrity")))
        for entry in lockfile.resolved_chain
    }
    return found | {
        f"file {name}" if not name.startswith(PROJECT) else name: (None, str(digest))
        for name, digest in (lockfile.verified_deps or {}).items()
    }


def _widened(old: Lockfile, new: Lockfile) -> tuple[str, ...]:
    from rye.items.permissions import permissions_from_json
    from rye.permissions.words import widened

    before = old.extra.get("permissions")
    if not isinstance(before, dict):
        return ()
    return tuple(widened(before, permissions_from_json(new.extra.get("permissions"))))


def _changes(old: Lockfile, new: Lockfile) -> tuple[PinChange, ...]:
    before, after = _summary(old), _summary(new)
    return tuple(
        PinChange(name, before.get(name, ""), after.get(name, ""))
        for name in dict.fromkeys((*after, *before))
        if before.get(name) != after.get(name)
    )


def _summary(lockfile: Lockfile) -> dict[str, str]:
    """Each pinned file and its pin, for people."""
    summary = {str(entry.get("item_id")): _entry(entry) for entry in lockfile.resolved_chain}
    return summary | {
        name.removeprefix(PROJECT): str(digest)[:12]
        for name, digest in (lockfile.verified_deps or {}).items()
    }


def _entry(entry: Mapping[str, Any]) -> str:
    return f"{entry.get('version')} {str(entry.get('integrity'))[:12]} ({entry.get('space')})"
