"""Files and folders that belong to one user alone: keys and tokens."""

import errno
import os
import shlex
import stat
from pathlib import Path

from lilux.files.bounded_read import FileTooLargeError, NotRegularFileError, read_bounded
from lilux.primitives.errors import KeyFileError


def make_private_folder(folder: Path) -> None:
    """Make ``folder`` (mode 0700), or close an existing one to everyone but its owner.

    Raises :class:`KeyFileError` if it belongs to somebody else or others can write in it, for
    they could have put a key of their own there, and ``OSError`` if it cannot be made.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat()
    if found.st_uid != os.geteuid():
        raise KeyFileError(
            f"the folder {folder} belongs to another user; pass a folder of your own"
        )
    mode = stat.S_IMODE(found.st_mode)
    if mode & 0o022:
        raise KeyFileError(
            f"others can write in the folder {folder} (mode {mode:04o}); "
            f"look at what is in it, then close it with: chmod 700 {shlex.quote(str(folder))}"
        )
    if mode != 0o700:
        folder.chmod(0o700)


def read_own_file(
    path: Path, *, limit: int, remedy: str, name: str | None = None, secret: bool = True
) -> bytes | None:
    """The bytes of ``path``, or ``None`` if it is not there.

    Raises :class:`KeyFileError` if it cannot be read, is a symbolic link or no regular file, has
    more than ``limit`` bytes, belongs to another user, or is a ``secret`` that is open to group
    or others. The message calls it ``name``, or else by its path, and ends in ``remedy`` where
    the file itself is wrong.
    """
    shown = str(path) if name is None else name

    def check(found: os.stat_result) -> None:
        if found.st_uid != os.geteuid():
            raise KeyFileError(f"{shown} belongs to another user; {remedy}")
        mode = stat.S_IMODE(found.st_mode)
        if secret and mode & 0o077:
            raise KeyFileError(
                f"{shown} is open to others (mode {mode:04o}); "
                f"close it with: chmod 600 {shlex.quote(str(path))}"
            )

    try:
        return read_bounded(path, limit, follow_links=False, check=check)
    except FileNotFoundError:
        return None
    except NotRegularFileError:
        raise KeyFileError(f"{shown} is not a regular file; {remedy}") from None
    except FileTooLargeError:
        raise KeyFileError(f"{shown} is larger than {limit} bytes; {remedy}") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise KeyFileError(f"{shown} is a symbolic link; put the file itself there") from None
        raise KeyFileError(
            f"cannot read {shown}: {error.strerror}; make it readable for you alone"
        ) from error
