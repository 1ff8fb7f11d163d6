"""A chain shown instead of run: its elements, who signed them, and whether they are pinned.

It is verified as for a call, up to the point where parameters are needed. Nothing is written and
nothing is run.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from rye.closure.manifest import TOOL, Closure
from rye.context import Context
from rye.errors import LockError, NoMetadataError, RyeError
from rye.executor.chain.anchor import runtime_lib
from rye.executor.chain.build import MAX_CHAIN_DEPTH
from rye.executor.chain.snapshot import Library, Snapshot
from rye.executor.config.asked_names import asked_names
from rye.executor.config.check import check_command_line, runs_text_of
from rye.executor.locks.file import LockfileResolver, StoredLock
from rye.executor.run.prepare import CallOptions, Preparation, Preparer, VerifiedChain
from rye.executor.run.primitives import PRIMITIVE_MAP
from rye.items.element import ChainElement, Metadata
from rye.items.permissions import Permissions
from rye.permissions.chain import chain_permissions
from rye.spaces.model import Resolution, Space
from rye.warm.reasons import cold_reason, has_warm_runtime
from rye.warm.settings import WarmConfig


class HasSpace(Protocol):
    """An item of a space, and the package that it came with."""

    @property
    def space(self) -> str:
        """``project``, ``user`` or ``system``."""

    @property
    def bundle(self) -> str:
        """The name of a package; only for the system space."""


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
    closure: str = ""
    """The digest of everything that a call runs; empty unless it is a tool that may run."""


class ShownFile(NamedTuple):
    """One file of a closure."""

    role: str
    name: str
    """Its path in the closure."""
    path: str
    folder: str
    """The folder that contains it, which no link may leave."""
    integrity: str


class Claimed(NamedTuple):
    """What the files of a chain say that is refused: for a person who decides about them."""

    permissions: Permissions | None
    """What they ask for; ``None`` if the tool asks not to be confined."""
    files: tuple[ShownFile, ...]
    """The file of the tool."""


class Inspection(NamedTuple):
    """The elements of a chain, and the error that a call would raise."""

    elements: tuple[InspectedElement, ...]
    lockfile: Path | None
    dependencies: Mapping[str, str]
    """Name → content hash of the supporting files; only of a chain that may run."""
    runs_text_of: tuple[str, ...]
    """The parameters that a program gets as code; only of a chain that may run."""
    asked: tuple[str, ...]
    """The variables that a project's ``.env`` may supply; only of a chain that may run."""
    permissions: Permissions | None
    """What its signed files allow; ``None`` if the tool is not confined, or may not run."""
    error: RyeError | None
    cold: str = ""
    """Why its calls never use a prepared process, although its runtime could."""
    warm: bool = False
    """True if its calls may use a prepared process."""
    files: tuple[ShownFile, ...] = ()
    """Everything that a call runs or reads and that was verified; only of a chain that may run."""
    pinned: Mapping[str, str] = {}
    """Name → content hash of the supporting files in the lockfile."""
    pinned_closure: str = ""
    """The digest of everything, as the lockfile has it."""
    claimed: Claimed | None = None
    """What is known about a chain without verified files; nothing of it is verified."""


def inspect_chain(
    item_id: str,
    context: Context,
    *,
    preparer: Preparer | None = None,
    past_lock: bool = False,
) -> Inspection:
    """Inspect the chain of ``item_id``.

    Raises the errors of resolving ``item_id`` itself. Any later error is in the result, after the
    elements that could be reached. ``preparer`` is one that remembers earlier inspections. With
    ``past_lock``, the result has the files and permissions also of a chain that only its lockfile
    refuses.
    """
    if preparer is None:
        preparer = Preparer(context, PRIMITIVE_MAP)
    library = preparer.library
    snapshot = library.snapshot()
    tool = snapshot.resolve(item_id)
    error: RyeError | None = None
    dependencies: Mapping[str, str] = {}
    code: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    permissions: Permissions | None = None
    closure = cold = ""
    warm = False
    files: tuple[ShownFile, ...] = ()
    try:
        try:
            verified = Preparation(preparer, item_id, snapshot=snapshot).verify()
        except LockError as refused:
            if not past_lock:
                raise
            error = refused
            unlocked = CallOptions(use_lockfile=False)
            verified = Preparation(preparer, item_id, unlocked, snapshot=snapshot).verify()
        dependencies = verified.dependencies
        check_command_line(verified.chain, context)
        code = runs_text_of(verified.chain, context)
        asked = asked_names(verified.chain).shown()
        permissions = chain_permissions(verified.chain)
        closure = verified.closure.digest
        cold = _cold(verified, preparer)
        warm = not cold and has_warm_runtime([one.metadata for one in verified.chain])
        files = _files(verified.closure)
    except RyeError as refused:
        error = error or refused
    lock = _lock_of(tool, preparer.lockfiles)
    elements = [_inspected(each, library, snapshot, lock) for each in _reached(tool, snapshot)]
    elements[0] = elements[0]._replace(closure=closure)
    return Inspection(
        elements=tuple(elements),
        lockfile=None if lock is None else lock.path,
        dependencies=dependencies,
        runs_text_of=code,
        asked=asked,
        permissions=permissions,
        error=error,
        cold=cold,
        warm=warm,
        files=files,
        pinned={} if lock is None else dict(lock.lockfile.verified_deps or {}),
        pinned_closure="" if lock is None else str(lock.lockfile.extra.get("closure") or ""),
        claimed=None if files else _claimed(tool, snapshot, elements[0].integrity),
    )


