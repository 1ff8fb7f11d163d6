"""Atomic writes: a reader sees the old file or the new one, never a part, even after a crash."""

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_CREATE_TEMPORARY = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def atomic_write(
    path: str | os.PathLike[str],
    data: bytes,
    *,
    mode: int = 0o644,
    create_only: bool = False,
    synced: bool = True,
) -> None:
    """Write ``data`` to ``path`` through a temporary file in the same folder.

    The file has exactly ``mode`` before its first byte is written, whatever the umask. A symlink
    at ``path`` is replaced, not followed. The folder must exist. File and folder are synced,
    unless ``synced`` is false: then a system crash may leave the new file empty.

    With ``create_only`` an existing ``path`` is left alone and raises ``FileExistsError``. Any
    other failure is the system's ``OSError`` for ``path`` (or for its folder, if that cannot be
    opened). A failure or interrupt before the rename leaves the old file. No temporary file
    remains, unless the process is killed.
    """
    target = os.fspath(path)
    folder, name = os.path.split(target)
    if name in {"", os.curdir, os.pardir}:
        raise IsADirectoryError(errno.EISDIR, "not the name of a file; add one", target)
    folder_fd = os.open(folder or os.curdir, _OPEN_FOLDER)
    try:
        _write_in_folder(folder_fd, name, data, mode=mode, create_only=create_only, synced=synced)
    except OSError as error:
        _raise_naming(target, error)
    finally:
        os.close(folder_fd)


def _write_in_folder(
    folder_fd: int, name: str, data: bytes, *, mode: int, create_only: bool, synced: bool
) -> None:
    # Not derived from `name`, which may already have the maximum length.
    temporary = f".{os.urandom(8).hex()}.tmp"
    file_fd = os.open(temporary, _CREATE_TEMPORARY, mode, dir_fd=folder_fd)
    try:
        try:
            # The umask can only have removed bits from the mode given to open().
            os.fchmod(file_fd, mode)
            _write_all(file_fd, data)
            if synced:
                os.fsync(file_fd)
        finally:
            os.close(file_fd)
        if create_only:
            os.link(temporary, name, src_dir_fd=folder_fd, dst_dir_fd=folder_fd)
            os.unlink(temporary, dir_fd=folder_fd)
        else:
            os.rename(temporary, name, src_dir_fd=folder_fd, dst_dir_fd=folder_fd)
    except BaseException:
        _remove_temporary(temporary, folder_fd)
        raise
    if synced:
        _sync_folder(folder_fd)


def _remove_temporary(name: str, folder_fd: int) -> None:
    try:
        os.unlink(name, dir_fd=folder_fd)
    except FileNotFoundError:
        return  # the interrupt came right after the rename


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _sync_folder(folder_fd: int) -> None:
    try:
        os.fsync(folder_fd)
    except OSError as error:
        # Some network file systems cannot sync a folder.
        if error.errno not in {errno.EINVAL, errno.ENOTSUP}:
            raise


def _raise_naming(target: str, error: OSError) -> NoReturn:
    """Raise ``error`` again with the path that the caller gave, not the temporary name."""
    code = error.errno if error.errno is not None else errno.EIO
    raise OSError(code, error.strerror or os.strerror(code), target) from error
