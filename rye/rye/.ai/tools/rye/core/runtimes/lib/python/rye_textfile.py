# rye:signed:20261116T195035Z:d4c1e9da67ad39ea80e696f0d10df986cd71409c3fad878f831ba645f9053cf9:PB6PfqkUfNBdtRPbopbHpM0HHMrFnb0a9KRr88q8piHzmEw30rwCJ3A_RzqWOOCnaYh8vzahsDhgGOmy8xy9BA==:cd7c763470a45766
"""Text files of a tool: read within a bound, written whole or not at all."""

# ruff: noqa: PTH104, PTH108, PTH118, PTH120 - pathlib would add to the start of every call

from __future__ import annotations

import os
import stat

from rye_workspace import Refused

__version__ = "1.0.0"
__tool_type__ = "library"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "runtimes"
__tool_description__ = "Text files for tools on python_runtime; not to be run by itself"

MAX_FILE = 64 * 1024 * 1024
_PROBE = 8192


def open_plain(real: str, shown: str) -> int:
    """A descriptor of the plain file at ``real``; a link that appeared there is not followed."""
    try:
        fd = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise Refused(f"{shown} cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise Refused(f"{shown} is no plain file; name one")
    return fd


def is_binary(start: bytes) -> bool:
    """Whether the first bytes of a file say that it is not text."""
    return b"\0" in start[:_PROBE]


def read_bytes(real: str, shown: str, limit: int = MAX_FILE) -> bytes:
    """The whole file; one larger than ``limit`` bytes is refused."""
    with os.fdopen(open_plain(real, shown), "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise Refused(f"{shown} is larger than {limit} bytes; use rye/bash/bash for such files")
    return data


def decode(data: bytes, shown: str) -> str:
    """The text; anything but UTF-8 is refused, since writing it back would change it."""
    if is_binary(data):
        raise Refused(f"{shown} is a binary file of {len(data)} bytes; only text can be used here")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(
            f"{shown} is not UTF-8 text (byte {error.start}); convert it, or use rye/bash/bash"
        ) from None


def encode(text: str, name: str) -> bytes:
    """UTF-8; ``name`` is the parameter that the text came in."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise Refused(f"{name} contains half of a surrogate pair; send valid Unicode") from None


def write_atomic(real: str, data: bytes, shown: str, *, create_only: bool = False) -> bool:
    """Puts ``data`` at ``real`` in one step; gives whether the file is new.

    An existing file keeps its mode. With ``create_only`` an existing file is refused.
    """
    try:
        mode = os.lstat(real).st_mode
    except FileNotFoundError:
        mode = 0
    if mode and not stat.S_ISREG(mode):
        raise Refused(f"{shown} is no plain file; name one")
    temporary = os.path.join(os.path.dirname(real), f".{os.urandom(8).hex()}.tmp")
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            with os.fdopen(fd, "wb") as file:
                if mode:
                    os.fchmod(file.fileno(), stat.S_IMODE(mode))
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if create_only:
                os.link(temporary, real)
                os.unlink(temporary)
            else:
                os.rename(temporary, real)
        except BaseException:
            os.unlink(temporary)
            raise
    except FileExistsError:
        raise Refused(
            f"{shown} exists already; leave create_only out to replace it, or use rye/fs/edit"
        ) from None
    except OSError as error:
        raise Refused(f"{shown} cannot be written: {error.strerror}") from None
    return not mode
