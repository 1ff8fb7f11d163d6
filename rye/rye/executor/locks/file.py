"""Where lockfiles are, and how one is made from a chain.

They are read from the project, then the user space, then the system space, and written to the
project only: ``.ai/lockfiles/{item_id}@{version}.lock.json``, with the slashes of the id as
folders.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from lilux.primitives.errors import LockfileError
from lilux.primitives.lockfile import Lockfile, LockfileManager, LockfileRoot
from lilux.record import Record
from lilux.sha256 import sha256

from rye.cache.disk import DiskCache
from rye.context import Context
from rye.errors import LockCorruptError, RyeError, UnsafePathError
from rye.executor.caches import BoundedDict
from rye.items.declarations import VERSION
from rye.items.element import ChainElement
from rye.spaces.bundles import system_spaces
from rye.spaces.folders import Stamp, is_settled, stamp_from
from rye.spaces.ids import check_item_id
from rye.spaces.model import Space

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_FOLDER = "lockfiles"
_SUFFIX = ".lock.json"


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
        self._names: dict[tuple[str, str], str] = BoundedDict()

    def get_lockfile(self, item_id: str, version: str) -> Lockfile | None:
        """The lockfile from the first space with one, or ``None``; raises ``LockCorruptError``."""
        stored = self.find(item_id, version)
        return None if stored is None else stored.lockfile

    def find(self, item_id: str, version: str) -> StoredLock | None:
        """Like ``get_lockfile``, with the path. A corrupt lockfile is an error, never ignored."""
        name = self._name(item_id, version)
        for root in self._roots:
            stored = self._load(f"{root}/{name}")
            if stored is not None:
                _refuse_other_tool(stored, item_id, version)
                return stored
        return None

    def of_every_version(self, item_id: str) -> Iterator[StoredLock]:
        """Every lockfile of the tool, in the order of the spaces.

        Raises ``LockCorruptError`` for one that cannot be read, as ``find`` does.
        """
        parent, _, stem = check_item_id(item_id).rpartition("/")
        for root in self._roots:
            folder = f"{root}/{parent}" if parent else root
            for name in _names_in(folder):
                # An id may contain an "@", a version may not.
                pinned_stem, _, version = name.removesuffix(_SUFFIX).rpartition("@")
                if pinned_stem != stem or not name.endswith(_SUFFIX):
                    continue
                stored = self._load(f"{folder}/{name}")
                if stored is not None:
                    _refuse_other_tool(stored, item_id, version)
                    yield stored

    def path_for(self, item_id: str, version: str) -> Path:
        """Where the lockfile is written; ``RyeError`` for a version that no file name can have."""
        return Path(self._roots[0], self._name(item_id, version))

    def create_lockfile(
        self, chain: Sequence[ChainElement], verified_deps: Mapping[str, str] | None = None
    ) -> Lockfile:
        """Pin every element that has a file, and the verified dependencies."""
        from datetime import UTC, datetime

        tool = chain[0]
        return Lockfile(
            lockfile_version=1,
            generated_at=datetime.now(UTC).isoformat(timespec="seconds"),
            root=LockfileRoot(tool.item_id, tool.version, tool.integrity),
            resolved_chain=[_entry(element) for element in chain if element.path is not None],
            verified_deps=dict(verified_deps) if verified_deps else None,
        )

    def save_lockfile(self, lockfile: Lockfile) -> Path:
        """Write the lockfile to the project, atomically, and return its path.

        Raises ``FileExistsError`` if there is one, which stays unchanged; ``UnsafePathError`` if a
        symbolic link leads the folder out of the project; otherwise the ``OSError`` of the system.
        """
        path = self.path_for(lockfile.root.tool_id, lockfile.root.version)
        if not path.parent.resolve().is_relative_to(self._project.root.resolve()):
            raise UnsafePathError(
                f"{path.parent} leads out of the project",
                hint="replace the symbolic link by a folder",
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        # A hard link: of several first runs at once, one wins, and no file is half written.
        temporary = path.with_name(f".{os.urandom(8).hex()}.tmp")
        self._manager.save(lockfile, temporary)
        try:
            path.hardlink_to(temporary)
        finally:
            temporary.unlink()
        return path

    def _load(self, path: str) -> StoredLock | None:
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
            stored = StoredLock(path=Path(path), lockfile=self._decoded(Path(path)))
        except FileNotFoundError:
            return None
        except LockfileError as error:
            raise LockCorruptError(error.reason, lockfile=Path(path), hint=error.hint) from error
        if is_settled(stamp):
            self._loaded[path] = (stamp, stored)
        return stored

    def _decoded(self, path: Path) -> Lockfile:
        data = self._manager.read(path)
        digest = sha256(data).hexdigest()
        known = self._disk_cache.recall(_FOLDER, digest)
        if isinstance(known, dict):
            return lockfile_from_json(known)
        lockfile = self._manager.decode(data, path)
        self._disk_cache.keep(_FOLDER, digest, lockfile_to_json(lockfile))
        return lockfile

    def _name(self, item_id: str, version: str) -> str:
        name = self._names.get((item_id, version))
        if name is None:
            check_item_id(item_id)
            if not re.fullmatch(VERSION, version):
                raise RyeError(
                    f"version {version!r} of {item_id!r} cannot be part of a file name",
                    hint="use letters, digits and . _ + ! - only, like 1.0.0",
                )
            name = self._names[item_id, version] = f"{item_id}@{version}{_SUFFIX}"
        return name


def _entry(element: ChainElement) -> dict[str, Any]:
    return {
        "item_id": element.item_id,
        "space": element.space,
        "version": element.version,
        "executor_id": element.executor_id,
        "integrity": element.integrity,
    }


def _names_in(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - only the names are needed
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise _unreadable(folder, error) from error


def _unreadable(path: str, error: OSError) -> LockCorruptError:
    return LockCorruptError(
        f"lockfile {path}: cannot be read ({error.strerror})",
        lockfile=Path(path),
        hint="make it a file that you may read",
    )


def _refuse_other_tool(stored: StoredLock, item_id: str, version: str) -> None:
    root = stored.lockfile.root
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
    """What a lockfile pins, without the time when it was made."""
    return (lockfile.root, lockfile.resolved_chain, lockfile.verified_deps or {})
