"""Lockfiles: their data structures, and I/O at explicit paths.

No path is resolved, no configuration read, and no folder created. The file format is defined in
:mod:`lilux.primitives.lockfile.format`, which is imported on use, since it needs msgspec.
"""

from __future__ import annotations

import errno
import functools
from collections.abc import Callable
from pathlib import Path

from lilux.files.atomic import atomic_write
from lilux.files.bounded_read import FileTooLargeError, read_bounded
from lilux.primitives.errors import IntegrityError, LockfileError
from lilux.record import Record, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_LOCKFILE_BYTES = 4 * 1024 * 1024

_RESTORE = "restore it, or delete it and lock the tool again"


class LockfileRoot(Record):
    """The locked tool. ``extra`` contains the fields unknown to this release."""

    tool_id: str
    version: str
    integrity: str
    extra: dict[str, Any] = field(default_factory=dict)


class Lockfile(Record):
    """A locked tool with its chain. ``extra`` contains the fields unknown to this release."""

    lockfile_version: int
    generated_at: str
    root: LockfileRoot
    resolved_chain: list[dict[str, Any]]
    registry: dict[str, Any] | None = None
    verified_deps: dict[str, Any] | None = None
    extra: dict[str, Any] = field(default_factory=dict)


class LockfileFault(Exception):  # noqa: N818 - LockfileManager turns it into a LockfileError
    """A malformed lockfile; raised where its path is not known."""

    def __init__(self, message: str, *, hint: str = _RESTORE) -> None:
        super().__init__(message)
        self.hint = hint


class LockfileManager:
    """Loads and saves lockfiles at explicit paths. It has no state."""

    def load(self, path: Path) -> Lockfile:
        """Read and validate the lockfile at ``path``.

        Raises ``FileNotFoundError`` if there is none, and :class:`LockfileError` with the path
        to the field if it cannot be read or is not a lockfile of version 1.
        """
        return self.decode(self.read(path), path)

    def read(self, path: Path) -> bytes:
        """Return the bytes of the lockfile at ``path``; raises as :meth:`load` does."""
        return _read(path)

    def decode(self, data: bytes, path: Path) -> Lockfile:
        """Parse ``data``, read from ``path``; raises :class:`LockfileError`."""
        try:
            return _decoder()(data)
        except LockfileFault as fault:
            raise LockfileError(f"lockfile {path}: {fault}", hint=fault.hint) from None

    def save(self, lockfile: Lockfile, path: Path) -> Path:
        """Write ``lockfile`` to ``path`` as indented JSON, atomically and synced; returns ``path``.

        The same data gives the same bytes, whatever the order of its keys. Raises
        ``FileNotFoundError`` if the parent folder does not exist, :class:`LockfileError` if
        ``load`` would refuse the data, and the system's ``OSError`` if it cannot be written. In
        every case the old file is unchanged.
        """
        from lilux.primitives.lockfile.format import encode_lockfile

        try:
            data = encode_lockfile(lockfile)
            if len(data) > MAX_LOCKFILE_BYTES:
                raise LockfileFault(f"larger than {MAX_LOCKFILE_BYTES} bytes")
        except LockfileFault as fault:
            raise LockfileError(
                f"cannot save lockfile {path}: {fault}", hint="correct the data and save again"
            ) from None
        except IntegrityError as error:
            raise LockfileError(
                f"cannot save lockfile {path}: {error.reason}", hint=error.hint
            ) from None
        try:
            atomic_write(path, data)
        except FileNotFoundError as error:
            raise FileNotFoundError(
                errno.ENOENT,
                "the folder of the lockfile does not exist; create it first",
                str(Path(path).parent),
            ) from error
        return path

    def exists(self, path: Path) -> bool:
        """Return true if there is a file at ``path``; raises nothing.

        An inaccessible path is treated as existing, since the lockfile may be there; ``load``
        raises the reason.
        """
        try:
            path.stat()
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return False
        except OSError:
            pass
        return True


@functools.cache  # a repeated import statement would take a tenth of a load
def _decoder() -> Callable[[bytes], Lockfile]:
    from lilux.primitives.lockfile.format import decode_lockfile

    return decode_lockfile


def _read(path: Path) -> bytes:
    try:
        return read_bounded(path, MAX_LOCKFILE_BYTES)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            errno.ENOENT, "no lockfile; lock the tool to create it", str(path)
        ) from error
    except OSError as error:
        raise LockfileError(
            f"lockfile {path}: cannot be read ({error.strerror})",
            hint="make it a regular file that you can read",
        ) from error
    except FileTooLargeError:
        raise LockfileError(
            f"lockfile {path}: larger than {MAX_LOCKFILE_BYTES} bytes", hint=_RESTORE
        ) from None
