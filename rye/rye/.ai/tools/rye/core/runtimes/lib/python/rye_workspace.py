# rye:signed:20261116T195338Z:37b43c912e100cc921b3336688e7c3d1d2743e5e7628551387bd068f77c9d7f3:mgGIDSdTK8mMX8OI6VD5Jxd1l3ipqteBwccwqA27mEJ3Cl28okZdlnLg_us6gfQ2-vTqoWOSeMnyJ7KxMtvQAw==:f46ac53fe8a5b861
"""Paths of a tool, restricted to the project.

A path is relative to the project, or absolute. ``..`` and symbolic links are resolved before the
path is checked. ``allow_outside`` lifts the restriction, visibly in the call: it protects against
mistakes, not against a malicious caller.
"""

# ruff: noqa: PTH116, PTH118 - pathlib would add to the start of every call

from __future__ import annotations

import os
import stat

__version__ = "1.0.0"
__tool_type__ = "library"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "runtimes"
__tool_description__ = "Project paths for tools on python_runtime; not a tool itself"


class Refused(SystemExit):
    """Ends the tool with exit code 1 and a message on stderr, without a traceback.

    For mistakes that the caller can fix.
    """


class Workspace:
    """The project that a tool works in."""

    def __init__(self, project_path: str, *, allow_outside: bool = False) -> None:
        self.root = os.path.realpath(project_path)
        self._allow_outside = allow_outside

    def resolve(self, path: str) -> str:
        """Return the real, absolute path, which need not exist. Raises :class:`Refused`."""
        if not path:
            raise Refused("the path is empty; name a file or folder of the project")
        if "\0" in path:
            raise Refused("the path contains a NUL character; remove it")
        real = os.path.realpath(os.path.join(self.root, path))
        if not self._allow_outside and not self.contains(real):
            raise Refused(
                f"{path} is outside the project {self.root}; "
                "use a path inside it, or set allow_outside to true"
            )
        return real

    def contains(self, real: str) -> bool:
        """True if a real path is the project or inside it."""
        return real == self.root or real.startswith(self.root.rstrip(os.sep) + os.sep)

    def shown(self, real: str) -> str:
        """The path for messages and results: relative to the project, or absolute outside it."""
        return os.path.relpath(real, self.root) if self.contains(real) else real

    def file(self, path: str) -> str:
        """Return the real path of an existing regular file."""
        real = self.resolve(path)
        mode = self._mode(real, path)
        if stat.S_ISDIR(mode):
            raise Refused(f"{path} is a folder; use rye/fs/list to list it")
        if not stat.S_ISREG(mode):
            raise Refused(f"{path} is not a regular file; name one")
        return real

    def folder(self, path: str) -> str:
        """Return the real path of an existing folder."""
        real = self.resolve(path)
        if not stat.S_ISDIR(self._mode(real, path)):
            raise Refused(f"{path} is not a folder; name one")
        return real

    @staticmethod
    def _mode(real: str, path: str) -> int:
        try:
            return os.stat(real).st_mode
        except (FileNotFoundError, NotADirectoryError):
            raise Refused(f"{path} does not exist; use rye/fs/glob to find it") from None
        except OSError as error:
            raise Refused(f"{path} cannot be read: {error.strerror}") from None
