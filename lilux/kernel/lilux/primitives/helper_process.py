"""Starting ``lilux-proc serve`` and being sure of its end."""

import contextlib
import functools
import os
import shutil
import socket
import sys
import weakref
from pathlib import Path

from lilux.primitives.errors import ConfigurationError

_running: "weakref.WeakSet[HelperProcess]" = weakref.WeakSet()


def find_helper() -> str:
    """The path of ``lilux-proc``: on PATH, else beside the interpreter or the called program.

    Only absolute places count: a file in the working directory is not ours to run. Raises
    :class:`ConfigurationError` if it is in none of these places.
    """
    program = sys.argv[0] if sys.argv else ""
    found = _find(os.environ.get("PATH", os.defpath), sys.executable, program)
    if found is None or not os.access(found, os.X_OK):
        _find.cache_clear()
        raise ConfigurationError(
            "lilux-proc binary not found on PATH. Install it with: pip install lilux-proc"
        )
    return found


@functools.lru_cache(maxsize=8)
def _find(path: str, executable: str, program: str) -> str | None:
    beside = [str(Path(place).parent) for place in (executable, program) if place]
    places = [place for place in [*path.split(os.pathsep), *beside] if Path(place).is_absolute()]
    return shutil.which("lilux-proc", path=os.pathsep.join(places)) if places else None


class HelperProcess:
    """A running helper: the socket to it, and its pid.

    It ends when the socket is closed: by :meth:`close`, when this object is collected, or when
    the interpreter exits. Its running jobs end with it.
    """

    def __init__(self, binary: str) -> None:
        """Starts it. Raises :class:`ConfigurationError` if that fails."""
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:
            # Most often this program has no descriptor left.
            raise ConfigurationError(
                f"lilux-proc cannot be started: {error.strerror}; close files, or raise the limit "
                "of open files (ulimit -n)"
            ) from error
        try:
            # The helper needs no variable of ours: each job brings its whole environment.
            self.pid = os.posix_spawn(
                binary,
                [binary, "serve"],
                {"PATH": os.defpath},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, theirs.fileno(), 0),
                    (os.POSIX_SPAWN_DUP2, theirs.fileno(), 1),
                ],
                setsigmask=[],
            )
        except OSError as error:
            ours.close()
            raise ConfigurationError(
                f"{binary} cannot be started: {error.strerror}; reinstall lilux-proc"
            ) from error
        finally:
            theirs.close()
        ours.setblocking(False)
        self.socket = ours
        self._end = weakref.finalize(self, _end, ours, self.pid)
        _running.add(self)

    def close(self) -> None:
        """Closes the socket and waits until the helper, and with it every job, is gone.

        Blocks for the few milliseconds that this takes. May be called again.
        """
        self._end()

    def forget(self) -> None:
        """For a forked child: it must not hold the socket, and the helper is not its child."""
        self._end.detach()
        with contextlib.suppress(OSError):
            os.close(self.socket.detach())


def _end(connection: socket.socket, pid: int) -> None:
    connection.close()
    # Someone who waits for any child may have been faster.
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


def _forget_in_child() -> None:
    for process in list(_running):
        process.forget()
    _running.clear()


os.register_at_fork(after_in_child=_forget_in_child)
