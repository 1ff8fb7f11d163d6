"""The private folder of the user in which calls under way announce themselves: ``~/.ai/live``.

It contains a socket for each process that has such a call, and a locked file for each page that can
answer questions. The folder is used only if it belongs to this user and nobody else can enter it,
and a socket only if the process behind it is this user's.
"""

from __future__ import annotations

import os
import socket
import stat
import time
from contextlib import suppress

from rye.ownership import is_closed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NAME = "live"
_SOCKET = ".sock"
_PAGE = ".page"
_MAX_ENTRIES = 1000
# Nobody needs longer to make a socket listen.
_NEW_SECONDS = 60.0


def open_folder(user_space: Path, *, create: bool) -> int | None:
    """Return a descriptor of the folder, ``None`` if there is none that can be used."""
    folder = user_space / ".ai" / _NAME
    try:
        if create:
            folder.mkdir(mode=0o700, exist_ok=True)
        found = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    if not is_closed(os.fstat(found)):
        os.close(found)
        return None
    return found


def listen(folder: int, backlog: int) -> tuple[socket.socket, str]:
    """Return a new socket of this process, and its name in the folder. Raises ``OSError``.

    The kernel shows the name of the binding to everybody, so the socket gets another one: only
    somebody who can list the folder finds it.
    """
    listener = socket.socket(socket.AF_UNIX)
    hidden, name = f".{os.urandom(16).hex()}", f"{os.urandom(16).hex()}{_SOCKET}"
    try:
        listener.setblocking(False)
        listener.bind(_address(folder, hidden))
        # Renamed when it listens: whoever finds it may remove one that refuses connections.
        listener.listen(backlog)
        os.rename(hidden, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        listener.close()
        remove(folder, hidden)
        raise
    return listener, name


def connect(folder: int, name: str) -> socket.socket | None:
    """Connect to a socket; ``None`` if it is not one of this user. A dead one is removed."""
    try:
        connection = socket.socket(socket.AF_UNIX)
    except OSError:  # no descriptor is left
        return None
    try:
        connection.setblocking(False)
        connection.connect(_address(folder, name))
        if is_own_peer(connection):
            return connection
    except ConnectionRefusedError:
        remove(folder, name)
    except OSError:
        pass
    connection.close()
    return None


def sockets(folder: int) -> Iterator[str]:
    """Yield the names of the sockets of this user; remove what was left by killed processes."""
    for entry in _entries(folder):
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        if not stat.S_ISSOCK(status.st_mode) or status.st_uid != os.geteuid():
            continue
        if entry.name.endswith(_SOCKET):
            yield entry.name
        elif entry.name.startswith(".") and time.time() - status.st_mtime > _NEW_SECONDS:
            remove(folder, entry.name)


def is_own_peer(connection: socket.socket) -> bool:
    """True if the process at the other end runs as this user."""
    credentials = _credentials(connection)
    return bool(credentials) and int.from_bytes(credentials[4:8], "little") == os.geteuid()


def is_this_process(connection: socket.socket) -> bool:
    """True if this process is at the other end too."""
    return int.from_bytes(_credentials(connection)[:4], "little") == os.getpid()


def _credentials(connection: socket.socket) -> bytes:
    """The process, the user and the group at the other end; empty where that cannot be known."""
    option = getattr(socket, "SO_PEERCRED", None)
    return b"" if option is None else connection.getsockopt(socket.SOL_SOCKET, option, 12)


def remove(folder: int, name: str) -> None:
    """Remove an entry, if it is there."""
    try:
        os.unlink(name, dir_fd=folder)
    except OSError:
        return


class PresentPage:
    """Says, until it is closed or the process ends, that a page can answer questions."""

    def __init__(self, user_space: Path) -> None:
        from fcntl import LOCK_EX, flock

        self._folder = open_folder(user_space, create=True)
        self._file = -1
        self._name = f"{os.urandom(16).hex()}{_PAGE}"
        if self._folder is not None:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            with suppress(OSError):  # a full disk, for example
                self._file = os.open(self._name, flags, 0o600, dir_fd=self._folder)
                flock(self._file, LOCK_EX)

    def close(self) -> None:
        """Withdraw it."""
        if self._folder is not None:
            remove(self._folder, self._name)
            os.close(self._folder)
            self._folder = None
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def a_page_answers(user_space: Path) -> bool:
    """True if the user has a page open that can answer questions."""
    folder = open_folder(user_space, create=False)
    if folder is None:
        return False
    try:
        names = [one.name for one in _entries(folder) if one.name.endswith(_PAGE)]
        return any(_is_locked(folder, name) for name in names)
    finally:
        os.close(folder)


def _is_locked(folder: int, name: str) -> bool:
    """True for the file of a page that runs; that of another one is removed."""
    from fcntl import LOCK_NB, LOCK_SH, flock

    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        file = os.open(name, flags, dir_fd=folder)
    except OSError:
        return False
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            return False
        flock(file, LOCK_SH | LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(file)
    if time.time() - status.st_mtime > _NEW_SECONDS:  # a page creates its file, then locks it
        remove(folder, name)
    return False


def _address(folder: int, name: str) -> str:
    """The address of a socket in the folder; a path could be too long for one."""
    return f"/proc/self/fd/{folder}/{name}"


def _entries(folder: int) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return [entry for entry, _ in zip(found, range(_MAX_ENTRIES), strict=False)]
    except OSError:
        return []
