"""One way to write a file: whole and durable, or not at all."""

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
    """Put ``data`` at ``path`` in one step that readers and crashes cannot split.

    The file has exactly ``mode`` before its first byte is written, whatever the umask. A symlink
    at ``path`` is replaced, not followed. The folder must exist; both it and the file are synced,
    unless ``synced`` is false: then a crash of the system may leave the new file empty.

    With ``create_only`` an existing ``path`` is left alone and raises ``FileExistsError``. Any
    other failure is the ``OSError`` of the system, naming ``path`` (or its folder, if that cannot
    be opened); a failure or interrupt before the last sync leaves the old file and nothing else.
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
    # Not derived from `name`, which may already have the greatest length that a folder allows.
    temporary = f".{os.urandom(8).hex()}.tmp"
    file_fd = os.open(temporary, _CREATE_TEMPORARY, mode, dir_fd=folder_fd)
    try:
        try:
            # The umask can only have taken bits away from what open() was given.
            os.fchmod(file_fd, mode)
            _write_all(file_fd, data)
            if synced:
                os.fsync(file_fd)
        finally:
            os.close(file_fd)
        if create_only:
            os.link(temporary, name, src_dir_fd=folder_fd, dst_dir_fd=folder_fd)
        else:
            os.rename(temporary, name, src_dir_fd=folder_fd, dst_dir_fd=folder_fd)
    except BaseException:
        os.unlink(temporary, dir_fd=folder_fd)
        raise
    if create_only:
        os.unlink(temporary, dir_fd=folder_fd)
    if synced:
        _sync_folder(folder_fd)


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _sync_folder(folder_fd: int) -> None:
    try:
        os.fsync(folder_fd)
    except OSError as error:
        # Some network file systems cannot sync a folder; there is nothing more to be done there.
        if error.errno not in {errno.EINVAL, errno.ENOTSUP}:
            raise


def _raise_naming(target: str, error: OSError) -> NoReturn:
    """Raise ``error`` again under the name that the caller knows, not the temporary one."""
    code = error.errno if error.errno is not None else errno.EIO
    raise OSError(code, error.strerror or os.strerror(code), target) from error
