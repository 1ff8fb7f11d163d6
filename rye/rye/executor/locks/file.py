"""Where lockfiles are, and how one is made from a chain.

They are read from the project, then the user space, then the system space, and written to the
project only: ``.ai/lockfiles/{item_id}@{version}.lock.json``, with the slashes of the id as
folders. A lock is for the tool, not for one version of it: the first space with a lockfile of the
tool has its current pin, and a second lockfile there is an error.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from lilux.primitives.errors import LockfileError
from lilux.primitives.lockfile import Lockfile, LockfileManager, LockfileRoot
from lilux.record import Record
from lilux.sha256 import sha256

from rye.cache.disk import DiskCache
from rye.context import Context
from rye.errors import LockCorruptError, LockLeftoverError, RyeError, UnsafePathError
from rye.executor.caches import BoundedDict
from rye.executor.locks.folder import SUFFIX, Changing, LockfileNames, wait_until_changed
from rye.items.declarations import VERSION
from rye.items.element import ChainElement
from rye.items.permissions import permissions_to_json
from rye.permissions.chain import chain_permissions
from rye.spaces.bundles import system_spaces
from rye.spaces.folders import Stamp, is_settled, stamp_from
from rye.spaces.ids import check_item_id
from rye.spaces.model import Space

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_FOLDER = "lockfiles"


class StoredLock(Record, frozen=True, kw_only=True):
    """A lockfile and its path."""

    path: Path
    lockfile: Lockfile


class LockfileResolver:
    """Finds, makes and saves lockfiles. ``spaces`` are in order of precedence."""

    def __init__(
        self,
        context: Context,
        *,
        spaces: Sequence[Space] | None = None,
        disk_cache: DiskCache | None = None,
    ) -> None:
        project = Space(name="project", root=context.project_path / ".ai")
        if spaces is None:
            user = Space(name="user", root=context.user_space / ".ai")
            spaces = (project, user, *system_spaces(context))
        self._project = project
        self._roots = tuple(
            dict.fromkeys(str(space.root / _FOLDER) for space in (project, *spaces))
        )
        self._manager = LockfileManager()
        self._disk_cache = DiskCache(None) if disk_cache is None else disk_cache
        self._loaded: dict[str, tuple[Stamp, StoredLock]] = BoundedDict()
        self._names = LockfileNames()
        self._places: dict[str, tuple[str, tuple[str, ...]]] = BoundedDict()

    def get_lockfile(self, item_id: str, version: str) -> Lockfile | None:
        """The current pin if it is for this version, or ``None``; raises what :meth:`find` does."""
        stored = self.find(item_id)
        if stored is None or stored.lockfile.root.version != version:
            return None
        return stored.lockfile

    def find(self, item_id: str) -> StoredLock | None:
        """The current pin of a tool, from the first space that has one; ``None`` without one.

        Raises ``LockCorruptError`` for a lockfile that cannot be used, and ``LockLeftoverError``
        if there is more than one.
        """
        stem, folders = self._place(item_id)
        for folder in folders:
            stored = self._current(folder, item_id, stem)
            if stored is not None:
                return stored
        return None

    def paths_of(self, item_id: str) -> list[Path]:
        """Every lockfile of a tool in the project, sorted.

        Raises ``UnsafePathError`` if a symbolic link leads their folder out of the project.
        """
        stem, (folder, *_) = self._place(item_id)
        found = [Path(folder, name) for name in self._names_in(folder, stem)]
        if found:
            self._refuse_link_out(Path(folder))
        return found

    def path_for(self, item_id: str, version: str) -> Path:
        """Where the lockfile is written; ``RyeError`` for a version that no file name can have."""
        check_item_id(item_id)
        if not re.fullmatch(VERSION, version):
            raise RyeError(
                f"version {version!r} of {item_id!r} cannot be part of a file name",
                hint="use letters, digits and . _ + ! - only, like 1.0.0",
            )
        return Path(self._roots[0], f"{item_id}@{version}{SUFFIX}")

    def create_lockfile(
        self,
        chain: Sequence[ChainElement],
        verified_deps: Mapping[str, str] | None = None,
        programs: Sequence[str] = (),
        closure: str = "",
    ) -> Lockfile:
        """Pin every element that has a file, and the verified dependencies.

        ``programs`` are the paths of other programs that run, ``closure`` is the digest of what
        runs. They are recorded, not compared.
        """
        from datetime import UTC, datetime

        tool = chain[0]
        return Lockfile(
            lockfile_version=1,
            generated_at=datetime.now(UTC).isoformat(timespec="seconds"),
            root=LockfileRoot(tool.item_id, tool.version, tool.integrity),
            resolved_chain=[_entry(element) for element in chain if element.path is not None],
            verified_deps=dict(verified_deps) if verified_deps else None,
            extra={
                **({"closure": closure} if closure else {}),
                **_permissions(chain),
                **({"programs": list(programs)} if programs else {}),
            },
        )

    def save_lockfile(self, lockfile: Lockfile) -> Path:
        """Write the first lockfile of a tool to the project, atomically, and return its path.

        Raises ``FileExistsError`` if the project has one, for any version, which stays unchanged;
        ``UnsafePathError`` if a symbolic link leads the folder out of the project; otherwise the
        ``OSError`` of the system.
        """
        path = self._path_to_write(lockfile)
        temporary = path.with_name(f".{os.urandom(8).hex()}.tmp")
        with Changing(str(path.parent)):
            for other in self.paths_of(lockfile.root.tool_id):
                raise FileExistsError(errno.EEXIST, "the tool has a lockfile", str(other))
            # A hard link: of several first runs at once, one wins, and no file is half written.
            self._manager.save(lockfile, temporary)
            try:
                path.hardlink_to(temporary)
            finally:
                temporary.unlink()
        return path

    def replace_lockfile(self, lockfile: Lockfile) -> Path:
        """Write the lockfile to the project, and remove those of other versions of the tool.

        If this ends between the two steps, the tool does not run until it is done again. Raises
        like :meth:`save_lockfile`, except ``FileExistsError``.
        """
        path = self._path_to_write(lockfile)
        with Changing(str(path.parent)):
            self._manager.save(lockfile, path)
            for other in self.paths_of(lockfile.root.tool_id):
                if other != path:
                    other.unlink(missing_ok=True)
        return path

    def _path_to_write(self, lockfile: Lockfile) -> Path:
        path = self.path_for(lockfile.root.tool_id, lockfile.root.version)
        self._refuse_link_out(path.parent)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def _refuse_link_out(self, folder: Path) -> None:
        if not folder.resolve().is_relative_to(self._project.root.resolve()):
            raise UnsafePathError(
                f"{folder} leads out of the project", hint="replace the symbolic link by a folder"
            )

    def _current(self, folder: str, item_id: str, stem: str) -> StoredLock | None:
        names = self._names_in(folder, stem)
        if len(names) == 1:
            stored = self._load(f"{folder}/{names[0]}", item_id)
            if stored is not None:
                return stored
        if not names:
            return None
        # There are several, or the only one is gone: perhaps another process is updating it.
        wait_until_changed(folder)
        names = self._names_in(folder, stem)
        if len(names) > 1:
            raise _leftovers(folder, names, item_id)
        for name in names:
            stored = self._load(f"{folder}/{name}", item_id)
            if stored is None:
                error = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
                raise _unreadable(f"{folder}/{name}", error)
            return stored
        return None

    def _names_in(self, folder: str, stem: str) -> list[str]:
        try:
            return self._names.find(folder, stem)
        except OSError as error:
            raise _unreadable(folder, error) from error

    def _load(self, path: str, item_id: str) -> StoredLock | None:
        try:
            status = os.stat(path)  # noqa: PTH116 - in every call
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _unreadable(path, error) from error
        stamp = stamp_from(status)
        known = self._loaded.get(path)
        if known is not None and known[0] == stamp:
            return known[1]
        try:
            stored = StoredLock(path=Path(path), lockfile=self._decoded(Path(path), item_id))
        except FileNotFoundError:
            return None
        except LockfileError as error:
            raise LockCorruptError(error.reason, lockfile=Path(path), hint=error.hint) from error
        _refuse_other_tool(stored, item_id)
        if is_settled(stamp):
            self._loaded[path] = (stamp, stored)
        return stored

    def _decoded(self, path: Path, item_id: str) -> Lockfile:
        data = self._manager.read(path)
        digest = sha256(data).hexdigest()
        known = self._disk_cache.recall(_FOLDER, digest)
        if isinstance(known, dict):
            return lockfile_from_json(known)
        try:
            lockfile = self._manager.decode(data, path)
        except LockfileError:
            _refuse_conflict(path, data, item_id)
            raise
        self._disk_cache.keep(_FOLDER, digest, lockfile_to_json(lockfile))
        return lockfile

    def _place(self, item_id: str) -> tuple[str, tuple[str, ...]]:
        """How the names of a tool's lockfiles begin, and their folder in each space."""
        place = self._places.get(item_id) if type(item_id) is str else None
        if place is None:
            parent, _, stem = check_item_id(item_id).rpartition("/")
            folders = [f"{root}/{parent}" if parent else root for root in self._roots]
            place = self._places[item_id] = (stem, tuple(folders))
        return place


