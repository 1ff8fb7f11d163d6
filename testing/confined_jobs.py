"""Confined jobs of root and of an ordinary user, and folders for them to attack."""

from __future__ import annotations

import os
import pwd
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from proc_client import Answer, ProcClient, find_binary

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
# A job may not see the interpreter of the tests, which can lie in someone's home.
PYTHON = shutil.which("python3", path=SYSTEM_PATH) or ""
SECRET = "the-secret-of-someone-else"  # noqa: S105 - a marker, not a secret


def users() -> list[str]:
    """Return the users that confined jobs can be tested as: only root can act as another one."""
    return ["root", "ordinary"] if os.geteuid() == 0 else ["ordinary"]


def uid_of(user: str) -> int:
    """Return the uid of one of :func:`users`."""
    return (
        pwd.getpwnam("nobody").pw_uid if user == "ordinary" and os.geteuid() == 0 else os.geteuid()
    )


def real_paths(*paths: str) -> list[str]:
    """Return the existing paths without symbolic links, each once."""
    return sorted({os.path.realpath(path) for path in paths if Path(path).exists()})


class ConfinedJobs:
    """A helper, a project that its jobs may write, and a folder that they may not touch."""

    def __init__(self, folder: Path, user: str, *options: str) -> None:
        self.uid = uid_of(user)
        self.folder = folder
        self.project = self.make_folder("project")
        self.outside = self.make_folder("outside")
        self.secret = self.make_file("outside/id_ed25519", SECRET)
        binary = folder / "lilux-proc"
        if not binary.exists():
            shutil.copy(find_binary(), binary)
        self.make_folder("tmp")
        self.client = self.another_client(*options)
        report = self.client.call("probe").header
        self.enforced: dict[str, str] = report["enforced"]
        """What this machine can enforce."""
        self.missing = {one["part"]: one["reason"] for one in report["missing"]}

    def another_client(self, *options: str) -> ProcClient:
        """Start a helper of the user, whose temporary folder only these jobs use."""
        env = {**os.environ, "TMPDIR": str(self.folder / "tmp")}
        binary = str(self.folder / "lilux-proc")
        return ProcClient(*options, user=self.uid, binary=binary, env=env)

    def needs(self, *parts: str) -> None:
        """Skip the test if this machine cannot enforce one of the parts."""
        for part in parts:
            if part in self.missing:
                pytest.skip(f"not tried: {part}: {self.missing[part]}")

    def make_folder(self, name: str) -> Path:
        """Create a folder of the user."""
        path = self.folder / name
        path.mkdir(parents=True)
        os.chown(path, self.uid, -1)
        return path

    def make_file(self, name: str, text: str, mode: int = 0o600) -> Path:
        """Create a file of the user."""
        path = self.folder / name
        path.write_text(text)
        path.chmod(mode)
        os.chown(path, self.uid, -1)
        return path

    def confinement(self, **changes: Any) -> dict[str, Any]:
        """Return what programs need to start, and the project; ``changes`` replace or add."""
        base = {
            "execute": real_paths("/usr", "/bin", "/lib", "/lib64"),
            "read": real_paths("/etc", "/dev/zero", "/dev/urandom"),
            "write": ["/dev/null", str(self.project)],
        }
        added = {key: base[key] + changes.pop(key) for key in base if key in changes}
        return {"require": list(self.enforced), **base, **changes, **added}

    def run(
        self, *command: str, confinement: dict[str, Any] | None = None, **fields: Any
    ) -> Answer:
        """Run a command in the project."""
        confinement = self.confinement() if confinement is None else confinement
        env = {"PATH": SYSTEM_PATH, "LC_ALL": "C", "HOME": str(self.project)}
        options = {"cwd": str(self.project), "env": env, "env_mode": "exact", **fields}
        return self.client.exec(*command, confinement=confinement, **options)

    def python(self, code: str, *args: object, **fields: Any) -> str:
        """Run Python code that must succeed, and return what it prints."""
        answer = self.run(PYTHON, "-I", "-S", "-c", code, *map(str, args), **fields)
        assert answer.header["success"], (answer.header, answer.stdout, answer.stderr)
        return answer.stdout.decode().strip()

    def error_of(self, statement: str, *args: object, **fields: Any) -> str:
        """Run a Python statement; return the name of its errno, or ``done``."""
        code = (
            "import os, sys, errno, socket, signal, ctypes\n"
            "a = sys.argv[1:]\n"
            "libc = ctypes.CDLL(None, use_errno=True)\n"
            "def call(*n):\n"
            "    if libc.syscall(*map(ctypes.c_long, n)) < 0:\n"
            "        raise OSError(ctypes.get_errno(), '')\n"
            f"try:\n    {statement}\n"
            "except OSError as error: print(errno.errorcode.get(error.errno, repr(error)))\n"
            "else: print('done')\n"
        )
        return self.python(code, *args, **fields)


@contextmanager
def confined_jobs(user: str, *options: str) -> Iterator[ConfinedJobs]:
    """Yield the jobs of a user; the folder is removed afterwards."""
    # Not pytest's folder: it belongs to one user alone.
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="confined-")))
    folder.chmod(0o755)
    try:
        jobs = ConfinedJobs(folder, user, *options)
        try:
            jobs.needs("fs", "syscalls", "signals")
            yield jobs
        finally:
            with suppress(ConnectionError):
                jobs.client.close()
    finally:
        shutil.rmtree(folder)
