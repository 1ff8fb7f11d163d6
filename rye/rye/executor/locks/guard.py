"""The lock of a tool: verified before its chain is built, made after its first success."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rye.errors import (
    ChangedError,
    ItemFormatError,
    LockCorruptError,
    LockDowngradeError,
    LockError,
    LockMissingError,
    LockShadowedError,
    LockTamperedError,
    LockUpgradeError,
)
from rye.executor.caches import BoundedDict
from rye.executor.chain.build import Chain
from rye.executor.chain.dependencies import PROJECT
from rye.executor.chain.snapshot import Snapshot
from rye.executor.locks.file import LockfileResolver, StoredLock, pinned_content
from rye.executor.locks.verify import Breach, IntegrityVerifier, Violation
from rye.items.element import ChainElement
from rye.spaces.model import Resolution

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

# Each hint is followed by the command that pins the tool as it is now.
_WORST_FIRST: tuple[tuple[Breach, type[LockError], str], ...] = (
    (Breach.MALFORMED, LockCorruptError, "make it again with"),
    (
        Breach.TAMPERED,
        LockTamperedError,
        "restore the file; or review it, and accept it with",
    ),
    (
        Breach.SHADOWED,
        LockShadowedError,
        "remove the file that shadows it, or accept it with",
    ),
    (
        Breach.DOWNGRADE,
        LockDowngradeError,
        "restore the pinned version, or accept the older one with",
    ),
    (Breach.UPGRADE, LockUpgradeError, "accept it with"),
)


class LockGuard:
    """Checks tools against their lockfiles."""

    def __init__(self, lockfiles: LockfileResolver) -> None:
        self._lockfiles = lockfiles
        self._confirmed: dict[str, tuple[StoredLock, Chain]] = BoundedDict()

    def verify(
        self, tool: Resolution, snapshot: Snapshot, known: Chain | None = None, *, frozen: bool
    ) -> StoredLock | None:
        """Verify every entry of the lock of ``tool``; return ``None`` if it has no lock.

        ``known`` is the current chain of the tool from the cache: if it was confirmed under the
        same lockfile, the entries are not verified again.

        Raises a ``LockError``, also for another version than the pinned one, and
        ``LockMissingError`` if there is no lock and ``frozen`` is set. A pinned element that is
        missing is not reported here but when the chain is built, where it is known which element
        needs it.
        """
        lock = self._lockfiles.find(tool.item_id)
        if lock is None:
            if frozen:
                version = _version(tool, snapshot) if known is None else known[0].version
                raise LockMissingError(
                    f"{tool.item_id!r} {version} has no lockfile, and frozen mode requires one",
                    lockfile=self._lockfiles.path_for(tool.item_id, version),
                    hint=f"create and commit it: {_command('rye lock', tool.item_id)}",
                )
            return None
        if known is not None and self._is_confirmed(lock, known):
            return lock
        verifier = IntegrityVerifier(snapshot)
        pinned_root = _pinned_root(lock)
        violations = (
            *verifier.verify_chain([pinned_root], tool).violations,
            *verifier.verify_chain(lock.lockfile.resolved_chain, tool).violations,
        )
        if violations:
            _refuse(lock, violations)
        _refuse_wrong_version(lock, tool, snapshot)
        return lock

    def confirm_chain(self, lock: StoredLock, chain: Chain) -> None:
        """Raise a ``LockError`` unless the lock pins exactly the files of ``chain``.

        :meth:`verify` must have returned the lock in the same call.
        """
        if self._is_confirmed(lock, chain):
            return
        entries = {_entry_id(entry): entry for entry in lock.lockfile.resolved_chain}
        pinned = [_entry_id(entry) for entry in lock.lockfile.resolved_chain]
        files = [element for element in chain if element.path is not None]
        for element in files:
            # A short id may resolve to a file with the pinned id in another space, after the
            # pinned file became unreachable.
            if not _pins_element(entries.get(element.item_id, {}), element):
                raise LockShadowedError(
                    f"lockfile {lock.path} pins {', '.join(pinned)}, but the chain now leads "
                    f"through {element.path}, which it does not pin",
                    lockfile=lock.path,
                    hint=f"remove that file, or accept it with: {_update_command(lock)}",
                )
        if pinned == [element.item_id for element in files]:
            self._confirmed[chain[0].item_id] = (lock, chain)
            return
        raise LockCorruptError(
            f"lockfile {lock.path} pins {', '.join(pinned)}, which is not the chain of "
            f"{chain[0].item_id!r}",
            lockfile=lock.path,
            hint=f"make it again with: {_update_command(lock)}",
        )

    def _is_confirmed(self, lock: StoredLock, chain: Chain) -> bool:
        confirmed = self._confirmed.get(chain[0].item_id)
        return confirmed is not None and confirmed[0] is lock and confirmed[1] is chain

    def confirm_dependencies(self, lock: StoredLock, found: Mapping[str, str]) -> None:
        """Raise a ``LockError`` unless the dependencies are the pinned ones.

        A file of the project has no signature. All others were verified before, so that a
        difference is validly signed: a ``LockUpgradeError``.
        """
        pinned = lock.lockfile.verified_deps or {}
        if pinned == found:
            return
        changed = sorted(name for name in {*pinned, *found} if pinned.get(name) != found.get(name))
        differences = "; ".join(_difference(name, pinned, found) for name in changed)
        unsigned = any(name.startswith(PROJECT) for name in changed)
        raise (LockTamperedError if unsigned else LockUpgradeError)(
            f"lockfile {lock.path}: {differences}",
            lockfile=lock.path,
            hint=f"{'review the change, then ' if unsigned else ''}accept it with: "
            f"{_update_command(lock)}",
        )

    def refuse_unlocked(self, tool: ChainElement, found: Mapping[str, str]) -> NoReturn:
        """Raise ``LockMissingError`` for a tool that runs files without a signature."""
        names = [_shown(name) for name in found if name.startswith(PROJECT)]
        listed = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if names[3:] else "")
        raise LockMissingError(
            f"{tool.item_id!r} {tool.version} runs files of the project that are not signed "
            f"({listed}), and no lockfile pins them",
            lockfile=self._lockfiles.path_for(tool.item_id, tool.version),
            hint=f"review them, then run: {_command('rye lock', tool.item_id)}",
        )

    def keep(
        self,
        chain: Sequence[ChainElement],
        dependencies: Mapping[str, str],
        programs: Sequence[str] = (),
        closure: str = "",
    ) -> StoredLock:
        """Save the lockfile after a first success; blocks for the disk.

        If another run was first, its lockfile stays: raises ``LockUpgradeError`` if that pins
        other content than this chain.
        """
        made = self._lockfiles.create_lockfile(chain, dependencies, programs, closure)
        try:
            return StoredLock(path=self._lockfiles.save_lockfile(made), lockfile=made)
        except FileExistsError:
            winner = self._lockfiles.find(made.root.tool_id)
            if winner is None:
                raise
        if pinned_content(winner.lockfile) != pinned_content(made):
            raise LockUpgradeError(
                f"lockfile {winner.path} was made by another run at the same time, "
                "and pins other content",
                lockfile=winner.path,
                hint="run the tool again",
            )
        return winner


def _version(tool: Resolution, snapshot: Snapshot) -> str:
    try:
        return snapshot.metadata(tool).version or "0.0.0"
    except ItemFormatError:
        # If the file was changed after signing, report that instead of the format error.
        snapshot.require_trusted(tool)
        raise


def _pinned_root(lock: StoredLock) -> Mapping[str, object]:
    """The root as an entry of a chain. Like the first entry, so that both give one message."""
    root = lock.lockfile.root
    entry = {"item_id": root.tool_id, "version": root.version, "integrity": root.integrity}
    first = lock.lockfile.resolved_chain[:1]
    if first and _entry_id(first[0]) == root.tool_id and "space" in first[0]:
        entry["space"] = first[0]["space"]
    return entry


def _refuse_wrong_version(lock: StoredLock, tool: Resolution, snapshot: Snapshot) -> None:
    """Raise ``LockCorruptError`` if the pinned content is of another version than it says."""
    version = _version(tool, snapshot)
    if tool.path is not None and lock.lockfile.root.version != version:
        raise LockCorruptError(
            f"lockfile {lock.path} pins {tool.item_id!r} {lock.lockfile.root.version}, but "
            f"{tool.path}, which has the pinned content, is {version}",
            lockfile=lock.path,
            hint=f"make it again with: {_update_command(lock)}",
        )


def _refuse(lock: StoredLock, violations: Sequence[Violation]) -> None:
    for breach, error, hint in _WORST_FIRST:
        if any(violation.breach is breach for violation in violations):
            # The tool is pinned twice: as the root and as the first element of the chain.
            messages = "; ".join(dict.fromkeys(violation.message for violation in violations))
            unsigned = [
                one.path for one in violations if one.breach is Breach.TAMPERED and one.path
            ]
            steps = [_command("rye sign", *dict.fromkeys(map(str, unsigned)))] if unsigned else []
            raise error(
                f"lockfile {lock.path}: {messages}",
                lockfile=lock.path,
                hint=f"{hint}: {' && '.join([*steps, _update_command(lock)])}",
            )
    edited = [one for one in violations if one.breach is Breach.EDITED]
    if edited:
        paths = dict.fromkeys([str(one.path) for one in edited])
        raise ChangedError(
            "; ".join(dict.fromkeys([one.message for one in edited])),
            hint=f"read what changed, then sign it again with: {_command('rye sign', *paths)}",
        )


def _update_command(lock: StoredLock) -> str:
    return _command("rye lock --update", lock.lockfile.root.tool_id)


def _command(verb: str, *names: str) -> str:
    from shlex import join

    return f"{verb} {join(names)}"


def _entry_id(entry: Mapping[str, object]) -> str:
    return str(entry.get("item_id") or entry.get("tool_id"))


def _pins_element(entry: Mapping[str, object], element: ChainElement) -> bool:
    same_space = entry.get("space", element.space) == element.space
    return entry.get("integrity") == element.integrity and same_space


def _difference(name: str, pinned: Mapping[str, str], found: Mapping[str, str]) -> str:
    kind = "file of the project" if name.startswith(PROJECT) else "dependency"
    if name not in found:
        return f"the pinned {kind} {_shown(name)} is missing"
    if name not in pinned:
        return f"the {kind} {_shown(name)} is not pinned"
    return f"the {kind} {_shown(name)} is pinned as {pinned[name]}, but is {found[name]}"


def _shown(name: str) -> str:
    return name.removeprefix(PROJECT)
