"""The command ``rye`` as a child process, with pipes or on a pseudo-terminal.

::

    done = rye("list", "--json", cwd=project.path, user=project.user)
    assert done.code == 0, done.stderr

    with Terminal("run", "tools/slow", cwd=project.path, user=project.user) as terminal:
        terminal.wait_for("started")
        terminal.interrupt()
        assert terminal.finish() == 130

A child does not inherit the environment: it gets only the variables of :func:`environment`. Tests
that need no new process use ``InProcessRye``.
"""

from __future__ import annotations

import codecs
import errno
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import pytest
from rye.cli.entry import run_command

COMMAND = (sys.executable, "-m", "rye")
DEADLINE = 60.0

# The first terminal that a session leader opens becomes its controlling terminal, for Ctrl-C.
_OPEN_TERMINAL = 'exec 9<>"$0" 9>&- && exec "$@"'


class Completed(NamedTuple):
    """The result of a command. Bytes that are not UTF-8 are lone surrogates."""

    code: int
    stdout: str
    stderr: str


def environment(user: Path | None, env: Mapping[str, str | None] | None = None) -> dict[str, str]:
    """Return the environment of a child; ``None`` in ``env`` removes a variable."""
    base: dict[str, str | None] = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
    if user is not None:
        base.update(HOME=str(user), USER_SPACE=str(user))
    base.update(env or {})
    return {name: value for name, value in base.items() if value is not None}


def rye(
    *args: str | Path,
    cwd: Path,
    user: Path | None = None,
    input: str | bytes | None = None,  # noqa: A002 - as subprocess.run names it
    env: Mapping[str, str | None] | None = None,
    timeout: float = DEADLINE,
) -> Completed:
    """Run the command. Without ``input``, stdin is empty."""
    given = input.encode("utf-8", "surrogateescape") if isinstance(input, str) else input
    done = subprocess.run(
        [*COMMAND, *map(str, args)],
        cwd=cwd,
        env=environment(user, env),
        input=given or b"",
        capture_output=True,
        timeout=timeout,
        check=False,
    )
    return Completed(done.returncode, _text(done.stdout), _text(done.stderr))


class InProcessRye:
    """The command in this process, in the directory and with the user space of a project."""

    def __init__(
        self,
        project: Path,
        user: Path,
        monkeypatch: pytest.MonkeyPatch,
        capfd: pytest.CaptureFixture[str],
    ) -> None:
        self._capfd = capfd
        monkeypatch.chdir(project)
        monkeypatch.setenv("HOME", str(user))
        monkeypatch.setenv("USER_SPACE", str(user))

    def __call__(self, *args: str | Path) -> Completed:
        self._capfd.readouterr()
        code = run_command(list(map(str, args)))
        return Completed(code, *self._capfd.readouterr())


@contextmanager
def default_signals() -> Iterator[None]:
    """Restore the default handling of signals that this process ignores.

    A child inherits ignored signals, as from ``nohup`` or a background job.
    """
    ignored = [
        number
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)
        if signal.getsignal(number) is signal.SIG_IGN
    ]
    for number in ignored:
        signal.signal(number, signal.SIG_DFL)
    try:
        yield
    finally:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)


class Terminal:
    """A child on its own pseudo-terminal; leaving the context kills it.

    ``stdout`` and ``stderr`` may be other file descriptors, as in ``rye … | cat``. ``argv``
    replaces the command ``rye``.
    """

    def __init__(
        self,
        *args: str | Path,
        cwd: Path,
        user: Path | None = None,
        env: Mapping[str, str | None] | None = None,
        argv: Sequence[str] = COMMAND,
        stdout: int | None = None,
        stderr: int | None = None,
        columns: int = 100,
    ) -> None:
        self.shown = ""
        """All output so far, with ``\\n`` as line end."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (30, columns))
        try:
            with default_signals():
                self.process = subprocess.Popen(
                    ["/bin/sh", "-c", _OPEN_TERMINAL, os.ttyname(slave), *argv, *map(str, args)],
                    cwd=cwd,
                    env={"TERM": "xterm-256color", **environment(user, env)},
                    stdin=slave,
                    stdout=slave if stdout is None else stdout,
                    stderr=slave if stderr is None else stderr,
                    start_new_session=True,
                )
        finally:
            os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        if self._master >= 0:
            os.close(self._master)

    def wait_for(self, text: str, seconds: float = DEADLINE) -> str:
        """Wait until the output contains ``text``, and return the output."""
        deadline = time.monotonic() + seconds
        while text not in self.shown:
            if not self._read(deadline - time.monotonic()):
                raise AssertionError(f"{text!r} was not shown, only {self.shown!r}")
        return self.shown

    def type(self, text: str) -> None:
        """Type some text; control characters act as keys."""
        os.write(self._master, text.encode())

    def interrupt(self) -> None:
        """Ctrl-C: SIGINT to the foreground process group."""
        self.type("\x03")

    def hang_up(self, seconds: float = DEADLINE) -> int:
        """Close the terminal and return the exit code."""
        os.close(self._master)
        self._master = -1
        return self.process.wait(seconds)

    def finish(self, seconds: float = DEADLINE) -> int:
        """Read the output to its end and return the exit code."""
        deadline = time.monotonic() + seconds
        while self._read(deadline - time.monotonic()):
            pass
        return self.process.wait(max(deadline - time.monotonic(), 0.01))

    def _read(self, seconds: float) -> bool:
        """Read once; return false at the end of the output or after ``seconds``."""
        ready, _, _ = select.select([self._master], [], [], max(seconds, 0))
        if not ready:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError as error:
            if error.errno != errno.EIO:  # on Linux: no process has the terminal open
                raise
            return False
        self.shown = (self.shown + self._decoder.decode(data)).replace("\r\n", "\n")
        return bool(data)


def without_progress(shown: str) -> str:
    """Return what a terminal showed, without the line with the running time of a tool."""
    return re.sub(r"\r\x1b\[2K(running [^\r^]* s)?", "", shown)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
