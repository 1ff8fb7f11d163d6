"""Programs that several benchmarks start."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from rye_project import Project

TRUE = "/bin/true"
RYE = str(Path(sys.executable).with_name("rye"))
HELLO = """\
#!/usr/bin/env bash
# /// rye
# version = "1.0.0"
# tool_type = "bash"
# executor_id = "rye/core/runtimes/bash_runtime"
# description = "A tool that the benchmark runs."
# ///
echo hello
"""


def spawn_with_pipes() -> None:
    """Start a process with a single system call: the lower bound for Python without a helper."""
    out_read, out_write = os.pipe()
    err_read, err_write = os.pipe()
    null = os.open(os.devnull, os.O_RDONLY)
    actions = [
        (os.POSIX_SPAWN_DUP2, null, 0),
        (os.POSIX_SPAWN_DUP2, out_write, 1),
        (os.POSIX_SPAWN_DUP2, err_write, 2),
    ]
    pid = os.posix_spawn(TRUE, [TRUE], os.environ, file_actions=actions)
    for fd in (null, out_write, err_write):
        os.close(fd)
    for fd in (out_read, err_read):
        while os.read(fd, 65536):
            pass
        os.close(fd)
    os.waitpid(pid, 0)


async def asyncio_call(*command: str) -> bytes:
    """Run a command the way most Python programs do, and return its output."""
    pipe = asyncio.subprocess.PIPE
    null = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*command, stdin=null, stdout=pipe, stderr=pipe)
    out, _ = await process.communicate()
    assert process.returncode == 0
    return out


def installed_environ(user: Path) -> dict[str, str]:
    """Return an environment in which compiled modules are used, as in an installed program."""
    inherited = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return inherited | {"HOME": str(user), "USER_SPACE": str(user)}


def caller(project: Project, *argv: str, expected: str = "") -> Callable[[], None]:
    """Return a function that runs ``argv`` in the project and checks the start of its output."""
    environ = installed_environ(project.user)

    def call() -> None:
        done = subprocess.run(
            argv, cwd=project.path, env=environ, capture_output=True, text=True, check=True
        )
        assert done.stdout.startswith(expected), done.stdout

    return call
