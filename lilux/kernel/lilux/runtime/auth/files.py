"""The files of a token store: private folders, bounded reads, names and locks."""

import fcntl
import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lilux.files.private import make_private_folder, read_own_file
from lilux.primitives.errors import ConfigurationError


def prepare_folder(folder: Path) -> None:
    """Make ``folder`` (mode 0700), or see to it that an existing one is private.

    Raises ``KeyFileError`` if others could have put a key of their own in it, and
    ``ConfigurationError`` if it cannot be made.
    """
    try:
        make_private_folder(folder)
    except OSError as error:
        raise ConfigurationError(
            f"cannot use the folder {folder} ({_reason(error)}): pass a folder that you can write"
        ) from None


def read_token_file(path: Path, *, limit: int) -> bytes | None:
    """The bytes of ``path``, or ``None`` if it is not there.

    Raises ``KeyFileError`` if it is not a private file of this user of at most ``limit`` bytes.
    """
    return read_own_file(path, limit=limit, remedy="remove it and authenticate again")


def per_user_lock_folder() -> Path:
    """The folder for locks of tokens that live in the keychain, the same for all processes.

    It is below the temporary folder of the system, so somebody else may have made it first:
    that is a ``ConfigurationError``.
    """
    folder = Path(tempfile.gettempdir()) / f"lilux-locks-{os.geteuid()}"
    advice = "pass storage_dir, a folder of your own, to AuthStore"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise ConfigurationError(
            f"cannot make the lock folder {folder} ({_reason(error)}): {advice}"
        ) from None
    private = not found.st_mode & 0o077 and found.st_uid == os.geteuid()
    if not (stat.S_ISDIR(found.st_mode) and private):
        raise ConfigurationError(f"the lock folder {folder} is not yours alone: {advice}")
    return folder


def name_digest(store_name: str, service: str) -> str:
    """A file name for a service's things: the same in every process, and never a path."""
    return hashlib.sha256(joined_names(store_name, service)).hexdigest()


def joined_names(store_name: str, service: str) -> bytes:
    """Both names in one text that no other two names give."""
    return json.dumps([store_name, service]).encode()


def acquire_lock(path: Path) -> int:
    """Wait, without polling and without end, until this caller alone holds ``path``.

    The descriptor is the lock: it excludes other threads as well as other processes, and a
    process that dies gives it up. Raises ``ConfigurationError`` if there can be no lock.
    """
    try:
        while True:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(path, flags, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                # A cleaner of temporary files may have removed it while we waited.
                if _is_same_file(path, descriptor):
                    return descriptor
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)
    except OSError as error:
        raise ConfigurationError(
            f"cannot lock {path} ({_reason(error)})"
            ": pass a storage_dir on a file system with locks that you can write to"
        ) from None


def release_lock(descriptor: int) -> None:
    """Give up a lock from :func:`acquire_lock`."""
    try:
        # Closing alone would leave it with a child that was forked meanwhile.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock ``path`` for the length of the block; blocks the thread until it is free."""
    descriptor = acquire_lock(path)
    try:
        yield
    finally:
        release_lock(descriptor)


def _is_same_file(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
