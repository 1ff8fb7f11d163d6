"""Finding ``lilux-proc``, starting it, and waiting for its end."""

from __future__ import annotations

import functools
import os
import sys
import time

from lilux.files.search_path import find_program
from lilux.primitives.errors import ConfigurationError

_SIGKILL = 9  # importing `signal` would build an enum of all signals


def find_helper() -> str:
    """Return the path of ``lilux-proc``: on PATH, else beside the interpreter or the program.

    Only absolute directories are searched, so a file in the working directory is never run. Raises
    :class:`ConfigurationError` if it is in none of them.
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
    beside = [os.path.dirname(place) for place in (executable, program) if place]  # noqa: PTH120 - texts
    return find_program("lilux-proc", [*path.split(os.pathsep), *beside])


def start_helper(binary: str, reading: int, writing: int) -> int:
    """Start ``lilux-proc serve`` with these descriptors as stdin and stdout, and return its pid.

    Raises :class:`ConfigurationError` if that fails.
    """
    try:
        # Each request contains the whole environment of its job, so the helper needs none.
        return os.posix_spawn(
            binary,
            [binary, "serve"],
            {"PATH": os.defpath},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, reading, 0),
                (os.POSIX_SPAWN_DUP2, writing, 1),
            ],
            setsigmask=[],
        )
    except OSError as error:
        raise ConfigurationError(
            f"{binary} cannot be started: {error.strerror}", hint="reinstall lilux-proc"
        ) from error


def wait_for_end(pid: int, patience: float) -> None:
    """Wait until a helper whose connection is closed has ended, which takes milliseconds.

    It is continued if it was stopped, so that it notices. After ``patience`` seconds it is killed;
    then its guardian process ends the jobs that remain.
    """
    began = time.monotonic()
    try:
        while True:
            changed, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
            if changed and not os.WIFSTOPPED(status):
                return
            if changed:
                _continue(pid)
            waited = time.monotonic() - began
            if waited >= patience:
                os.kill(pid, _SIGKILL)
                os.waitpid(pid, 0)
                return
            # Oversleep by at most a tenth of the time waited.
            time.sleep(max(0.0002, waited / 10))
    except ChildProcessError:
        # Other code in this process has waited for all children.
        return


def _continue(pid: int) -> None:
    from signal import SIGCONT

    os.kill(pid, SIGCONT)


def connection_failed(error: OSError) -> ConfigurationError:
    """Return the error for a connection that cannot be opened, mostly for lack of descriptors."""
    return ConfigurationError(
        f"lilux-proc cannot be started: {error.strerror}",
        hint="close files, or raise the limit of open files (ulimit -n)",
    )
