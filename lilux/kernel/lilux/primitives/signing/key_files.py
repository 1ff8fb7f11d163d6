"""The file system's side of a key pair: modes, locking and bounded reads."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lilux.files.atomic import atomic_write
from lilux.files.private import make_private_folder, read_own_file
from lilux.primitives.errors import KeyFileError

_MAX_KEY_BYTES = 16 * 1024  # a PEM of Ed25519 has about a hundred
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def prepare_folder(folder: Path) -> None:
    """Create ``folder`` if it is not there, and close it to everyone but its owner.

    Raises :class:`KeyFileError`, also if others could have put something into it before.
    """
    try:
        make_private_folder(folder)
    except OSError as error:
        raise _cannot("prepare", folder, error) from error


@contextmanager
def locked(folder: Path, *, exclusive: bool) -> Iterator[None]:
    """Keep other processes that lock ``folder`` out (or, if shared, other writers) meanwhile.

    A folder that is not there has nothing to protect: the body runs, and finds no files.
    """
    try:
        fd = os.open(folder, _OPEN_FOLDER)
    except FileNotFoundError:
        yield
        return
    except OSError as error:
        raise _cannot("open", folder, error) from error
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        except OSError as error:
            raise _cannot("lock", folder, error) from error
        yield
    finally:
        os.close(fd)


def write(path: Path, data: bytes, *, mode: int) -> None:
    """Write a key atomically, with ``mode`` from its first byte on."""
    try:
        atomic_write(path, data, mode=mode)
    except OSError as error:
        raise _cannot("write", path, error) from error


def remove(path: Path) -> None:
    """Remove a key file if it is there."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise _cannot("remove", path, error) from error


def read(path: Path, *, private: bool) -> bytes | None:
    """Read a key file, or give ``None`` if there is none; raises :class:`KeyFileError`.

    A private key must be closed to group and others; that is checked on the file that was opened.
    """
    name = f"{'private' if private else 'public'} key {path}"
    remedy = "put the key itself there"
    return read_own_file(path, limit=_MAX_KEY_BYTES, remedy=remedy, name=name, secret=private)


def _cannot(action: str, path: Path, error: OSError) -> KeyFileError:
    return KeyFileError(
        f"cannot {action} {path}: {error.strerror}; use a key folder that you own and may write to"
    )
