# rye:signed:20261118T125305Z:bc10bd2b7958f43d7a857d5349707dbd2706dddab0027652aee368e3d49991a8:mHfjeYjC_zXTxkvjIiW1W3VB-XOf6t4Vn0qhgtJhWMun4GpENWGUGW6CeXx4vwkXxtTWLNYLbbyFYIr9OgR_DQ==:0cdadc7a57fefd2c
"""The place of a repository: that of the project, and not one that the caller should not see."""

# ruff: noqa: PTH112, PTH118, PTH123 - pathlib would add to the start of every call

from __future__ import annotations

import contextlib
import os

from rye_workspace import Refused

__version__ = "1.0.0"
__tool_type__ = "library"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "git"
__tool_description__ = "The repository of rye/git/git; not a tool itself"

# Steps of a rebase that start no program; "exec" does.
_STEPS = frozenset({
    "pick", "p", "reword", "r", "edit", "e", "squash", "s", "fixup", "f", "drop", "d", "break", "b",
    "label", "l", "reset", "t", "merge", "m", "noop", "update-ref", "u",
})  # fmt: skip
_MAX_BYTES = 1024 * 1024


def check_place(worktree: str, *, submodule: bool, shared: bool) -> None:
    """Raise :class:`Refused` if ``.git`` leads to a repository that is not of this folder.

    A ``.git`` file or link can name any repository. That of a worktree or a submodule names the
    folder in turn. Links and ``alternates`` add the objects of other repositories, unless these may
    be ``shared``. ``submodule``: the settings name this folder.
    """
    git = _real(git_folder(worktree))
    common = _real(os.path.join(git, _read(os.path.join(git, "commondir")) or "."))
    if _is_inside(git, worktree):
        ours = _is_inside(common, worktree)
    else:
        back = _read(os.path.join(git, "gitdir"))
        named = back and _real(os.path.join(git, back)) == os.path.join(_real(worktree), ".git")
        ours = _is_inside(git, common) and bool(named or submodule)
    if not ours:
        raise Refused(
            f"git: {worktree}/.git leads to {common}, which is the repository of another folder; "
            "ask the user to review it"
        )
    if not shared:
        _check_sharing(worktree, git, common)


def _check_sharing(worktree: str, git: str, common: str) -> None:
    objects = os.path.join(common, "objects")
    found = [os.path.join(objects, path) for path in _alternates(objects)]
    for folder in {git, common, objects, os.path.join(objects, "pack")}:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            found += [entry.path for entry in entries if entry.is_symlink()]
    for path in found:
        if not _is_inside(path, common) and not _is_inside(path, git):
            raise Refused(
                f"git: the repository in {worktree} uses {_real(path)}, which is outside it; "
                "ask the user to review it"
            )


def _alternates(objects: str) -> list[str]:
    return _read(os.path.join(objects, "info", "alternates")).splitlines()


def check_state(worktree: str) -> None:
    """Raise :class:`Refused` if continuing a rebase or a pick would start a program.

    What remains to be done is in files, which may have come with the repository.
    """
    git = git_folder(worktree)
    todo = _read(os.path.join(git, "rebase-merge", "git-rebase-todo"))
    commands = {line.split()[0] for line in todo.splitlines() if line.strip()}
    strange = [word for word in commands if word not in _STEPS and not word.startswith("#")]
    strategy = _read(os.path.join(git, "rebase-merge", "strategy")) not in ("", "ort", "recursive")
    picks = "strategy" in _read(os.path.join(git, "sequencer", "opts")).lower()
    if strange or strategy or picks or os.path.lexists(os.path.join(git, "rebase-apply")):
        raise Refused(
            f"git: the operation that was begun in {worktree} contains steps that could start a "
            "program; abort it, or ask the user to finish it"
        )


def git_folder(worktree: str) -> str:
    """The folder that ``.git`` is or names."""
    git = os.path.join(worktree, ".git")
    if os.path.isdir(git):
        return git
    return os.path.join(worktree, _read(git).removeprefix("gitdir:").strip())


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read(_MAX_BYTES)
    except OSError:
        return ""
    if len(text) == _MAX_BYTES:
        raise Refused(f"git: {path} is too large; ask the user to review it")
    return text.rstrip("\n")


def _is_inside(path: str, folder: str) -> bool:
    return (_real(path) + os.sep).startswith(_real(folder) + os.sep)


def _real(path: str) -> str:
    return os.path.realpath(path)
