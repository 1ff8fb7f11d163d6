"""Private files and folders of one user: keys and tokens."""

import errno
import os
import shlex
import stat
from pathlib import Path

from lilux.files.bounded_read import FileTooLargeError, NotRegularFileError, read_bounded
from lilux.primitives.errors import KeyFileError


def make_private_folder(folder: Path) -> None:
    """Create ``folder`` with mode 0700, or set an existing one to that mode.

    Raises :class:`KeyFileError` if another user owns it or can write to it, since that user could
    have put a key there, and ``OSError`` if it cannot be created.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat()
    if found.st_uid != os.geteuid():
        raise KeyFileError(
            f"the folder {folder} belongs to another user", hint="pass a folder that you own"
        )
    mode = stat.S_IMODE(found.st_mode)
    if mode & 0o022:
        raise KeyFileError(
            f"the folder {folder} is writable by other users (mode {mode:04o})",
            hint=f"check its contents, then run: chmod 700 {shlex.quote(str(folder))}",
        )
    if mode != 0o700:
        folder.chmod(0o700)


def read_own_file(
    path: Path, *, limit: int, remedy: str, name: str | None = None, secret: bool = True
) -> bytes | None:
    """Return the bytes of ``path``, or ``None`` if it does not exist.

    Raises :class:`KeyFileError` if the file cannot be read, is a symbolic link or not a regular
    file, has more than ``limit`` bytes, belongs to another user, or is a ``secret`` that group or
    others can access. The message calls it ``name`` (default: its path) and ends in ``remedy`` if
    the file has to be replaced.
    """
    shown = str(path) if name is None else name

    def check(found: os.stat_result) -> None:
        if found.st_uid != os.geteuid():
            raise KeyFileError(f"{shown} belongs to another user", hint=remedy)
        mode = stat.S_IMODE(found.st_mode)
        if secret and mode & 0o077:
            raise KeyFileError(
                f"{shown} is accessible to other users (mode {mode:04o})",
                hint=f"run: chmod 600 {shlex.quote(str(path))}",
            )

    try:
        return read_bounded(path, limit, follow_links=False, check=check)
    except FileNotFoundError:
        return None
    except NotRegularFileError:
        raise KeyFileError(f"{shown} is not a regular file", hint=remedy) from None
    except FileTooLargeError:
        raise KeyFileError(f"{shown} is larger than {limit} bytes", hint=remedy) from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise KeyFileError(
                f"{shown} is a symbolic link", hint="replace it with the file"
            ) from None
        raise KeyFileError(
            f"cannot read {shown}: {error.strerror}", hint="make it readable by its owner only"
        ) from error
