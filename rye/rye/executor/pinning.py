"""Pins without a run: created, updated, checked and removed.

Before a tool is pinned, everything that a call verifies is verified: its lock if it has one, the
signatures of its chain, whether the elements fit together, and its dependencies. Neither parameters
nor an interpreter are needed.
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
from rye.executor.chain.snapshot import Snapshot
from rye.executor.locks.file import StoredLock, pinned_content
from rye.executor.locks.pins import CheckState, PinCheck, Pinned, PinState, pinned
from rye.executor.run.prepare import CallOptions, Preparation, Preparer
from rye.executor.run.primitives import PRIMITIVE_MAP
from rye.spaces.ids import check_item_id
from rye.spaces.model import Resolution

_SUFFIX = ".lock.json"


class Locking:
    """The lockfiles of one project."""

    def __init__(self, context: Context, primitives: Container[str] = PRIMITIVE_MAP) -> None:
        self._preparer = Preparer(context, primitives)
        self._library = self._preparer.library
        self._lockfiles = self._preparer.lockfiles
        self._locks = self._preparer.locks
        self._root = context.project_path / ".ai"

    def pin(self, item_id: str, *, update: bool = False) -> Pinned:
        """Pin the current chain in the project. Raises the errors of a call of the tool.

        A lockfile that does not match is a ``LockError``. With ``update`` it is replaced, even if
        it cannot be read.
        """
        snapshot = self._library.snapshot()
        tool = snapshot.resolve(item_id)
        if tool.path is None:
            raise RyeError(
                f"{tool.item_id} is a primitive without a file", hint="pin a tool that has one"
            )
        options = CallOptions(use_lockfile=not update)
        verified = Preparation(self._preparer, item_id, options, snapshot=snapshot).verify()
        if verified.lock is not None:
            return pinned(verified.lock, PinState.UNCHANGED)
        if update:
            return self._updated(verified.chain, verified.dependencies)
        made = self._locks.keep(verified.chain, verified.dependencies)
        return pinned(made, PinState.CREATED)

    def lockfiles(self) -> tuple[Path, ...]:
        """Every lockfile of the project, sorted by path."""
        return tuple(_lockfiles_below(self._root / "lockfiles"))

    def check(self, path: Path) -> PinCheck:
        """Check one of :meth:`lockfiles` against the current files; a mismatch is not raised."""
        name = path.relative_to(self._root / "lockfiles").as_posix().removesuffix(_SUFFIX)
        item_id, _, version = name.rpartition("@")
        return self._checked(path, item_id, version, self._library.snapshot())

    def unpin(self, item_id: str) -> tuple[Path, ...]:
        """Remove the project's lockfiles of a tool, which need not exist.

        Returns the removed files; raises ``ItemNotFoundError`` if there are none.
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
                hint="list the lockfiles with: rye lock --check",
            )
        for path in found:
            path.unlink()
        return tuple(found)

    def _updated(self, chain: Chain, dependencies: Mapping[str, str]) -> Pinned:
        made = self._lockfiles.create_lockfile(chain, dependencies)
        path = self._lockfiles.path_for(made.root.tool_id, made.root.version)
        try:
            old = self._lockfiles.find(made.root.tool_id, made.root.version)
        except LockCorruptError:
            old = None
        if old is not None and pinned_content(old.lockfile) == pinned_content(made):
            return pinned(old, PinState.UNCHANGED)
        if not os.path.lexists(path):
            kept = self._locks.keep(chain, dependencies)
            state = PinState.CREATED if old is None else PinState.UPDATED
            return pinned(kept, state, old)
        self._refuse_link_out(path.parent)
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
            return result("missing", _missing(path, item_id))
        except RyeError as error:
            return result("mismatch", error)
        try:
            return result(self._state_of(lock, tool, snapshot))
        except RyeError as error:
            return result("mismatch", error)

    def _state_of(self, lock: StoredLock, tool: Resolution, snapshot: Snapshot) -> CheckState:
        """``ok`` or ``superseded``; raises the error of any mismatch."""
        verified = self._locks.verify(tool, snapshot, frozen=False)
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
        Preparation(self._preparer, tool.item_id, snapshot=snapshot).verify()
        return "ok"

    def _lockfiles_of(self, item_id: str) -> list[Path]:
        parent, _, stem = item_id.rpartition("/")
        folder = self._root / "lockfiles" / parent
        try:
            names = sorted(os.listdir(folder))  # noqa: PTH208 - only the names are needed
        except (FileNotFoundError, NotADirectoryError):
            return []
        found = [
            folder / name
            for name in names
            if name.endswith(_SUFFIX) and name.removesuffix(_SUFFIX).rpartition("@")[0] == stem
        ]
        if found:
            self._refuse_link_out(folder)
        return found

    def _refuse_link_out(self, folder: Path) -> None:
        if not folder.resolve().is_relative_to(self._root.resolve()):
            raise UnsafePathError(
                f"{folder} leads out of the project", hint="replace the symbolic link by a folder"
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


def _missing(path: Path, item_id: str) -> RyeError:
    return LockError(
        f"lockfile {path} pins '{item_id}', which does not exist",
        lockfile=path,
        hint=f"remove it with: rye unlock {shlex.quote(item_id)}",
    )
