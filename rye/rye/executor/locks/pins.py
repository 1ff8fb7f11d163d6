"""The results of pinning and checking, and the differences between two lockfiles."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Literal, NamedTuple

from lilux.primitives.lockfile import Lockfile

from rye.errors import RyeError
from rye.executor.locks.file import StoredLock

CheckState = Literal["ok", "superseded", "mismatch", "corrupt", "missing"]


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
    changes: tuple[PinChange, ...] = ()


class PinCheck(NamedTuple):
    """One lockfile of the project, checked against the current files."""

    path: Path
    item_id: str
    version: str
    state: CheckState
    """``ok``, ``superseded`` (the tool has another version now, which is pinned), ``mismatch``,
    ``corrupt`` or ``missing`` (the tool no longer exists)."""
    error: RyeError | None = None

    @property
    def good(self) -> bool:
        """True if the lock is valid, or superseded by another."""
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
        changes=() if old is None else _changes(old.lockfile, lock.lockfile),
    )


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
        name: str(digest)[:12] for name, digest in (lockfile.verified_deps or {}).items()
    }


def _entry(entry: Mapping[str, Any]) -> str:
    return f"{entry.get('version')} {str(entry.get('integrity'))[:12]} ({entry.get('space')})"
