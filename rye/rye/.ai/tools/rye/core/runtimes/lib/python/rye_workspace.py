# rye:signed:20261116T195035Z:61535cee91789621af1d9d4aea504cd4e3c8d97bb5b0168c8e47a05b217905ff:kXyiSdGSKr4oxwGKoSHHzvyYgbHAa_Or6TrKiLNtQSrFKPqPXwhibIZilySgr7PylLGche9VoT0p_sQfcFY2Dg==:cd7c763470a45766
"""Paths of a tool, kept inside the project.

A path is relative to the project, or absolute and inside of it. ``..`` and symbolic links are
followed first and judged by where they lead. ``allow_outside`` lifts the limit: it is a guard
against slips that a client can see in the call, not a wall against a caller who means harm.
"""

# ruff: noqa: PTH116, PTH118 - pathlib would add to the start of every call

from __future__ import annotations

import os
import stat

__version__ = "1.0.0"
__tool_type__ = "library"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "runtimes"
__tool_description__ = "Confined paths for tools on python_runtime; not to be run by itself"


class Refused(SystemExit):
    """The tool does not do what was asked: ends it with exit code 1 and the message on stderr,
    without a traceback, for it is the caller who has something to mend."""


class Workspace:
    """The project that a tool works in."""

    def __init__(self, project_path: str, *, allow_outside: bool = False) -> None:
        self.root = os.path.realpath(project_path)
        self._allow_outside = allow_outside

    def resolve(self, path: str) -> str:
        """The real, absolute path; what it names need not exist. Raises :class:`Refused`."""
        if not path:
            raise Refused("the path is empty; name a file or a folder of the project")
        if "\0" in path:
            raise Refused("the path contains a NUL character; remove it")
        real = os.path.realpath(os.path.join(self.root, path))
        if not self._allow_outside and not self.contains(real):
            raise Refused(
                f"{path} leads out of the project {self.root}; "
                "name a path inside, or set allow_outside to true"
            )
        return real

    def contains(self, real: str) -> bool:
        """Whether a real path is the project or lies in it."""
        return real == self.root or real.startswith(self.root.rstrip(os.sep) + os.sep)

    def shown(self, real: str) -> str:
        """The path as a caller knows it: relative to the project, or absolute outside of it."""
        return os.path.relpath(real, self.root) if self.contains(real) else real

    def file(self, path: str) -> str:
        """The real path of an existing plain file."""
        real = self.resolve(path)
        mode = self._mode(real, path)
        if stat.S_ISDIR(mode):
            raise Refused(f"{path} is a folder; use rye/fs/list to look into it")
        if not stat.S_ISREG(mode):
            raise Refused(f"{path} is no plain file; name one")
        return real

    def folder(self, path: str) -> str:
        """The real path of an existing folder."""
        real = self.resolve(path)
        if not stat.S_ISDIR(self._mode(real, path)):
            raise Refused(f"{path} is no folder; name one")
        return real

    @staticmethod
    def _mode(real: str, path: str) -> int:
        try:
            return os.stat(real).st_mode
        except (FileNotFoundError, NotADirectoryError):
            raise Refused(f"{path} does not exist; use rye/fs/glob to find it") from None
        except OSError as error:
            raise Refused(f"{path} cannot be looked at: {error.strerror}") from None
