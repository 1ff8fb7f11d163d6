"""A running ``lilux-proc serve`` and being sure of its end."""

import contextlib
import os
import socket
import weakref

from lilux.primitives.errors import ConfigurationError
from lilux.primitives.subprocess.binary import (
    find_helper,
    no_connection,
    start_helper,
    wait_for_end,
)

__all__ = ["HelperProcess", "find_helper"]

_running: "weakref.WeakSet[HelperProcess]" = weakref.WeakSet()


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
            raise no_connection(error) from error
        try:
            self.pid = start_helper(binary, theirs.fileno(), theirs.fileno())
        except ConfigurationError:
            ours.close()
            raise
        finally:
            theirs.close()
        ours.setblocking(False)
        self.socket = ours
        self._end = weakref.finalize(self, _end, ours, self.pid)
        _running.add(self)

    def close(self) -> None:
        """Closes the socket and waits until the helper, and with it every job, is gone.

        Blocks for the few milliseconds that this takes. A helper that does not end is killed after
        some seconds. May be called again.
        """
        self._end()

    def kill(self) -> None:
        """Ends a helper that does not answer; whatever it had started is ended behind it."""
        if self._end.detach() is not None:
            self.socket.close()
            wait_for_end(self.pid, patience=0)

    def forget(self) -> None:
        """For a forked child: it must not hold the socket, and the helper is not its child."""
        self._end.detach()
        with contextlib.suppress(OSError):
            os.close(self.socket.detach())


def _end(connection: socket.socket, pid: int) -> None:
    connection.close()
    wait_for_end(pid)


def _forget_in_child() -> None:
    for process in list(_running):
        process.forget()
    _running.clear()


os.register_at_fork(after_in_child=_forget_in_child)
