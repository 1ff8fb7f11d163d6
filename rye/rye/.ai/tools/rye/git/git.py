# rye:signed:20261118T125305Z:04b21aa60e1146658a05801bbd9db772c66b8a84399060d1be532506cbd2d701:lhWG3RJXb_3sRjFDk6d2jK9NArjDIFx-PAnebb1lwfjiFfV5WPfGEJnBY1LJR0ZVMSnjn8wcMLoX3JYfFg76Bg==:0cdadc7a57fefd2c
"""Run a git command. This process is replaced by git, so output and exit code are git's.

Git is a programming environment: options and settings start programs, and read and write files
anywhere. So each command has a list of allowed options, every path must be inside the project, and
a repository whose configuration contains a setting that is not known to be harmless is refused.
System-wide and global settings are the user's own and are used.

The user can allow more in the variable ``RYE_GIT_ALLOW``: settings such as ``filter.lfs.*``, and
``hooks`` and ``merge.renames``, separated by blanks. A caller cannot set it, and neither can a ``.env`` file.
"""

# ruff: noqa: PTH112, PTH118, PTH119, PTH120, PTH208 - pathlib would add to the start of every call

from __future__ import annotations

import os
import sys
from typing import Any

from git_options import COMMANDS, parse
from git_place import check_place, check_state
from git_settings import Setting, check_settings, is_allowed, read_settings, remotes
from rye_workspace import Refused, Workspace

import __main__

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "git"
__tool_description__ = (
    "Runs a git command in the project, without a shell, prompts, hooks or an editor. Each command "
    "accepts the common options; a refusal lists them. Paths are names inside the project, not "
    "patterns. A remote is named as in 'git remote', not by its address."
)

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "command": {
            "description": "A built-in git command; aliases do not work",
            "enum": [
                "add", "blame", "branch", "cat-file", "check-ignore", "checkout", "cherry",
                "cherry-pick", "commit", "describe", "diff", "diff-tree", "fetch", "for-each-ref",
                "grep", "init", "log", "ls-files", "ls-remote", "ls-tree", "merge", "merge-base",
                "mv", "name-rev", "pull", "push", "range-diff", "rebase", "reflog", "remote",
                "reset", "restore", "revert", "rev-list", "rev-parse", "rm", "show", "show-ref",
                "stash", "status", "switch", "tag", "version",
            ],
        },
        "args": {
            "type": "array",
            "items": {"type": "string"},
            "default": [],
            "description": "Options and revisions, one per element: ['--oneline', '-n', '5']",
        },
        "paths": {
            "type": "array",
            "items": {"type": "string", "minLength": 1},
            "default": [],
            "description": "Files and folders, passed after '--'",
        },
    },
    "required": ["command"],
    "additionalProperties": False,
}  # fmt: skip

ENV_CONFIG = {
    "env": {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_PAGER": "cat",
        "GIT_EDITOR": ":",
        "GIT_SEQUENCE_EDITOR": ":",
        "RYE_GIT_ALLOW": "${RYE_GIT_ALLOW:-}",
    }
}

# The user's own settings name programs: filters, helpers for credentials, signatures. Branches that
# track a remote are written to `.git/config`, which other tools may not write.
PERMISSIONS = {
    "read": ["~/.gitconfig", "~/.config/git", "~/.git-credentials", "~/.ssh", "~/.gnupg"],
    "write": ["{project_path}", "{project_path}/.git/config", "tmp"],
    "net": ["*", "unix"],
    "env": [
        "GIT_*", "SSH_AUTH_SOCK", "SSH_AGENT_PID", "GNUPGHOME", "XDG_CONFIG_HOME", "EMAIL",
        "http_proxy", "https_proxy", "no_proxy", "all_proxy", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
    ],
    "run": ["system", "{project_path}/.git/hooks/**"],
}  # fmt: skip

ANNOTATIONS = {"read_only": False, "destructive": True, "idempotent": False, "open_world": True}

# With which git runs hooks of the repository.
_WITH_HOOKS = frozenset(
    {"checkout", "cherry-pick", "commit", "merge", "pull", "push", "rebase", "revert", "switch"}
)
_CHANGES_COMMIT = _WITH_HOOKS | {"reset", "restore", "stash"}
_GIT = [
    "git", "--no-pager", "--literal-pathspecs",
    "-c", "safe.bareRepository=explicit", "-c", "submodule.recurse=false",
    "-c", "diff.submodule=short", "-c", "status.submoduleSummary=false",
    # A renamed folder must not move a new file to a name that starts with a dot.
    "-c", "merge.directoryRenames=false",
]  # fmt: skip
# Versions of git before 2.50 obey the first setting only with the second.
_WITHOUT_RENAMES = ["-c", "merge.renames=false", "-c", "pull.twohead=recursive"]

