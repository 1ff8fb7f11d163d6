"""Pins without a run: made, renewed, checked and removed.

A tool is pinned after all that a call verifies before it runs: its lock, if there is one, the
signatures of its chain, that the elements fit together, and the files that it brings along.
Neither parameters nor an interpreter are needed.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Container, Iterator, Mapping
from pathlib import Path

from lilux.primitives.lockfile import LockfileManager

from rye.context import Context
from rye.errors import (
    ItemNotFoundError,
    LockCorruptError,
    LockError,
    LockUpgradeError,
    RyeError,
    UnsafePathError,
)
from rye.executor.chain.build import Chain
from rye.executor.chain.snapshot import Library, Snapshot
from rye.executor.locks.file import LockfileResolver, StoredLock
from rye.executor.locks.guard import LockGuard
from rye.executor.locks.pins import CheckState, PinCheck, Pinned, PinState, content_of, pinned
from rye.executor.run.gates import pass_gates
from rye.executor.run.primitives import PRIMITIVE_MAP
from rye.spaces.ids import check_item_id
from rye.spaces.model import Resolution

_SUFFIX = ".lock.json"


class Locking:
    """The lockfiles of one project."""

    def __init__(self, context: Context, primitives: Container[str] = PRIMITIVE_MAP) -> None:
        self._context = context
        self._primitives = primitives
        self._library = Library(context)
        self._lockfiles = LockfileResolver(context, spaces=self._library.resolver.spaces)
        self._guard = LockGuard(self._lockfiles)
        self._root = context.project_path / ".ai"

    def pin(self, item_id: str, *, update: bool = False) -> Pinned:
        """Pin the chain as it is now, in the project. Raises what a call of the tool would.

        A pin that differs is a ``LockError``, unless ``update`` is set: then it is replaced, also
        if it cannot be read.
        """
        snapshot = self._library.snapshot()
        tool = snapshot.resolve(item_id)
        if tool.path is None:
            raise RyeError(
                f"{tool.item_id} is a primitive without a file", hint="pin a tool that has one"
            )
        lock, chain, dependencies = self._pass_gates(item_id, snapshot, use_lock=not update)
        if lock is not None:
            return pinned(lock, PinState.UNCHANGED)
        if update:
            return self._renewed(chain, dependencies)
        return pinned(self._guard.keep(chain, dependencies), PinState.CREATED)

    def lockfiles(self) -> tuple[Path, ...]:
        """Every lockfile of the project, in the order of the paths."""
        return tuple(_lockfiles_below(self._root / "lockfiles"))

    def check(self, path: Path) -> PinCheck:
        """One of :meth:`lockfiles` against the files as they are now; raises nothing for these."""
        name = path.relative_to(self._root / "lockfiles").as_posix().removesuffix(_SUFFIX)
        item_id, _, version = name.rpartition("@")
        return self._checked(path, item_id, version, self._library.snapshot())

    def unpin(self, item_id: str) -> tuple[Path, ...]:
        """Remove the project's lockfiles of a tool, which need not be there any more.

        Gives the removed files; raises ``ItemNotFoundError`` if there are none.
        """
        found = self._lockfiles_of(check_item_id(item_id))
        if not found:
            try:
                found = self._lockfiles_of(self._library.resolver.resolve(item_id).item_id)
            except RyeError:
                found = []
        if not found:
            raise ItemNotFoundError(
                f"{self._root / 'lockfiles'} has no lockfile of '{item_id}'",
                hint="see those that there are with: rye lock --check",
            )
        for path in found:
            path.unlink()
        return tuple(found)

    def _pass_gates(
        self, item_id: str, snapshot: Snapshot, *, use_lock: bool = True
    ) -> tuple[StoredLock | None, Chain, dict[str, str]]:
        return pass_gates(
            item_id,
            snapshot,
            self._context,
            self._primitives,
            guard=self._guard,
            use_lock=use_lock,
        )

    def _renewed(self, chain: Chain, dependencies: Mapping[str, str]) -> Pinned:
        made = self._lockfiles.create_lockfile(chain, dependencies)
        path = self._lockfiles.path_for(made.root.tool_id, made.root.version)
        try:
            old = self._lockfiles.find(made.root.tool_id, made.root.version)
        except LockCorruptError:
            old = None
        if old is not None and content_of(old.lockfile) == content_of(made):
            return pinned(old, PinState.UNCHANGED)
        if not os.path.lexists(path):
            kept = self._guard.keep(chain, dependencies)
            state = PinState.CREATED if old is None else PinState.UPDATED
            return pinned(kept, state, old)
        self._refuse_elsewhere(path.parent)
        LockfileManager().save(made, path)
        return pinned(StoredLock(path=path, lockfile=made), PinState.UPDATED, old)

    def _checked(self, path: Path, item_id: str, version: str, snapshot: Snapshot) -> PinCheck:
        def result(state: CheckState, error: RyeError | None = None) -> PinCheck:
            return PinCheck(path, item_id, version, state, error)

        try:
            lock = self._lockfiles.find(item_id, version)
        except RyeError as error:
            return result("corrupt", _as_corrupt(error, path))
        try:
            tool = snapshot.resolve(item_id)
            if lock is None or tool.item_id != item_id:
                raise ItemNotFoundError(f"there is no item '{item_id}'")
        except ItemNotFoundError:
            return result("missing", _gone(path, item_id))
        except RyeError as error:
            return result("mismatch", error)
        try:
            return result(self._holds(lock, tool, snapshot))
        except RyeError as error:
            return result("mismatch", error)

    def _holds(self, lock: StoredLock, tool: Resolution, snapshot: Snapshot) -> CheckState:
        """How the lock holds; raises if it does not."""
        verified = self._guard.verify(tool, snapshot, frozen=False)
        if verified is None or verified.path != lock.path:
            version = snapshot.metadata(tool).version or "0.0.0"
            if verified is not None:
                return "superseded"
            raise LockUpgradeError(
                f"lockfile {lock.path} pins {lock.lockfile.root.version} of {tool.item_id!r}, but "
                f"{tool.path} is {version}, which is not pinned",
                lockfile=lock.path,
                hint=f"pin it with: rye lock {shlex.quote(tool.item_id)}",
            )
        self._pass_gates(tool.item_id, snapshot)
        return "ok"

    def _lockfiles_of(self, item_id: str) -> list[Path]:
        parent, _, stem = item_id.rpartition("/")
        folder = self._root / "lockfiles" / parent
        try:
            names = sorted(os.listdir(folder))  # noqa: PTH208 - names are all that is asked for
        except (FileNotFoundError, NotADirectoryError):
            return []
        found = [
            folder / name
            for name in names
            if name.endswith(_SUFFIX) and name.removesuffix(_SUFFIX).rpartition("@")[0] == stem
        ]
        if found:
            self._refuse_elsewhere(folder)
        return found

    def _refuse_elsewhere(self, folder: Path) -> None:
        if not folder.resolve().is_relative_to(self._root.resolve()):
            raise UnsafePathError(
                f"{folder} leads out of the project", hint="replace the symlink by a folder"
            )


def _lockfiles_below(root: Path) -> Iterator[Path]:
    for folder, names, files in os.walk(root):
        names.sort()
        for name in sorted(files):
            if name.endswith(_SUFFIX):
                yield Path(folder, name)


def _as_corrupt(error: RyeError, path: Path) -> RyeError:
    if isinstance(error, LockCorruptError):
        return error
    return LockCorruptError(f"{path}: {error}", lockfile=path, hint="remove it")


def _gone(path: Path, item_id: str) -> RyeError:
    return LockError(
        f"lockfile {path} pins '{item_id}', which is gone",
        lockfile=path,
        hint=f"remove it with: rye unlock {shlex.quote(item_id)}",
    )
