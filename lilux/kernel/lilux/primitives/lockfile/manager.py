"""Lockfiles: their data structures, and I/O at explicit paths.

No path is resolved here, no configuration read, and no folder created. What a file must look like
is told in :mod:`lilux.primitives.lockfile.format`.
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
    """The tool that is locked. ``extra`` holds the fields that this release does not know."""

    tool_id: str
    version: str
    integrity: str
    extra: dict[str, Any] = field(default_factory=dict)


class Lockfile(Record):
    """A locked tool with its chain. ``extra`` holds the fields that this release does not know."""

    lockfile_version: int
    generated_at: str
    root: LockfileRoot
    resolved_chain: list[dict[str, Any]]
    registry: dict[str, Any] | None = None
    verified_deps: dict[str, Any] | None = None
    extra: dict[str, Any] = field(default_factory=dict)


class LockfileFault(Exception):  # noqa: N818 - never leaves the package; becomes a LockfileError
    """What is wrong with a lockfile and what mends it, told where the file is not known."""

    def __init__(self, message: str, *, remedy: str = _RESTORE) -> None:
        super().__init__(message)
        self.remedy = remedy


class LockfileManager:
    """Loads and saves lockfiles at the paths that it is given. It keeps no state."""

    def load(self, path: Path) -> Lockfile:
        """Read and validate the lockfile at ``path``.

        Raises ``FileNotFoundError`` if there is none, and :class:`LockfileError` with the path
        to the field if it cannot be read or is not a lockfile of version 1.
        """
        return self.decode(self.read(path), path)

    def read(self, path: Path) -> bytes:
        """The bytes of the lockfile at ``path``; raises as :meth:`load` does for what is there."""
        return _read(path)

    def decode(self, data: bytes, path: Path) -> Lockfile:
        """The lockfile that ``data``, read from ``path``, spells; raises :class:`LockfileError`."""
        try:
            return _decoder()(data)
        except LockfileFault as fault:
            raise LockfileError(f"lockfile {path}: {fault}", hint=fault.remedy) from None

    def save(self, lockfile: Lockfile, path: Path) -> Path:
        """Write ``lockfile`` to ``path`` as indented JSON, atomically and synced; gives ``path``.

        The same data gives the same bytes, in whatever order its keys come. Raises
        ``FileNotFoundError`` if the parent folder does not exist, :class:`LockfileError` if
        ``load`` would refuse what was to be written, and the system's ``OSError`` if it cannot
        be written. In every case the old file stays as it was.
        """
        try:
            data = _encoder()(lockfile)
            if len(data) > MAX_LOCKFILE_BYTES:
                raise LockfileFault(f"larger than {MAX_LOCKFILE_BYTES} bytes")
        except LockfileFault as fault:
            raise LockfileError(
                f"cannot save lockfile {path}: {fault}", hint="correct the data and save again"
            ) from None
        except IntegrityError as error:
            raise LockfileError(f"cannot save lockfile {path}: {error}") from None
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
        """Tell whether there is a file at ``path``; raises nothing.

        ``True`` if the system does not let one look: a lockfile that is out of reach is not
        absent, and ``load`` says why it cannot be read.
        """
        try:
            path.stat()
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return False
        except OSError:
            pass
        return True


# Kept, since even a repeated import statement would be a sixth of the time of a load.
@functools.cache
def _decoder() -> Callable[[bytes], Lockfile]:
    from lilux.primitives.lockfile.format import decode_lockfile

    return decode_lockfile


@functools.cache
def _encoder() -> Callable[[Lockfile], bytes]:
    from lilux.primitives.lockfile.format import encode_lockfile

    return encode_lockfile


def _read(path: Path) -> bytes:
    try:
        return read_bounded(path, MAX_LOCKFILE_BYTES)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            errno.ENOENT, "no lockfile here; lock the tool to create it", str(path)
        ) from error
    except OSError as error:
        raise LockfileError(
            f"lockfile {path}: cannot be read ({error.strerror})",
            hint="make it a file that you may read",
        ) from error
    except FileTooLargeError:
        raise LockfileError(
            f"lockfile {path}: larger than {MAX_LOCKFILE_BYTES} bytes", hint=_RESTORE
        ) from None