_SOURCES = ("-s", "--source=")
_BARE = ("HEAD", "objects", "refs")


def execute(params: dict[str, Any], project_path: str) -> None:
    """Become git, or raise :class:`Refused`."""
    workspace = Workspace(project_path)
    os.chdir(workspace.root)
    command, args = params["command"], params["args"]
    options, words, paths = parse(command, args)
    paths += params["paths"]
    asked = os.environ.get("RYE_GIT_ALLOW", "").split()
    settings: list[Setting] = []
    if command not in ("init", "version"):
        repository = _repository(workspace.root)
        settings = _checked_settings(repository, asked, command)
        if "--continue" in options or "--skip" in options:
            check_state(repository)
    call = _Call(command, workspace)
    arguments = call.arguments(options, words, paths, remotes(settings))
    hooks = [] if is_allowed("hooks", asked) else _without_hooks(command)
    # A merge must not carry a change to a name that starts with a dot: a commit may rename to one.
    renames = [] if is_allowed("merge.renames", asked) else _WITHOUT_RENAMES
    __main__.become([*_GIT, *hooks, *renames, command, *arguments])  # type: ignore[attr-defined]


class _Call:
    """The words and paths of one call, checked by the rules of its command."""

    def __init__(self, command: str, workspace: Workspace) -> None:
        self._command = command
        self._rule = COMMANDS[command]
        self._workspace = workspace

    def arguments(
        self, options: list[str], words: list[str], paths: list[str], known: set[str]
    ) -> list[str]:
        """Return the arguments of git after the command."""
        kind = self._rule.words
        if kind == "paths":
            words, paths = [], words + paths
        elif kind == "none" and (words or paths):
            raise Refused(
                f"git {self._command} {(words + paths)[0]}: takes only options; remove it"
            )
        elif kind == "remote":
            self._check_remote(options, words, paths, known)
        elif kind not in ("names", "revisions"):
            words = self._with_subcommand(kind.split(), words)
        if self._command == "add" and not paths:
            paths = ["."]
        for path in paths:
            self._check_path(path)
        self._check_files(paths)
        if paths:
            options, words = self._of_commits(options, words)
        if kind == "remote" and self._command != "ls-remote":
            options = ["--no-recurse-submodules", *options]
        # Without "--", a word that is not a revision would be a path.
        end = ["--"] if paths or kind in ("paths", "revisions") else []
        return [*self._ordered(options, words), *end, *paths]

    def _ordered(self, options: list[str], words: list[str]) -> list[str]:
        if self._rule.words in ("names", "none", "paths", "remote", "revisions"):
            return options + words
        return words[:1] + options + words[1:]

    def _of_commits(self, options: list[str], words: list[str]) -> tuple[list[str], list[str]]:
        """Take files only from commits: a folder of a commit could be restored to another place."""
        if self._command in ("checkout", "reset"):
            return options, [f"{word}^{{commit}}" for word in words]
        if self._command == "restore":
            return [
                f"{one}^{{commit}}" if one.startswith(_SOURCES) else one for one in options
            ], words
        return options, words

    def _check_remote(
        self, options: list[str], words: list[str], paths: list[str], known: set[str]
    ) -> None:
        remote = words[0] if words else "origin"
        if paths:
            raise Refused(f"git {self._command} takes no paths; remove {paths[0]}")
        every = self._command == "fetch" and "--all" in options and not words
        if remote not in known and not every:
            names = ", ".join(sorted(known)) or "none"
            raise Refused(
                f"git {self._command} {remote}: is not a configured remote; name one of: {names}"
            )

    def _with_subcommand(self, allowed: list[str], words: list[str]) -> list[str]:
        if self._command == "reflog" and words[:1] != ["show"]:
            return ["show", *words]
        if words and words[0] not in allowed:
            raise Refused(
                f"git {self._command} {words[0]}: this is not allowed; "
                f"allowed are {', '.join(allowed)}"
            )
        return ["push"] if self._command == "stash" and not words else words

    def _check_path(self, path: str) -> None:
        """Check a path itself: git does not follow a link at its end."""
        if "\0" in path:
            raise Refused("the path contains a NUL character; remove it")
        full = os.path.normpath(os.path.join(self._workspace.root, path))
        real = os.path.join(os.path.realpath(os.path.dirname(full)), os.path.basename(full))
        if full == self._workspace.root:
            return
        self._workspace.inside(path, real)
        if self._rule.changes:
            self._workspace.check_write(path, real)
        elif not self._workspace.may_read(real):
            raise _secret(self._command, path)

    def _check_files(self, paths: list[str]) -> None:
        """Check the files that git would add, move or remove with a folder."""
        root = self._workspace.root
        if self._command == "add":
            untracked = ["ls-files", "-z", "--others", "--exclude-standard", "--", *paths]
            for name in _lines(*untracked):
                if not self._workspace.may_read(os.path.join(root, name)):
                    raise _secret("add", name)
        elif self._command in ("mv", "rm"):
            for name in _lines("ls-files", "-z", "--", *paths):
                self._workspace.check_write(name, os.path.join(root, name))
        if self._command == "mv" and paths:
            into = os.path.join(root, paths[-1])
            for path in paths[:-1]:
                moved = os.path.join(into, os.path.basename(os.path.normpath(path)))
                real = self._workspace.inside(path, os.path.realpath(moved))
                self._workspace.check_write(path, real)


