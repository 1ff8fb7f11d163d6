"""Private copies of closures, in ``{user space}/.ai/cache/closures/<digest>/``.

::

    3f9a…/
      manifest.json   its SHA-256 is the name of the folder
      tool/           the tool, and everything below its folder that was verified
      lib/            the library of its runtime
      runtime/        the files of the runtimes and of the primitive

Folders have mode 0500, files 0400 or 0500. A copy is written once, from the verified bytes, under a
temporary name. A call that runs it compares it with the verified bytes first. The folder is used
only if it is private to the user. A failure of the store never fails a call: a temporary copy is
used instead.
"""

from __future__ import annotations

import os
import stat
import time
from _thread import allocate_lock
from collections.abc import Mapping
from pathlib import Path

from lilux.record import Record

from rye.closure.check import MANIFEST, Plan, is_intact, plan_of
from rye.closure.manifest import Closure, Manifest, decode_manifest, is_digest
from rye.context import Context
from rye.errors import ClosureError
from rye.ownership import is_private

_DAY = 24 * 3600
_MAX_PLANS = 256


class Copy(Record, frozen=True, kw_only=True):
    """A copy of a closure that a call may run."""

    root: str
    note: str = ""
    """Why it is only temporary; empty for one in the store."""
    is_new: bool = False
    """True if it was made for this call."""


class StoredClosure(Record, frozen=True, kw_only=True):
    """An older closure, whose copy has all its bytes."""

    digest: str
    manifest: Manifest
    root: str


class ClosureStore:
    """The copies of one user. Threads may share a store."""

    def __init__(self, folder: Path, tmp: str) -> None:
        """``tmp`` is where temporary copies are made if the folder cannot be used."""
        self.folder = str(folder)
        self._tmp = tmp
        self._plans: dict[str, Plan] = {}
        self._kept: set[str] = set()
        self._usable: bool | None = None
        self._temporary = ""
        self._adding = allocate_lock()

    def copy(self, closure: Closure, read: Mapping[int, str]) -> Copy:
        """A copy of the closure, checked now, or made if there is none that is intact.

        ``read`` has the SHA-256 of files as this call read them, by their index in the manifest.
        Raises :class:`ClosureError` for a file that changed since it was verified.
        """
        plan = self._plan(closure)
        root = f"{self.folder}/{closure.digest}"
        if self._is_usable() and is_intact(root, plan, read):
            self._touch(root)
            return Copy(root=root)
        return self._made(closure, plan, read)

    def keep(self, closure: Closure) -> None:
        """Store a closure that the call does not run from its copy, for a later :meth:`open`.

        Raises nothing: what cannot be stored now may be stored by the next call.
        """
        digest = closure.digest
        if digest in self._kept:
            return
        root = f"{self.folder}/{digest}"
        if not (self._is_usable() and os.path.lexists(f"{root}/{MANIFEST}")):
            try:
                self._write(closure, self._plan(closure), {})
            except (OSError, ClosureError):
                return
        if len(self._kept) >= _MAX_PLANS:
            self._kept.clear()
        self._kept.add(digest)
        self._touch(root)

    def open(self, digest: str) -> StoredClosure:
        """A stored closure, with every file checked. Raises :class:`ClosureError`."""
        root = f"{self.folder}/{digest}"
        if not is_digest(digest) or not self._is_usable():
            raise _not_stored(digest)
        try:
            data = Path(root, MANIFEST).read_bytes()
        except OSError:
            raise _not_stored(digest) from None
        manifest = decode_manifest(data, digest)
        if not is_intact(root, plan_of(manifest), {}):
            raise ClosureError(
                f"the stored closure {digest} has changed",
                hint=f"it is not used; remove it: {root}",
            )
        return StoredClosure(digest=digest, manifest=manifest, root=root)

    def close(self) -> None:
        """Remove the temporary copies of this process."""
        temporary, self._temporary = self._temporary, ""
        if temporary:
            from rye.closure.writer import remove_copy

            remove_copy(temporary)

    def _made(self, closure: Closure, plan: Plan, read: Mapping[int, str]) -> Copy:
        try:
            return Copy(root=self._write(closure, plan, read), is_new=True)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            note = (
                f"{self.folder} cannot be used ({reason}), so a temporary copy of the tool ran; "
                "make it a private folder that you can write to"
            )
        return Copy(root=self._temporary_copy(closure, plan, read), note=note, is_new=True)

    def _write(self, closure: Closure, plan: Plan, read: Mapping[int, str]) -> str:
        """Write the copy; return its path. Raises ``OSError`` and :class:`ClosureError`."""
        from lilux.files.folder_lock import FolderLock

        from rye.closure.pruning import prune_daily
        from rye.closure.writer import PATIENCE, prepare_folder, put_copy

        self._usable = None
        prepare_folder(self.folder)
        root = f"{self.folder}/{closure.digest}"
        with FolderLock(self.folder, PATIENCE):
            # Of several processes, only the first has to write it.
            if not is_intact(root, plan, read):
                put_copy(root, closure, plan)
                if not is_intact(root, plan, read):
                    raise OSError(f"{root} was changed by another program")
                prune_daily(self.folder)
        return root

    def _temporary_copy(self, closure: Closure, plan: Plan, read: Mapping[int, str]) -> str:
        from rye.closure.writer import put_copy

        with self._adding:
            if not self._temporary:
                folder = f"{self._tmp}/rye-{os.urandom(8).hex()}"
                os.mkdir(folder, 0o700)  # noqa: PTH102 - a text
                self._temporary = folder
            root = f"{self._temporary}/{closure.digest}"
            if not is_intact(root, plan, read):
                put_copy(root, closure, plan)
        return root

    def _plan(self, closure: Closure) -> Plan:
        plan = self._plans.get(closure.digest)
        if plan is None:
            if len(self._plans) >= _MAX_PLANS:
                self._plans.clear()
            plan = self._plans[closure.digest] = plan_of(closure.manifest)
        return plan

    def _is_usable(self) -> bool:
        usable = self._usable
        if usable is None:
            usable = self._usable = is_private(self.folder)
        return usable

    def _touch(self, root: str) -> None:
        """Note that the copy is in use, once a day: a prune goes by the time of the last use."""
        try:
            if time.time() - os.stat(root, follow_symlinks=False)[stat.ST_MTIME] > _DAY:  # noqa: PTH116 - a text
                os.utime(root, follow_symlinks=False)
        except OSError:
            return


def store_of(context: Context) -> ClosureStore:
    """The store in the user space."""
    tmp = context.environ.get("TMPDIR") or "/tmp"  # noqa: S108 - private folders are made there
    return ClosureStore(context.user_space / ".ai" / "cache" / "closures", tmp)


def _not_stored(digest: str) -> ClosureError:
    return ClosureError(
        f"closure {digest} is not stored here",
        hint="run the tool again, or look for it on the machine where it ran",
    )
