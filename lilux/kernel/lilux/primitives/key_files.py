"""The file system's side of a key pair: modes, locking and bounded reads."""

import fcntl
import os
import shlex
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lilux.primitives.atomic import atomic_write
from lilux.primitives.errors import KeyFileError

_MAX_KEY_BYTES = 16 * 1024  # a PEM of Ed25519 has about a hundred
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Non-blocking, so that a FIFO in the place of a key cannot hold the caller up.
_OPEN_KEY = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


def prepare_folder(folder: Path) -> None:
    """Create ``folder`` if it is not there, and close it to everyone but its owner."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if stat.S_IMODE(folder.stat().st_mode) != 0o700:
            folder.chmod(0o700)
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
    """Read a key file, or give ``None`` if there is none.

    A private key must be closed to group and others; that is checked on the file that was opened.
    """
    try:
        fd = os.open(path, _OPEN_KEY)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _cannot("read", path, error) from error
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise KeyFileError(f"{path} is not a regular file; put the key itself there")
        mode = stat.S_IMODE(status.st_mode)
        if private and mode & 0o077:
            raise KeyFileError(
                f"private key {path} is open to others (mode {mode:04o}); "
                f"close it with: chmod 600 {shlex.quote(str(path))}"
            )
        data = os.read(fd, _MAX_KEY_BYTES + 1)
    except OSError as error:
        raise _cannot("read", path, error) from error
    finally:
        os.close(fd)
    if len(data) > _MAX_KEY_BYTES:
        raise KeyFileError(
            f"{path} is larger than {_MAX_KEY_BYTES} bytes, so it is no key; restore the key"
        )
    return data


def _cannot(action: str, path: Path, error: OSError) -> KeyFileError:
    return KeyFileError(
        f"cannot {action} {path}: {error.strerror}; use a key folder that you own and may write to"
    )