def _secret(command: str, path: str) -> Refused:
    return Refused(
        f"git {command} {path}: files whose names start with a dot may contain secrets; "
        "leave it out, or ask the user"
    )


def _repository(folder: str) -> str:
    """The folder, at or above the project, that contains ``.git``."""
    place = folder
    while not os.path.lexists(os.path.join(place, ".git")):
        # Versions of git before 2.38 would use such a folder as a repository.
        bare = all(os.path.lexists(os.path.join(place, name)) for name in _BARE)
        place, below = os.path.dirname(place), place
        if bare or place == below:
            raise Refused(f"git: {folder} is not in a repository; create one with the command init")
    return place


def _embedded(worktree: str, command: str) -> list[str]:
    """The untracked repositories that become submodules if the command changes the commit."""
    if command not in _CHANGES_COMMIT:
        return []
    names = _lines("-C", worktree, "ls-files", "--others", "-z")
    return [os.path.join(worktree, name[:-1]) for name in names if name.endswith("/")]


def _checked_settings(worktree: str, allowed: list[str], command: str) -> list[Setting]:
    """Check the settings of the repository and of the submodules, in which git starts git."""
    first: list[Setting] | None = None
    seen: set[str] = set()
    waiting = [worktree]
    while waiting:
        folder = waiting.pop()
        if folder in seen:
            continue
        seen.add(folder)
        inside = ["-C", folder]
        settings = read_settings(_output(*inside, "config", "--list", "--show-scope", "-z"))
        check_settings(settings, folder, allowed)
        submodule = any(setting.key == "core.worktree" for setting in settings)
        check_place(folder, submodule=submodule, shared=is_allowed("alternates", allowed))
        if first is None:
            first = settings
            waiting += _embedded(worktree, command)
        for line in _lines(*inside, "ls-files", "--stage", "-z"):
            if line.startswith("160000 "):
                submodule = os.path.join(folder, line.partition("\t")[2])
                if os.path.lexists(os.path.join(submodule, ".git")):
                    waiting.append(submodule)
    return first or []


def _without_hooks(command: str) -> list[str]:
    if command in _WITH_HOOKS:
        folder = _output("rev-parse", "--git-path", "hooks").rstrip("\n")
        names = os.listdir(folder) if os.path.isdir(folder) else []
        hooks = [name for name in sorted(names) if os.access(os.path.join(folder, name), os.X_OK)]
        skipped = [name for name in hooks if "." not in name and name != "_"]
        if skipped:
            sys.stderr.write(f"git {command}: hooks were not run: {', '.join(skipped)}\n")
    return ["-c", f"core.hooksPath={os.devnull}"]


def _lines(*args: str) -> list[str]:
    return [line for line in _output(*args).split("\0") if line]


def _output(*args: str) -> str:
    """Return what git prints; importing ``subprocess`` would take longer than git does."""
    source, sink = os.pipe()
    argv = [*_GIT, *args]
    try:
        actions = [(os.POSIX_SPAWN_DUP2, sink, 1)]
        pid = os.posix_spawnp(argv[0], argv, os.environ, file_actions=actions)
    except FileNotFoundError:
        raise Refused("git is not installed; install it") from None
    finally:
        os.close(sink)
    with os.fdopen(source, "rb") as file:
        text = file.read()
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code:
        raise SystemExit(code)
    return os.fsdecode(text)
