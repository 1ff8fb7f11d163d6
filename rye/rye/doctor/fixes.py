"""What ``rye doctor --fix`` can fix safely.

A fix takes access away from others, creates an empty folder, or removes what is only a cache or
belongs to a tool that does not exist. It never makes something trusted: a key, a list of keys or an
approval that others could have written stays refused until the user has looked at it.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rye import __version__
from rye.cache.disk import FORMAT
from rye.context import Context
from rye.doctor.checks import Finding, problem, warning
from rye.errors import RyeError
from rye.executor.locks.folder import SUFFIX
from rye.spaces.resolver import Resolver
from rye.trust.store import TrustStore

_FIX = "fix it with: rye doctor --fix"
_BY_OTHERS = 0o022


class Fix(NamedTuple):
    """Something that is wrong, and how to change that."""

    subject: str
    wrong: str
    done: str
    """What was done, in the past tense."""
    apply: Callable[[], None]
    after: str = ""
    """What the user should do then."""
    is_problem: bool = False
    """True if something does not work until this is fixed."""
    is_usual: bool = False
    """True for what is missing on every new machine."""

    def finding(self) -> Finding:
        """The finding if it is not fixed."""
        return (problem if self.is_problem else warning)(self.subject, self.wrong, _FIX)


def fixes(context: Context) -> Iterator[Fix]:
    """Yield what can be fixed. Nothing is changed yet."""
    yield from _modes_of_keys(TrustStore(context, spaces=()).key_folder)
    yield from _missing_folders(context)
    yield from _stale_caches(context.user_space / ".ai" / "cache")
    yield from _lockfiles_without_tools(context)


def _modes_of_keys(folder: Path) -> Iterator[Fix]:
    for path, wanted in ((folder, 0o700), (folder / "private_key.pem", 0o600)):
        try:
            status = path.lstat()
        except OSError:
            continue
        mode = stat.S_IMODE(status.st_mode)
        extra = mode & ~wanted
        # What others could have written may be theirs: that is for the user to decide.
        if not extra or mode & _BY_OTHERS or status.st_uid != os.geteuid():
            continue
        if stat.S_ISLNK(status.st_mode):
            continue
        readable = path.name.endswith(".pem") and bool(mode & 0o044)
        yield Fix(
            "your key",
            f"{path} has mode {mode:04o}, so that others have access",
            f"set the mode of {path} to {wanted:04o}",
            partial(path.chmod, wanted),
            "others could have read the key; to be safe, run: rye key rotate" if readable else "",
            is_problem=path.name.endswith(".pem"),
        )


def _missing_folders(context: Context) -> Iterator[Fix]:
    user, project = context.user_space, context.project_path / ".ai"
    if user.is_dir() and os.access(user, os.W_OK) and not os.path.lexists(user / ".ai"):
        yield _folder("user space", user / ".ai")
    if project.is_dir() and os.access(project, os.W_OK) and not os.path.lexists(project / "tools"):
        yield _folder("project", project / "tools")


def _folder(subject: str, path: Path) -> Fix:
    # Only the folder of the user holds secrets; that of a project is for everybody who may read it.
    mode = 0o700 if subject == "user space" else 0o755
    return Fix(subject, f"{path} does not exist", f"created {path}", partial(path.mkdir, mode=mode))


def _stale_caches(cache: Path) -> Iterator[Fix]:
    try:
        status = cache.lstat()
    except OSError:
        return
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        return
    if status.st_mode & 0o077:
        yield _removal(cache, "is not private, and therefore not used")
        return
    current = f"{__version__}-{FORMAT}"
    for path in sorted((cache / "items").glob("*")):
        if path.name != current and path.is_dir() and not path.is_symlink():
            yield _removal(path, "belongs to another version of Rye")


def _removal(path: Path, reason: str) -> Fix:
    return Fix("cache", f"{path} {reason}", f"removed {path}", partial(shutil.rmtree, path))


def _lockfiles_without_tools(context: Context) -> Iterator[Fix]:
    resolver = Resolver(context)
    roots = {context.project_path / ".ai", context.user_space / ".ai"}
    for folder in sorted(root / "lockfiles" for root in roots):
        for path in sorted(folder.rglob(f"*{SUFFIX}")):
            name = path.relative_to(folder).as_posix().removesuffix(SUFFIX)
            item_id = name.rpartition("@")[0]
            if item_id and not path.is_symlink() and _is_missing(item_id, resolver):
                yield Fix(
                    "lockfile",
                    f"{path} pins {item_id}, which does not exist",
                    f"removed {path}",
                    partial(_remove_lockfile, path, folder),
                )


def _is_missing(item_id: str, resolver: Resolver) -> bool:
    from rye.errors import ItemNotFoundError

    try:
        resolver.resolve(item_id)
    except ItemNotFoundError:
        return True
    except RyeError:
        return False
    return False


def _remove_lockfile(path: Path, folder: Path) -> None:
    path.unlink()
    for parent in path.parents:
        if parent == folder or any(parent.iterdir()):
            return
        parent.rmdir()
