"""Finding ``lilux-proc`` and starting it, whoever speaks with it then."""

from __future__ import annotations

import functools
import os
import sys
import time

from lilux.files.search_path import find_program
from lilux.primitives.errors import ConfigurationError, HelperError

_SIGKILL = 9  # the module of signals builds all their names first
# A helper ends its jobs at once, and waits a few seconds for one that is stuck in the kernel.
_END_SECONDS = 10.0


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
    beside = [os.path.dirname(place) for place in (executable, program) if place]  # noqa: PTH120 - texts
    return find_program("lilux-proc", [*path.split(os.pathsep), *beside])


def start_helper(binary: str, reading: int, writing: int) -> int:
    """Start ``lilux-proc serve`` with these descriptors as its stdin and stdout; gives its pid.

    Raises :class:`ConfigurationError` if that fails.
    """
    try:
        # The helper needs no variable of ours: each job brings its whole environment.
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
            f"{binary} cannot be started: {error.strerror}; reinstall lilux-proc"
        ) from error


def wait_for_end(pid: int, patience: float | None = None) -> None:
    """Wait for the end of a helper whose connection is closed, which takes milliseconds.

    One that has not ended in time, because somebody stopped it, is killed; then its guardian ends
    whatever jobs it had.
    """
    if patience is None:
        patience = _END_SECONDS
    began = time.monotonic()
    try:
        while os.waitpid(pid, os.WNOHANG)[0] == 0:
            waited = time.monotonic() - began
            if waited >= patience:
                os.kill(pid, _SIGKILL)
                os.waitpid(pid, 0)
                return
            # So that what is waited in vain is a tenth.
            time.sleep(max(0.0002, waited / 10))
    except ChildProcessError:
        # Someone who waits for any child has been faster.
        return


def no_connection(error: OSError) -> ConfigurationError:
    """The error of a program that can open no connection; most often it has no descriptor left."""
    return ConfigurationError(
        f"lilux-proc cannot be started: {error.strerror}; close files, or raise the limit of open "
        "files (ulimit -n)"
    )


def broken_off(reason: str) -> HelperError:
    """The error of a request that will have no answer."""
    return HelperError(
        f"{reason} while a request was in flight; whatever it had started is "
        "being ended, and the next call starts a new helper: try again"
    )
