# rye:signed:20261118T125305Z:3dec87bcd2bfc96ac2fb106103ad1630096ed08d22c0be227d09712133a312af:O73SN32Xyj-CSAfvVkrdl8FuKHUaI3Dzh3OKee2RQJbLkLzJMHnH8Abwz8BalQBZwqrgUE4FTSCB4cigWoiFBQ==:0cdadc7a57fefd2c
"""Text files of a tool: bounded reads and atomic writes."""

# ruff: noqa: PTH104, PTH108, PTH118, PTH120 - pathlib would add to the start of every call

from __future__ import annotations

import os
import stat

from rye_workspace import Refused

__version__ = "1.0.0"
__tool_type__ = "library"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "runtimes"
__tool_description__ = "Text files for tools on python_runtime; not a tool itself"

MAX_FILE = 64 * 1024 * 1024
_PROBE = 8192


def open_plain(real: str, shown: str) -> int:
    """Open the regular file at ``real``; a symbolic link there is not followed."""
    try:
        fd = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise Refused(f"{shown} cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise Refused(f"{shown} is not a regular file; name one")
    return fd


def is_binary(start: bytes) -> bool:
    """True if the first bytes of a file show that it is not text."""
    return b"\0" in start[:_PROBE]


def read_bytes(real: str, shown: str, limit: int = MAX_FILE) -> bytes:
    """Read the whole file; a file larger than ``limit`` bytes is refused."""
    with os.fdopen(open_plain(real, shown), "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise Refused(f"{shown} is larger than {limit} bytes; use rye/bash/bash for such files")
    return data


def decode(data: bytes, shown: str) -> str:
    """Decode UTF-8; other encodings are refused, since writing them back would change them."""
    if is_binary(data):
        raise Refused(f"{shown} is a binary file of {len(data)} bytes; only text can be used here")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(
            f"{shown} is not UTF-8 text (byte {error.start}); convert it, or use rye/bash/bash"
        ) from None


def encode(text: str, name: str) -> bytes:
    """Encode as UTF-8; ``name`` is the parameter that contains the text."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise Refused(f"{name} contains an unpaired surrogate; send valid Unicode") from None


def write_atomic(real: str, data: bytes, shown: str, *, create_only: bool = False) -> bool:
    """Write the file atomically; return true if it is new.

    An existing file keeps its mode. With ``create_only``, an existing file is refused.
    """
    try:
        mode = os.lstat(real).st_mode
    except FileNotFoundError:
        mode = 0
    if mode and not stat.S_ISREG(mode):
        raise Refused(f"{shown} is not a regular file; name one")
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
            f"{shown} already exists; remove create_only to replace it, or use rye/fs/edit"
        ) from None
    except OSError as error:
        raise Refused(f"{shown} cannot be written: {error.strerror}") from None
    return not mode