def _permissions(chain: Sequence[ChainElement]) -> dict[str, Any]:
    """What the chain may do, so that an update can show what it may do in addition.

    The signed files decide; nothing reads this for a call.
    """
    permissions = chain_permissions(chain)
    return {} if permissions is None else {"permissions": permissions_to_json(permissions)}


def _entry(element: ChainElement) -> dict[str, Any]:
    return {
        "item_id": element.item_id,
        "space": element.space,
        "version": element.version,
        "executor_id": element.executor_id,
        "integrity": element.integrity,
    }


def _unreadable(path: str, error: OSError) -> LockCorruptError:
    return LockCorruptError(
        f"lockfile {path}: cannot be read ({error.strerror})",
        lockfile=Path(path),
        hint="make it a file that you may read",
    )


def _leftovers(folder: str, names: Sequence[str], item_id: str) -> LockLeftoverError:
    import shlex

    paths = [f"{folder}/{name}" for name in names]
    return LockLeftoverError(
        f"{item_id!r} has {len(paths)} lockfiles, but only one can be current: "
        f"{' and '.join(paths)}",
        lockfile=Path(paths[0]),
        hint="remove the outdated ones; or review the tool, and replace all of them with: "
        f"rye lock --update {shlex.quote(item_id)}",
    )


def _refuse_conflict(path: Path, data: bytes, item_id: str) -> None:
    """Raise ``LockCorruptError`` for a lockfile that a merge left undecided."""
    import shlex

    if re.search(rb"(?m)^<{7} ", data) is not None:
        raise LockCorruptError(
            f"lockfile {path}: has the marks of a merge conflict",
            lockfile=path,
            hint="merge the content of the tool, then sign and pin it with: "
            f"rye sign --resolve {shlex.quote(item_id)}",
        )


