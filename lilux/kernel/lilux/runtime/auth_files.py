"""Files and folders that belong to one user: made private, checked before use, locked."""

import errno
import fcntl
import hashlib
import json
import os
import shlex
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lilux.primitives.errors import ConfigurationError, KeyFileError


def make_private_folder(folder: Path) -> None:
    """Make ``folder`` (mode 0700), or see to it that an existing one is private.

    Raises ``KeyFileError`` if others can write there, for they could have put a key of their
    own in it, and ``ConfigurationError`` if it cannot be made.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
        if found.st_uid != os.geteuid():
            raise KeyFileError(
                f"the folder {folder} belongs to another user: pass a folder of your own"
            )
        if found.st_mode & 0o022:
            raise KeyFileError(
                f"others can write in the folder {folder} (mode {stat.S_IMODE(found.st_mode):04o})"
                f": look at what is in it, then run chmod 700 {shlex.quote(str(folder))}"
            )
        if found.st_mode & 0o077:
            folder.chmod(0o700)
    except OSError as error:
        raise ConfigurationError(
            f"cannot use the folder {folder} ({_reason(error)}): pass a folder that you can write"
        ) from None


def read_own_file(path: Path, *, limit: int) -> bytes | None:
    """The bytes of ``path``, or ``None`` if it is not there.

    Raises ``KeyFileError`` if it is no plain file, is longer than ``limit`` bytes, belongs to
    another user, or can be read or written by others.
    """
    try:
        # Without O_NONBLOCK a named pipe in the file's place would hang the caller.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise KeyFileError(f"{path} is a symbolic link: put the file itself there") from None
        raise KeyFileError(
            f"cannot read {path} ({_reason(error)}): make it readable for you alone"
        ) from None
    with os.fdopen(descriptor, "rb") as file:
        _check_own_file(path, os.fstat(descriptor))
        content = file.read(limit + 1)
    if len(content) > limit:
        raise KeyFileError(f"{path} is longer than {limit} bytes: remove it and authenticate again")
    return content


def _check_own_file(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise KeyFileError(f"{path} is not a plain file: remove it and authenticate again")
    if found.st_uid != os.geteuid():
        raise KeyFileError(f"{path} belongs to another user: remove it and authenticate again")
    if found.st_mode & 0o077:
        raise KeyFileError(
            f"{path} is open to others (mode {stat.S_IMODE(found.st_mode):04o})"
            f": run chmod 600 {shlex.quote(str(path))}"
        )


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
