"""Compiled Python beside a closure: made from its copy, by the interpreter that will load it.

``{store}/<digest>.<interpreter>/`` has a hash-based ``.pyc`` for each source, which the runtime
loads instead of compiling the source in every call. Bytecode carries no signature, so what was
written is recorded in the disk cache, and compared in every call; the disk cache is as trustworthy
as the trust store (ADR 10). Nothing is taken from a ``__pycache__``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from lilux.record import Record
from lilux.sha256 import sha256

from rye.cache.disk import DiskCache
from rye.closure.check import Plan, is_intact, plan_for
from rye.closure.manifest import DATA, RUNTIME_DATA, Closure, ClosureFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_KIND = "compiled"
_MAX_KNOWN = 256
_ROLES = {"tool": DATA, "lib": RUNTIME_DATA}
_SOURCE = ".py"
_SECONDS = 60
# Runs in the interpreter of the tool. It compiles the files that it is given, and runs none.
_COMPILER = """\
import py_compile, sys
source, target, *names = sys.argv[1:]
for name in names:
    try:
        py_compile.compile(
            source + "/" + name, target + "/" + name + "c", name, doraise=True,
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )
    except (py_compile.PyCompileError, RecursionError, ValueError):
        pass  # the tool reports it when it is run
"""


class CompileJob(Record, frozen=True, kw_only=True):
    """What has to be compiled, after a call that had to do without."""

    interpreter: str
    root: str
    """The copy with the sources."""
    names: tuple[str, ...]
    target: str
    """The folder that gets the result."""
    key: str

    def config(self, temporary: str) -> dict[str, Any]:
        """The config of a process that writes the compiled files to ``temporary``."""
        return {
            "command": self.interpreter,
            "args": ["-I", "-S", "-B", "-c", _COMPILER, self.root, temporary, *self.names],
            "env": {},
            "env_mode": "exact",
            "cwd": "/",
            "timeout": _SECONDS,
            "render": False,
        }


class CompiledFiles:
    """The compiled files of one user. For one thread."""

    def __init__(self, folder: str, disk_cache: DiskCache) -> None:
        self._folder = folder
        self._disk_cache = disk_cache
        self._known: dict[str, Plan] = {}

    def find(self, closure: Closure, root: str, interpreter: str) -> str | CompileJob | None:
        """The folder with intact compiled files, or the job that makes them.

        ``None`` if the interpreter is not a file, or if the copy is not in the store.
        """
        key = _key(closure.digest, interpreter)
        if key is None or not root.startswith(f"{self._folder}/"):
            return None
        target = f"{self._folder}/{key}"
        plan = self._plan(key)
        if plan is not None and is_intact(target, plan, {}):
            return target
        places = [one.place for one in closure.manifest.files if one.path.endswith(_SOURCE)]
        names = [one for one in places if one is not None and one.partition("/")[0] in _ROLES]
        return CompileJob(
            interpreter=interpreter, root=root, names=tuple(names), target=target, key=key
        )

    def begin(self, job: CompileJob) -> str:
        """A temporary folder for the job; empty if it cannot be made."""
        temporary = f"{self._folder}/.{os.urandom(8).hex()}.tmp"
        try:
            for name in job.names:
                folder = os.path.dirname(f"{temporary}/{name}")  # noqa: PTH120 - texts here
                os.makedirs(folder, 0o700, exist_ok=True)  # noqa: PTH103 - as above
        except OSError:
            return ""
        return temporary

    def end(self, job: CompileJob, temporary: str) -> None:
        """Keep what the job wrote to the folder; a failure only costs time. Raises nothing."""
        from rye.closure.writer import move_copy, remove_copy

        try:
            made: dict[str, str] = {}
            for name in job.names:
                path = f"{temporary}/{name}c"
                if os.path.exists(path):  # noqa: PTH110 - as above
                    os.chmod(path, 0o400)  # noqa: PTH101 - Python gives it the mode of the source
                    with open(path, "rb") as file:  # noqa: PTH123 - as above
                        made[f"{name}c"] = sha256(file.read()).hexdigest()
            if made:
                move_copy(temporary, job.target)
                self._disk_cache.keep(_KIND, job.key, made)
                self._remember(job.key, made)
        except OSError:
            pass
        finally:
            remove_copy(temporary)

    def _plan(self, key: str) -> Plan | None:
        plan = self._known.get(key)
        if plan is None:
            made = self._disk_cache.recall(_KIND, key)
            plan = None if not isinstance(made, dict) else self._remember(key, made)
        return plan

    def _remember(self, key: str, made: Mapping[str, str]) -> Plan:
        if len(self._known) >= _MAX_KNOWN:
            self._known.clear()
        files = [
            ClosureFile(
                role=_ROLES[name.partition("/")[0]], path=name.partition("/")[2], sha256=one
            )
            for name, one in made.items()
        ]
        plan = self._known[key] = plan_for(files, ())
        return plan


def _key(digest: str, interpreter: str) -> str | None:
    """The name of the folder: of the closure, and of this very interpreter."""
    try:
        status = os.stat(interpreter)  # noqa: PTH116 - a text, in every call
    except OSError:
        return None
    stamp = f"{status.st_dev} {status.st_ino} {status.st_size} {status.st_mtime_ns}"
    return f"{digest}.{sha256(stamp.encode()).hexdigest()[:16]}"
