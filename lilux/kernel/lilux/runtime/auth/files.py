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
    """Create ``folder`` with mode 0700, or make an existing one private.

    Raises ``KeyFileError`` if other users could have written to it, and ``ConfigurationError`` if
    it cannot be created.
    """
    try:
        make_private_folder(folder)
    except OSError as error:
        raise ConfigurationError(
            f"cannot use the folder {folder} ({_reason(error)})",
            hint="pass a folder that you can write to",
        ) from None


def read_token_file(path: Path, *, limit: int) -> bytes | None:
    """Return the bytes of ``path``, or ``None`` if it does not exist.

    Raises ``KeyFileError`` if it is not a private file of this user with at most ``limit`` bytes.
    """
    return read_own_file(path, limit=limit, remedy="remove it and authenticate again")


def per_user_lock_folder() -> Path:
    """Return the folder for locks of tokens in the keychain, the same for all processes.

    Raises ``ConfigurationError`` if another user created it first, which is possible since it is
    in the system's temporary folder.
    """
    folder = Path(tempfile.gettempdir()) / f"lilux-locks-{os.geteuid()}"
    hint = "pass storage_dir, a folder that you own, to AuthStore"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise ConfigurationError(
            f"cannot create the lock folder {folder} ({_reason(error)})", hint=hint
        ) from None
    private = not found.st_mode & 0o077 and found.st_uid == os.geteuid()
    if not (stat.S_ISDIR(found.st_mode) and private):
        raise ConfigurationError(f"the lock folder {folder} is not private to you", hint=hint)
    return folder


def name_digest(store_name: str, service: str) -> str:
    """Return a file name for a service: the same in every process, and never a path."""
    return hashlib.sha256(joined_names(store_name, service)).hexdigest()


def joined_names(store_name: str, service: str) -> bytes:
    """Encode both names so that no other pair gives the same bytes."""
    return json.dumps([store_name, service]).encode()


def acquire_lock(path: Path) -> int:
    """Lock ``path`` and return its descriptor; blocks without a time limit.

    The lock excludes other threads as well as other processes, and is released when the process
    dies. Raises ``ConfigurationError`` if the file cannot be locked.
    """
    try:
        while True:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(path, flags, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                # A cleaner of temporary files may have removed it during the wait.
                if _is_same_file(path, descriptor):
                    return descriptor
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)
    except OSError as error:
        raise ConfigurationError(
            f"cannot lock {path} ({_reason(error)})",
            hint="pass a storage_dir that you can write to, on a file system with locks",
        ) from None


def release_lock(descriptor: int) -> None:
    """Release a lock from :func:`acquire_lock`."""
    try:
        # Closing alone would leave the lock with a child that was forked in the meantime.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock ``path`` during the block; blocks the thread until it is free."""
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
