"""A prepared process for tests: each copy runs its last argument as Python code.

Prints ``ready`` and its pid when it takes calls. The variable ``value`` is set before that.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import sys

SYS_CLONE = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
SYS_LANDLOCK_RESTRICT_SELF = 446
CLONE_PARENT = 0x8000
SIGCHLD = 17
SIGKILL = 9
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

value = ["as prepared"]


def serve() -> None:
    """Take calls until the helper closes the socket."""
    control = socket.socket(fileno=int(os.environ["LILUX_PREPARED"]))
    libc = ctypes.PyDLL(None)
    sys.stdout.write(f"ready {os.getpid()}\n")
    sys.stdout.flush()
    while True:
        packet, fds, _, _ = socket.recv_fds(control, 1 << 18, 6)
        if not packet:
            return
        ctypes.pythonapi.PyOS_BeforeFork()
        if libc.syscall(SYS_CLONE, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0) == 0:
            ctypes.pythonapi.PyOS_AfterFork_Child()
            control.close()
            names, *strings = packet.split(b"\0")[:-1]
            _run(libc, strings, dict(zip(names.decode().split(), fds, strict=True)))
        ctypes.pythonapi.PyOS_AfterFork_Parent()
        for fd in fds:
            os.close(fd)


def _run(libc: ctypes.PyDLL, strings: list[bytes], fds: dict[str, int]) -> None:
    count = int(strings[0])
    cwd, environment = strings[count + 1], strings[count + 2 :]
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
    if "ruleset" in fds and libc.syscall(SYS_LANDLOCK_RESTRICT_SELF, fds["ruleset"], 0) != 0:
        os._exit(1)
    for number, name in enumerate(("stdin", "stdout", "stderr", "channel")):
        if name in fds:
            os.dup2(fds[name], number)
    os.environ.clear()
    for entry in environment:
        name, _, text = os.fsdecode(entry).partition("=")
        os.environ[name] = text
    if cwd:
        os.chdir(cwd)
    call = socket.socket(fileno=fds["call"])
    call.send(b"\1")
    if not call.recv(1):
        os._exit(1)
    code = 0
    try:
        exec(strings[count].decode())  # noqa: S102 - its purpose
    except SystemExit as error:
        code = int(error.code or 0)
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        exec(sys.argv[1])  # noqa: S102 - its purpose
    serve()
