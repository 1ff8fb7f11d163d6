# rye:signed:20261118T125305Z:5ddaa0c87e7d7872eb61c7ce3507675aa8cf4311c4404487e685654b3e3f268b:o6w5XKOPopZ6gEa778mNS6-VDYJ0Jw09fXGeMv3Po5H5zdtNZOq--IB_t-wQ0HixANMKw3FAPcVi49IDEEkTAw==:0cdadc7a57fefd2c
"""Paths of a tool: inside the project, and not what runs as code or decides what is trusted.

A path is relative to the project, or absolute. ``..`` and symbolic links are resolved before the
path is checked. Names that start with a dot hold settings, secrets and repositories; only those
listed here may be read or written. Installed packages are never written.

The user can allow more in the variable ``RYE_FS_ALLOW``: paths separated by ``:``, relative to the
project or absolute. A caller cannot set it, and neither can the ``.env`` file of a project.
"""

# ruff: noqa: PTH112, PTH114, PTH116, PTH117, PTH118, PTH122, PTH206, PTH208 - pathlib would add to the start of every call

from __future__ import annotations

import os
import re
import stat

__version__ = "1.0.0"
__tool_type__ = "library"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "runtimes"
__tool_description__ = "Project paths for tools on python_runtime; not a tool itself"

# The names with a dot that no program runs or obeys.
_WRITABLE = frozenset({".dockerignore", ".editorconfig", ".gitignore", ".gitkeep"})
# The names with a dot that hold no secrets; also with another extension, as in .eslintrc.json.
_READABLE = _WRITABLE | {
    ".ai", ".babelrc", ".circleci", ".clang-format", ".clang-tidy", ".coveragerc", ".devcontainer",
    ".env.example", ".env.sample", ".env.template", ".eslintrc", ".flake8", ".gitattributes",
    ".github", ".gitlab", ".gitlab-ci", ".gitmodules", ".golangci", ".husky", ".mypy", ".node-version",
    ".nvmrc", ".pre-commit-config", ".prettierrc", ".pylintrc", ".python-version", ".readthedocs",
    ".ruff", ".rustfmt", ".stylelintrc", ".tool-versions", ".venv", ".vscode",
}  # fmt: skip
# The user space is also an .ai folder, and contains keys and tokens.
_READABLE_IN_AI = frozenset({"config.yaml", "formats.yaml", "lockfiles", "tools", "trusted_keys"})
_PACKAGES = frozenset({"__pycache__", "__pypackages__", "node_modules", "site-packages"})
# A file with one of these names makes its folder a git repository or a virtual environment.
_MARKERS = ("head", "pyvenv.cfg")

