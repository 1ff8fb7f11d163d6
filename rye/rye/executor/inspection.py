"""A chain looked at instead of run: how far it leads, who signed what, and whether it is pinned.

The same gates as those of a call, in the same order, up to the point where parameters are needed.
Nothing is written and nothing is run.
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
from rye.executor.locks.guard import LockGuard
from rye.executor.run.gates import pass_gates
from rye.executor.run.primitives import PRIMITIVE_MAP
from rye.items.element import Metadata
from rye.spaces.model import Resolution


class InspectedElement(NamedTuple):
    """One element of a chain as it is now, whether or not it may run."""

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
    """Whose key that is said to be, if it is in the trust store."""
    locked: bool | None
    """Whether the lockfile pins just this; ``None`` if there is no file that it could pin."""
    pinned: str
    """The hash that the lockfile has for it; empty if none."""


class Inspection(NamedTuple):
    """What is known of a chain, and the error that a call would meet."""

    elements: tuple[InspectedElement, ...]
    lockfile: Path | None
    dependencies: Mapping[str, str]
    """Further files that run along, with their hashes; only of a chain that may run."""
    error: RyeError | None


def inspect_chain(item_id: str, context: Context) -> Inspection:
    """Look at the chain of ``item_id``.

    Raises what resolving ``item_id`` itself raises; whatever is wrong further on is in the result,
    after the elements that could be reached.
    """
    library = Library(context)
    snapshot = library.snapshot()
    tool = snapshot.resolve(item_id)
    lockfiles = LockfileResolver(context, spaces=library.resolver.spaces)
    error: RyeError | None = None
    dependencies: Mapping[str, str] = {}
    try:
        guard = LockGuard(lockfiles)
        *_, dependencies = pass_gates(item_id, snapshot, context, PRIMITIVE_MAP, guard=guard)
    except RyeError as refused:
        error = refused
    lock = _lock_of(tool, snapshot, lockfiles)
    elements = [_inspected(each, library, snapshot, lock) for each in _reached(tool, snapshot)]
    path = None if lock is None else lock.path
    return Inspection(tuple(elements), path, dependencies, error)


def _reached(tool: Resolution, snapshot: Snapshot) -> list[Resolution]:
    """The elements up to the primitive, or to the first whose executor may not be asked for."""
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
        return None  # the gates have told it


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
        pass  # a file that cannot be read has no hash; the gates have told it
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