def _refuse_other_tool(stored: StoredLock, item_id: str) -> None:
    root = stored.lockfile.root
    version = stored.path.name.removesuffix(SUFFIX).rpartition("@")[2]
    if (root.tool_id, root.version) != (item_id, version):
        raise LockCorruptError(
            f"lockfile {stored.path} is for {root.tool_id!r} {root.version}, not for "
            f"{item_id!r} {version}",
            lockfile=stored.path,
            hint="delete it and run the tool again",
        )


def lockfile_to_json(lockfile: Lockfile) -> dict[str, Any]:
    """All fields, for the disk cache; ``lockfile_from_json`` gives an equal object."""
    root = lockfile.root
    return {
        "lockfile_version": lockfile.lockfile_version,
        "generated_at": lockfile.generated_at,
        "root": [root.tool_id, root.version, root.integrity, root.extra],
        "resolved_chain": lockfile.resolved_chain,
        "registry": lockfile.registry,
        "verified_deps": lockfile.verified_deps,
        "extra": lockfile.extra,
    }


def lockfile_from_json(values: dict[str, Any]) -> Lockfile:
    """The lockfile that ``lockfile_to_json`` was given."""
    return Lockfile(**{**values, "root": LockfileRoot(*values["root"])})


def pinned_content(lockfile: Lockfile) -> tuple[object, ...]:
    """What a lockfile pins, without the time when it was made and the programs of the machine."""
    return (lockfile.root, lockfile.resolved_chain, lockfile.verified_deps or {})
