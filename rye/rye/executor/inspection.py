"""A chain shown instead of run: its elements, who signed them, and whether they are pinned.

It is verified as for a call, up to the point where parameters are needed. Nothing is written and
nothing is run.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rye.context import Context
from rye.errors import RyeError
from rye.executor.chain.build import MAX_CHAIN_DEPTH
from rye.executor.chain.snapshot import Library, Snapshot
from rye.executor.locks.file import LockfileResolver, StoredLock
from rye.executor.run.prepare import Preparation, Preparer
from rye.executor.run.primitives import PRIMITIVE_MAP
from rye.items.element import Metadata
from rye.spaces.model import Resolution


class InspectedElement(NamedTuple):
    """One element of a chain as it is now, even if it may not run."""

    item_id: str
    space: str
    bundle: str
    path: str | None
    """``None`` for a primitive without a file."""
    version: str
    executor_id: str | None
    integrity: str
    """SHA-256 of the file without its signature line; empty without a file."""
    standing: str
    """``trusted``, ``unsigned``, ``changed``, ``forged`` or ``untrusted``; empty without a file."""
    signer: str
    """Fingerprint of the key that the signature names."""
    owner: str
    """The owner of that key according to the trust store; empty if the key is not in it."""
    locked: bool | None
    """True if the lockfile pins this content; ``None`` without a file."""
    pinned: str
    """The hash in the lockfile; empty if it is not pinned."""


class Inspection(NamedTuple):
    """The elements of a chain, and the error that a call would raise."""

    elements: tuple[InspectedElement, ...]
    lockfile: Path | None
    dependencies: Mapping[str, str]
    """Name → content hash of the supporting files; only of a chain that may run."""
    error: RyeError | None


def inspect_chain(item_id: str, context: Context) -> Inspection:
    """Inspect the chain of ``item_id``.

    Raises the errors of resolving ``item_id`` itself. Any later error is in the result, after the
    elements that could be reached.
    """
    preparer = Preparer(context, PRIMITIVE_MAP)
    library = preparer.library
    snapshot = library.snapshot()
    tool = snapshot.resolve(item_id)
    error: RyeError | None = None
    dependencies: Mapping[str, str] = {}
    try:
        dependencies = Preparation(preparer, item_id, snapshot=snapshot).verify().dependencies
    except RyeError as refused:
        error = refused
    lock = _lock_of(tool, snapshot, preparer.lockfiles)
    elements = [_inspected(each, library, snapshot, lock) for each in _reached(tool, snapshot)]
    path = None if lock is None else lock.path
    return Inspection(tuple(elements), path, dependencies, error)


def _reached(tool: Resolution, snapshot: Snapshot) -> list[Resolution]:
    """The elements up to the primitive, or to the first that is not trusted."""
    reached = [tool]
    while len(reached) < MAX_CHAIN_DEPTH:
        last = reached[-1]
        executor_id = _metadata(last, snapshot).executor_id
        if executor_id is None or not _is_trusted(last, snapshot):
            break
        try:
            following = snapshot.resolve(executor_id, last.space)
        except RyeError:
            break
        if following.item_id in [each.item_id for each in reached]:
            break
        reached.append(following)
    return reached


def _lock_of(
    tool: Resolution, snapshot: Snapshot, lockfiles: LockfileResolver
) -> StoredLock | None:
    try:
        return lockfiles.find(tool.item_id, _metadata(tool, snapshot).version or "0.0.0")
    except RyeError:
        return None  # verify() has reported it


def _inspected(
    found: Resolution, library: Library, snapshot: Snapshot, lock: StoredLock | None
) -> InspectedElement:
    metadata = _metadata(found, snapshot)
    integrity = standing = signer = owner = ""
    try:
        if found.path is not None:
            verdict = snapshot.verdict(found)
            integrity, signer = verdict.content_hash, verdict.fingerprint
            standing = verdict.standing.value
            entry = library.store.find(signer, library.store.place(found.path))
            owner = "" if entry is None else entry.owner
    except RyeError:
        pass  # a file that cannot be read has no hash; verify() has reported it
    pin = _pin(found, lock)
    same = pin.get("integrity") == integrity and pin.get("space") == found.space.name
    return InspectedElement(
        item_id=found.item_id,
        space=found.space.name,
        bundle=found.space.bundle,
        path=None if found.path is None else str(found.path),
        version=metadata.version or "0.0.0",
        executor_id=metadata.executor_id,
        integrity=integrity,
        standing=standing,
        signer=signer,
        owner=owner,
        locked=None if found.path is None else bool(integrity) and same,
        pinned=str(pin.get("integrity", "")),
    )


def _pin(found: Resolution, lock: StoredLock | None) -> Mapping[str, Any]:
    entries = [] if lock is None else lock.lockfile.resolved_chain
    return next((entry for entry in entries if entry.get("item_id") == found.item_id), {})


def _metadata(found: Resolution, snapshot: Snapshot) -> Metadata:
    try:
        return snapshot.metadata(found)
    except RyeError:
        return Metadata()


def _is_trusted(found: Resolution, snapshot: Snapshot) -> bool:
    try:
        return found.path is None or snapshot.verdict(found).trusted
    except RyeError:
        return False