def _claimed(tool: Resolution, snapshot: Snapshot, integrity: str) -> Claimed | None:
    chain = unverified_chain(tool, snapshot)
    if tool.path is None or not chain:
        return None
    file = ShownFile(TOOL, tool.path.name, str(tool.path), str(tool.space.root), integrity)
    return Claimed(chain_permissions(chain), (file,))


def _files(closure: Closure) -> tuple[ShownFile, ...]:
    pairs = zip(closure.manifest.files, closure.sources, strict=True)
    return tuple(
        [ShownFile(one.role, one.path, path, folder, one.sha256) for one, (path, folder) in pairs]
    )


def _cold(verified: VerifiedChain, preparer: Preparer) -> str:
    metadata = [one.metadata for one in verified.chain]
    disk_cache = preparer.library.disk_cache
    if not has_warm_runtime(metadata):
        return ""
    settings = WarmConfig(preparer.context, disk_cache).current()
    return cold_reason(metadata, verified.closure.digest, settings, disk_cache)


def signed_by(element: InspectedElement) -> str:
    """Say in a few words who signed an element, and whether the signature is valid."""
    if not element.standing:
        return "" if element.path is None else "cannot be read"
    if element.standing == "unsigned":
        return "not signed"
    signer = f"{element.owner} ({element.signer})" if element.owner else element.signer
    texts = {
        "trusted": f"signed by {signer}",
        "changed": f"changed after {signer} signed it",
        "forged": f"forged: {signer} did not make this signature",
        "untrusted": f"signed by {signer}, not trusted",
        "revoked": f"signed by {signer}, a revoked key",
    }
    return texts[element.standing]


def space_of(item: HasSpace) -> str:
    """Return the space, and the bundle if it is not Rye's own."""
    return f"{item.space} ({item.bundle})" if item.bundle not in ("", "rye") else item.space


def check_before_signing(item_id: str, path: Path, root: Path, library: Library) -> None:
    """Raise for a file that would be refused when it is called.

    ``ItemFormatError``: its metadata is invalid. ``ConfigTemplateError``: it puts a caller's value
    where none may stand. The files of the chain are parsed, not run, and need no signature. A file
    without metadata is a helper of a tool; without a chain yet, only the metadata is checked.
    """
    snapshot = library.snapshot()
    found = resolution_of(item_id, path, root, snapshot)
    try:
        snapshot.metadata(found)
    except NoMetadataError:
        return
    chain = unverified_chain(found, snapshot)
    if chain:
        check_command_line(chain, library.context)


def resolution_of(item_id: str, path: Path, root: Path, snapshot: Snapshot) -> Resolution:
    """A file of a space as if ``item_id`` were resolved to it."""
    space = next((one for one in snapshot.resolver.spaces if one.root == root), None)
    return Resolution(item_id=item_id, path=path, space=space or Space(name="project", root=root))


def unverified_chain(found: Resolution, snapshot: Snapshot) -> tuple[ChainElement, ...]:
    """The chain as it is declared, whoever signed it: for advice, never to run it.

    Empty if an element is missing or cannot be read.
    """
    chain: list[ChainElement] = []
    try:
        while True:
            metadata = snapshot.metadata(found)
            chain.append(
                ChainElement(
                    item_id=found.item_id,
                    path=found.path,
                    space=found.space.name,
                    metadata=metadata,
                    resolution=found,
                )
            )
            if metadata.executor_id is None or len(chain) == MAX_CHAIN_DEPTH:
                break
            found = snapshot.resolve(metadata.executor_id, found.space)
        runtime_lib(chain)
    except RyeError:
        return ()
    return tuple(chain)


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


def _lock_of(tool: Resolution, lockfiles: LockfileResolver) -> StoredLock | None:
    try:
        return lockfiles.find(tool.item_id)
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
