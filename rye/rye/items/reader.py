"""One bounded read of one file, which must be a plain file inside its space."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from rye.errors import ItemFormatError, ItemNotFoundError, RyeError
from rye.items.element import ItemFile
from rye.spaces.containment import is_in_space, not_a_regular_file_error, outside_space_error

MAX_ITEM_BYTES = 1024 * 1024

# What the system says of a socket, a device without a driver and a link that leads to itself.
_NO_PLAIN_FILE = frozenset({errno.ENXIO, errno.ENODEV, errno.ELOOP, errno.EISDIR})
_NO_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE})

# Without O_NONBLOCK a FIFO would make the call wait for a writer.
_FLAGS = (
    os.O_RDONLY
    | os.O_CLOEXEC
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)


def read_item(path: Path, space_root: Path) -> ItemFile:
    """The bytes of ``path``, at most 1 MiB, read once.

    Whether the file lies in ``space_root`` is asked of the file that was opened, not of its name,
    so that no link can be put in between. Raises :class:`UnsafePathError` for a file elsewhere or
    one that is not a plain file, :class:`ItemNotFoundError` if it is gone,
    :class:`ItemFormatError` if it cannot be read or is too large.
    """
    name = os.fspath(path)
    try:
        descriptor = os.open(name, _FLAGS)
    except (OSError, ValueError) as error:
        raise _cannot_open(path, error) from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise not_a_regular_file_error(path)
        place = actual_path(descriptor, name)
        if not is_in_space(place, os.fspath(space_root)):
            raise outside_space_error(path, space_root)
        if status.st_size > MAX_ITEM_BYTES:
            raise _too_large(path)
        content = _read(descriptor, status.st_size)
    except OSError as error:
        raise _unreadable(path, error) from None
    finally:
        os.close(descriptor)
    if len(content) > MAX_ITEM_BYTES:
        raise _too_large(path)
    return ItemFile(path=path, content=content, place=place)


def actual_path(descriptor: int, name: str) -> str:
    """Where the file lies that was opened by ``name``; empty if that cannot be told any more."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115 - on every read of every call
    except OSError:
        real = os.path.realpath(name)
        # Only if the name still leads to the file that is open does its path say where that is.
        return real if os.path.samestat(Path(real).stat(), os.fstat(descriptor)) else ""


def _read(descriptor: int, size: int) -> bytes:
    chunks = []
    rest = MAX_ITEM_BYTES + 1
    wanted = size + 1
    while rest > 0:
        chunk = os.read(descriptor, min(wanted, rest))
        if not chunk:
            break
        chunks.append(chunk)
        rest -= len(chunk)
        wanted = max(wanted - len(chunk), 64 * 1024)
    return b"".join(chunks)


def _cannot_open(path: Path, error: OSError | ValueError) -> RyeError:
    if isinstance(error, (FileNotFoundError, NotADirectoryError)):
        return ItemNotFoundError(
            f"{path}: there is no such file", hint="restore it or search again"
        )
    if isinstance(error, OSError) and error.errno in _NO_PLAIN_FILE:
        return not_a_regular_file_error(path)
    return _unreadable(path, error)


def _unreadable(path: Path, error: OSError | ValueError) -> ItemFormatError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    hint = "check its permissions and its disk"
    if isinstance(error, OSError) and error.errno in _NO_DESCRIPTORS:
        hint = "close files, or raise the limit of open files (ulimit -n)"
    return ItemFormatError(path, f"cannot be read ({reason.lower()})", hint=hint)


def _too_large(path: Path) -> ItemFormatError:
    return ItemFormatError(
        path,
        f"is larger than {MAX_ITEM_BYTES} bytes",
        hint="keep large data in a file of its own",
    )
