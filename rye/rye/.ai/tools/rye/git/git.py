# rye:signed:20261116T195035Z:46335fb6719ed4c8eddd8e9111cb80583a81eaffcfda46797e07829ef84c5a50:n-EhpLDyTRrkISHeNVfpJG1nXHmPbtHuL-X1i6wp60-dt279Wj_GcYa0s7vkqiCGQvshUABa_uue00VsLb6KAQ==:cd7c763470a45766
"""Runs one of git's own commands. This process becomes git: its output and exit code are git's."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, NoReturn

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_script_runtime"
__category__ = "git"
__tool_description__ = (
    "Runs a git command in the project. Every argument is one element and no shell is involved; "
    "paths are never read as options; options by which git would start another program, or write "
    "outside of the project, are refused. Never asks and never opens an editor."
)

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "command": {
            "description": "One of git's own commands; aliases are not used",
            "enum": [
                "add", "am", "apply", "bisect", "blame", "branch", "cat-file", "check-ignore",
                "checkout", "cherry", "cherry-pick", "clean", "clone", "commit", "config",
                "count-objects", "describe", "diff", "diff-tree", "fetch",
                "for-each-ref", "format-patch", "fsck", "gc", "grep", "init", "log", "ls-files",
                "ls-remote", "ls-tree", "merge", "merge-base", "mv", "name-rev", "notes", "pull",
                "push", "range-diff", "rebase", "reflog", "remote", "reset", "restore", "revert",
                "rev-list", "rev-parse", "rm", "shortlog", "show", "show-ref", "sparse-checkout",
                "stash", "status", "submodule", "switch", "symbolic-ref", "tag", "version",
                "whatchanged", "worktree",
            ],
        },
        "args": {
            "type": "array",
            "items": {"type": "string"},
            "default": [],
            "description": "Options and revisions, each one element: ['--oneline', '-n', '5']",
        },
        "paths": {
            "type": "array",
            "items": {"type": "string", "minLength": 1},
            "default": [],
            "description": "Files and folders, put behind '--' and thus never options",
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
    }
}

ANNOTATIONS = {"read_only": False, "destructive": True, "idempotent": False, "open_world": True}

# Options by which git starts a program that the caller names.
_LONG = {
    "clone": ("--upload-pack", "--config", "--template"),
    "fetch": ("--upload-pack",),
    "grep": ("--open-files-in-pager",),
    "init": ("--template",),
    "ls-remote": ("--upload-pack", "--exec"),
    "pull": ("--upload-pack",),
    "push": ("--receive-pack", "--exec"),
    "rebase": ("--exec",),
}
_SHORT = {"clone": "uc", "grep": "O", "rebase": "x"}
_WORDS = {"bisect": ("run", "view", "visualize"), "submodule": ("foreach",)}
# Options by which git, in any command, writes to a path that the caller names, or takes files that
# are in no repository.
_PLACES = (
    "--output", "--output-directory", "--separate-git-dir", "--no-index", "--unsafe-paths",
    "--build-fake-ancestor",
)  # fmt: skip
_SHORT_PLACES = {"format-patch": "o"}
# How many words of these come before those that may name a folder to make.
_MAKES_A_FOLDER = {"clone": 1, "init": 0, "worktree": 1}
_CONFIG_READERS = ("--get", "--get-all", "--get-regexp", "--list", "-l", "get", "list")


def argv_of(command: str, args: list[str], paths: list[str]) -> list[str]:
    """The command line of git. Raises ``SystemExit`` with the reason for what is refused."""
    for arg in args:
        if _starts_a_program(command, arg):
            raise SystemExit(
                f"git {command} {arg.partition('=')[0]}: git would start another program; "
                "use rye/bash/bash if that is what you want"
            )
        if _has_option(arg, _PLACES, _SHORT_PLACES.get(command, "")):
            raise SystemExit(
                f"git {command} {arg.partition('=')[0]}: git would write or read outside of the "
                "repository; use rye/bash/bash if that is what you want"
            )
    words = [arg for arg in args if not arg.startswith("-")] + paths
    for word in words[_MAKES_A_FOLDER.get(command, len(words)) :]:
        if word.startswith("/") or ".." in word.split("/"):
            raise SystemExit(
                f"git {command} {word}: leads out of the project; name a folder inside, "
                "or use rye/bash/bash"
            )
    if command == "config" and (not args or args[0] not in _CONFIG_READERS):
        raise SystemExit(
            f"git config is for reading here; begin args with one of {', '.join(_CONFIG_READERS)}, "
            "or use rye/bash/bash to change a setting"
        )
    return ["git", "--no-pager", command, *args, *(["--", *paths] if paths else [])]


def _starts_a_program(command: str, arg: str) -> bool:
    if arg in _WORDS.get(command, ()):
        return True
    return _has_option(arg, _LONG.get(command, ()), _SHORT.get(command, ""))


def _has_option(arg: str, longs: tuple[str, ...], shorts: str) -> bool:
    if arg.startswith("--"):
        # Git takes the beginning of a long option for the option, so that is refused as well.
        name = arg.partition("=")[0]
        return len(name) > 2 and any(long.startswith(name) for long in longs)
    # Short options may be joined: -ix is -i and -x.
    return arg.startswith("-") and any(letter in arg[1:] for letter in shorts)


def _run() -> NoReturn:
    given = dict(zip(sys.argv[1::2], sys.argv[2::2]))  # noqa: B905 - old interpreters know no strict
    params: dict[str, Any] = json.loads(given["--params"])
    argv = argv_of(params["command"], params.get("args", []), params.get("paths", []))
    os.chdir(given["--project-path"])
    try:
        os.execvp(argv[0], argv)  # noqa: S606 - no shell on purpose
    except FileNotFoundError:
        sys.stderr.write("git is not installed; install it\n")
        sys.exit(127)


if __name__ == "__main__":
    _run()
