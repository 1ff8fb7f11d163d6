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

from lilux.primitives.errors import LiluxError
from lilux.primitives.lockfile import Lockfile

from rye.context import Context
from rye.errors import (
    ItemNotFoundError,
    LockCorruptError,
    LockError,
    LockLeftoverError,
    RyeError,
)
from rye.executor.chain.snapshot import Snapshot
from rye.executor.config.programs import outside_programs
from rye.executor.locks.file import StoredLock, pinned_content
from rye.executor.locks.folder import SUFFIX
from rye.executor.locks.pins import CheckState, PinCheck, Pinned, PinState, follows, pinned
from rye.executor.run.prepare import CallOptions, Preparation, Preparer, VerifiedChain
from rye.executor.run.primitives import PRIMITIVE_MAP
from rye.spaces.ids import check_item_id


class Locking:
    """The lockfiles of one project."""

    def __init__(
        self,
        context: Context,
        primitives: Container[str] = PRIMITIVE_MAP,
        *,
        preparer: Preparer | None = None,
    ) -> None:
        """``preparer`` is one that remembers earlier checks."""
        self._preparer = preparer or Preparer(context, primitives)
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
            return self._updated(verified)
        programs = self._programs(verified)
        made = self._locks.keep(
            verified.chain, verified.dependencies, programs, verified.closure.digest
        )
        return pinned(made, PinState.CREATED)

    def follow(self, signed: Mapping[str, str]) -> Iterator[Pinned]:
        """Update the pins that differ from the files only by what their author just signed again.

        ``signed`` maps the content hash of each file to the one that the same key signed before;
        to an empty text if there was none. A pin that differs in any other way stays as it is: a
        runtime, say, that was changed by somebody else in the meantime must be reviewed.
        """
        replaced_hashes = set(signed.values()) - {""}
        for path in self.lockfiles():
            text = path.read_text(encoding="utf-8", errors="replace")
            if any(old in text for old in replaced_hashes):
                yield from self._followed(path, signed)

    def _followed(self, path: Path, signed: Mapping[str, str]) -> Iterator[Pinned]:
        item_id = self._name_of(path)[0]
        try:
            old = self._lockfiles.find(item_id)
            options = CallOptions(use_lockfile=False)
            verified = Preparation(self._preparer, item_id, options).verify()
        except RyeError:
            return  # reported by the next call
        made = self._made(verified)
        if old is None or old.path != path or not follows(old.lockfile, made, signed):
            return
        stored = StoredLock(path=self._lockfiles.replace_lockfile(made), lockfile=made)
        yield pinned(stored, PinState.UPDATED, old)

    def follow_removal(self, content_hash: str) -> Iterator[Pinned]:
        """Update the pins that differ from the files only by a file that was removed."""
        for path in self.lockfiles():
            if content_hash in path.read_text(encoding="utf-8", errors="replace"):
                yield from self._followed(path, {})

    def pinned_items(self) -> tuple[str, ...]:
        """The ids of the pinned tools of the project that exist, sorted."""
        found = dict.fromkeys([self._name_of(path)[0] for path in self.lockfiles()])
        return tuple([item_id for item_id in found if self._exists(item_id)])

    def _exists(self, item_id: str) -> bool:
        try:
            return self._library.resolver.resolve(item_id).item_id == item_id
        except RyeError:
            return False

    def lockfiles(self) -> tuple[Path, ...]:
        """Every lockfile of the project, sorted by path."""
        return tuple(_lockfiles_below(self._root / "lockfiles"))

    def check(self, path: Path) -> PinCheck:
        """Check one of :meth:`lockfiles` against the current files; a mismatch is not raised."""
        item_id, version = self._name_of(path)
        return self._checked(path, item_id, version, self._library.snapshot())

    def _name_of(self, path: Path) -> tuple[str, str]:
        name = path.relative_to(self._root / "lockfiles").as_posix().removesuffix(SUFFIX)
        item_id, _, version = name.rpartition("@")
        return item_id, version

    def unpin(self, item_id: str) -> tuple[Path, ...]:
        """Remove the project's lockfiles of a tool, which need not exist.

        Returns the removed files; raises ``ItemNotFoundError`` if there are none.
        """
        found = self._lockfiles.paths_of(check_item_id(item_id))
        if not found:
            try:
                found = self._lockfiles.paths_of(self._library.resolver.resolve(item_id).item_id)
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

    def _programs(self, verified: VerifiedChain) -> tuple[str, ...]:
        """The programs that a call would start; an interpreter need not be installed here."""
        context = self._preparer.context
        try:
            env: Mapping[str, str] = self._preparer.environments.resolve(verified.chain).env
        except (RyeError, LiluxError):
            env = context.environ
        return outside_programs(verified.chain, verified.anchor, context, env)

    def _made(self, verified: VerifiedChain) -> Lockfile:
        return self._lockfiles.create_lockfile(
            verified.chain,
            verified.dependencies,
            self._programs(verified),
            verified.closure.digest,
        )

    def _updated(self, verified: VerifiedChain) -> Pinned:
        made = self._made(verified)
        before = self._lockfiles.paths_of(made.root.tool_id)
        try:
            old = self._lockfiles.find(made.root.tool_id)
        except LockError:
            old = None  # corrupt, or one of several: replaced
        if old is not None and pinned_content(old.lockfile) == pinned_content(made):
            return pinned(old, PinState.UNCHANGED)
        path = self._lockfiles.replace_lockfile(made)
        state = PinState.UPDATED if before or old is not None else PinState.CREATED
        return pinned(StoredLock(path=path, lockfile=made), state, old)

    def _checked(self, path: Path, item_id: str, version: str, snapshot: Snapshot) -> PinCheck:
        def result(state: CheckState, error: RyeError | None = None) -> PinCheck:
            return PinCheck(path, item_id, version, state, error)

        try:
            lock = self._lockfiles.find(item_id)
        except LockLeftoverError as error:
            return result("leftover", error)
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
            Preparation(self._preparer, tool.item_id, snapshot=snapshot).verify()
        except RyeError as error:
            return result("mismatch", error)
        return result("ok")


def _lockfiles_below(root: Path) -> Iterator[Path]:
    for folder, names, files in os.walk(root):
        names.sort()
        for name in sorted(files):
            if name.endswith(SUFFIX):
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