# Unicode's Default_Ignorable_Code_Point: some file systems ignore these characters in names.
_IGNORABLE = (
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


class Refused(SystemExit):
    """Ends the tool with exit code 1 and a message on stderr, without a traceback.

    For mistakes that the caller can fix.
    """


class Workspace:
    """The project that a tool works in."""

    def __init__(self, project_path: str) -> None:
        self.root = os.path.realpath(project_path)
        given = os.environ.get("RYE_FS_ALLOW", "").split(os.pathsep)
        # A relative entry is not resolved: a link in a checkout must not choose what it means.
        self._allowed = [
            os.path.realpath(path) if os.path.isabs(path) else os.path.normpath(self._join(path))
            for path in given
            if path
        ]

    def _join(self, path: str) -> str:
        return os.path.join(self.root, path)

    def resolve(self, path: str) -> str:
        """Return the real, absolute path, which need not exist. Raises :class:`Refused`."""
        if not path:
            raise Refused("the path is empty; name a file or folder of the project")
        if "\0" in path:
            raise Refused("the path contains a NUL character; remove it")
        return self.inside(path, os.path.realpath(self._join(path)))

    def inside(self, path: str, real: str) -> str:
        """Return ``real`` if it is inside the project or allowed; ``path`` is for the message."""
        if not self.contains(real) and not self._is_allowed(real):
            raise Refused(
                f"{path} is outside the project {self.root}; use a path inside it, "
                "or ask the user for the file"
            )
        return real

    def contains(self, real: str) -> bool:
        """True if a real path is the project or inside it."""
        return _is_below(real, self.root)

    def _is_allowed(self, real: str) -> bool:
        return any(_is_below(real, allowed) for allowed in self._allowed)

    def shown(self, real: str) -> str:
        """The path for messages and results: relative to the project, or absolute outside it."""
        return os.path.relpath(real, self.root) if self.contains(real) else real

    def file(self, path: str) -> str:
        """Return the real path of an existing regular file that may be read."""
        real = self.resolve(path)
        mode = self._mode(real, path)
        if stat.S_ISDIR(mode):
            raise Refused(f"{path} is a folder; use rye/fs/list to list it")
        if not stat.S_ISREG(mode):
            raise Refused(f"{path} is not a regular file; name one")
        if not self.may_read(real):
            raise Refused(
                f"{path} cannot be read: files whose names start with a dot may contain secrets; "
                "ask the user for what you need from it"
            )
        return real

    def folder(self, path: str) -> str:
        """Return the real path of an existing folder."""
        real = self.resolve(path)
        if not stat.S_ISDIR(self._mode(real, path)):
            raise Refused(f"{path} is not a folder; name one")
        return real

    def target(self, path: str) -> str:
        """Return the real path of a file that may be written; it need not exist."""
        real = self.resolve(path)
        self.check_write(path, real)
        return real

    def may_read(self, real: str) -> bool:
        """True if the content of a file inside the project may be read."""
        if self._is_allowed(real):
            return True
        names = self._names(real)
        for name, below in zip(names, [*names[1:], ""]):  # noqa: B905 - not in Python 3.9
            stem = os.path.splitext(name)[0]
            readable = name in _READABLE or (not below and stem in _READABLE and stem != ".ai")
            if name.startswith(".") and not readable:
                return False
            if name == ".ai" and below and below not in _READABLE_IN_AI:
                return False
        return True

    def check_write(self, path: str, real: str) -> None:
        """Raise :class:`Refused` if a file inside the project must not be written or removed."""
        reason = None if self._is_allowed(real) else self._protection(real)
        if reason:
            raise Refused(
                f"{path} cannot be changed: {reason}, where a change could run code or decide what "
                "is trusted; use another path, or ask the user to make the change"
            )

    def _protection(self, real: str) -> str | None:
        parts, names = self._parts(real), self._names(real)
        folder = self.root
        for index, name in enumerate(names):
            last = index == len(names) - 1
            if name.startswith(".") and not (last and name in _WRITABLE):
                return "its path contains a name that starts with a dot"
            if name in _PACKAGES:
                return f"{name} contains installed packages"
            if last and name in _MARKERS:
                return "its name makes a folder a repository or an environment"
            if _is_marked(folder):
                return f"{self.shown(folder)} is a repository or an environment"
            folder = os.path.join(folder, parts[index])
        for name in os.listdir(self.root):
            link = self._join(name)
            protected = (name.startswith(".") and name not in _WRITABLE) or name in _PACKAGES
            if protected and os.path.islink(link) and _is_below(real, os.path.realpath(link)):
                return f"{name} is a link to it"
        return None

    def _parts(self, real: str) -> list[str]:
        return [name for name in real[len(self.root) :].split(os.sep) if name]

    def _names(self, real: str) -> list[str]:
        """The names below the project, in the spelling that file systems may treat as the same."""
        names = self._parts(real)
        folder = self.root
        for name in names:
            # A second name such as GIT~1 for .git, on file systems of Windows.
            found = "~" in name and os.path.lexists(os.path.join(folder, name))
            if found and name not in os.listdir(folder):
                raise Refused(f"{name} is a short form of another name; use the full name")
            folder = os.path.join(folder, name)
        return [
            (name if name.isascii() else re.sub(_IGNORABLE, "", name)).casefold() for name in names
        ]

    @staticmethod
    def _mode(real: str, path: str) -> int:
        try:
            return os.stat(real).st_mode
        except (FileNotFoundError, NotADirectoryError):
            raise Refused(f"{path} does not exist; use rye/fs/glob to find it") from None
        except OSError as error:
            raise Refused(f"{path} cannot be read: {error.strerror}") from None


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _is_marked(folder: str) -> bool:
    paths = (os.path.join(folder, name) for name in ("HEAD", *_MARKERS))
    return os.path.lexists(os.path.join(folder, "conda-meta")) or any(
        os.path.lexists(path) and not os.path.isdir(path) for path in paths
    )
