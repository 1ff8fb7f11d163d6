# rye:signed:20261118T125305Z:3127fa727afcffba592527bff5c686aee0a58b5739ab9dd9e149173b21bc824a:adE7YlRfYwInAZgYCWexdddYL51HcK1OHccWbN0q6aCrSBS3ftY_SpmUC0P8-sRQ5bMD04vmI93GI-ZvClr7Dg==:0cdadc7a57fefd2c
"""The configuration of a repository: only settings that are known to be harmless.

Settings make git start programs: ``core.fsmonitor``, filters, drivers, helpers, and whatever a
later version adds. A clone contains none of them, an unpacked archive may. Settings that this tool
overrides (hooks, pager, editor) and those that it does not use (aliases) are harmless here.
Attributes select a filter or a driver by name, and do nothing without its setting.
"""

# ruff: noqa: PTH118 - pathlib would add to the start of every call

from __future__ import annotations

import os
import re
from typing import NamedTuple

from git_place import git_folder
from rye_workspace import Refused

__version__ = "1.0.0"
__tool_type__ = "library"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "git"
__tool_description__ = "The allowed settings for rye/git/git; not a tool itself"

_ANY = ("advice", "alias", "color", "column", "pager")
_KNOWN = {
    "author": "email name",
    "branch": "description merge pushremote rebase remote",
    "commit": "gpgsign status verbose",
    "committer": "email name",
    "core": "abbrev autocrlf bare bigfilethreshold checkstat commitgraph compression editor eol "
    "filemode fsmonitor hookspath ignorecase logallrefupdates longpaths multipackindex pager "
    "precomposeunicode preloadindex quotepath repositoryformatversion safecrlf sharedrepository "
    "sparsecheckout sparsecheckoutcone symlinks trustctime untrackedcache whitespace worktree",
    "diff": "algorithm colormoved context mnemonicprefix noprefix renames",
    "extensions": "objectformat partialclone refstorage relativeworktrees worktreeconfig",
    "feature": "experimental manyfiles",
    "fetch": "parallel prune prunetags",
    "gc": "auto autodetach",
    "gpg": "format",
    "http": "extraheader postbuffer",
    "index": "threads version",
    "init": "defaultbranch",
    "lfs": "access repositoryformatversion",
    "log": "date decorate",
    "maintenance": "auto strategy",
    "merge": "conflictstyle ff renames",
    "pack": "threads windowmemory",
    "pull": "ff rebase",
    "push": "autosetupremote default followtags",
    "rebase": "autosquash autostash updaterefs",
    "remote": "fetch mirror partialclonefilter promisor prune prunetags push pushdefault pushurl "
    "tagopt url",
    "rerere": "autoupdate enabled",
    "sequence": "editor",
    "status": "branch short showuntrackedfiles",
    "submodule": "active branch ignore shallow url",
    "tag": "gpgsign sort",
    "user": "email name signingkey useconfigonly",
}
# A remote on this machine runs the hooks of the other repository; <name>:: starts a program.
_NETWORK = r"(?:(?:https?|ssh|git)://[^-]|(?:[\w.-]+@)?\w[\w.-]*:(?!:|//))[^\n]*"
_FORMS = {
    "core.fsmonitor": "|true|false",
    "remote.url": _NETWORK,
    "remote.pushurl": _NETWORK,
}


class Setting(NamedTuple):
    """A setting of a repository, not of the user."""

    key: str
    value: str

    def parts(self) -> tuple[str, str, str]:
        """Section, subsection and variable: ``remote``, ``origin``, ``url``."""
        section, _, rest = self.key.partition(".")
        subsection, _, variable = rest.rpartition(".")
        return section, subsection, variable


def read_settings(listed: str) -> list[Setting]:
    """Read the output of ``git config --list --show-scope -z``."""
    fields = listed.split("\0")
    settings = []
    for scope, pair in zip(fields[::2], fields[1::2]):  # noqa: B905 - not in Python 3.9
        if scope in ("local", "worktree"):
            key, _, value = pair.partition("\n")
            settings.append(Setting(key, value))
    return settings


def remotes(settings: list[Setting]) -> set[str]:
    """The names of the configured remotes."""
    parts = [setting.parts() for setting in settings]
    return {name for section, name, variable in parts if (section, variable) == ("remote", "url")}


def check_settings(settings: list[Setting], worktree: str, allowed: list[str]) -> None:
    """Raise :class:`Refused` for a setting that may start a program or reach outside.

    ``worktree`` is the folder that contains ``.git``; ``allowed`` are the patterns of the user.
    """
    known = remotes(settings)
    for setting in settings:
        if not _is_harmless(setting, worktree, known) and not is_allowed(setting.key, allowed):
            raise Refused(
                f"git: the configuration of the repository in {worktree} sets {setting.key} to a "
                "value that could start a program or reach outside the project; "
                "ask the user to review this setting"
            )


def is_allowed(key: str, patterns: list[str]) -> bool:
    """True if the user allows a setting, or ``hooks``."""
    if not patterns:
        return False
    from fnmatch import fnmatchcase

    return any(fnmatchcase(key.lower(), pattern.lower()) for pattern in patterns)


def _is_harmless(setting: Setting, worktree: str, known: set[str]) -> bool:
    section, subsection, variable = setting.parts()
    # A variable with a hyphen is of another program, such as gh-resolved: those of git have none.
    if section in _ANY or (section in ("branch", "remote") and "-" in variable):
        return True
    if variable not in _KNOWN.get(section, "").split():
        return False
    value = setting.value
    name = f"{section}.{variable}"
    if name in (
        "branch.remote",
        "branch.pushremote",
        "extensions.partialclone",
        "remote.pushdefault",
    ):
        return value == "." or value in known
    if section == "remote" and subsection not in known:
        return False  # git would take the name for an address
    if name == "core.worktree":
        return os.path.realpath(os.path.join(git_folder(worktree), value)) == os.path.realpath(
            worktree
        )
    form = _FORMS.get(name)
    return form is None or re.fullmatch(form, value) is not None
