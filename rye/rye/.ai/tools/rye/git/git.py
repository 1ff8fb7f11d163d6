# rye:signed:20261116T195338Z:7ddba9a3f74be755ab304606565fcaae48d299d068085a490e08af2a4ae1afb8:45H6KlmfN1vmq1Z-1jHFfBjxjUXk7pVHvehLO7XBsnPrsvIeO8DvsOdP_PZHeWRcuCefOieuFrlG3Y72tCLxDQ==:f46ac53fe8a5b861
"""Run a git command. This process is replaced by git, so output and exit code are git's."""

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
    "Runs a git command in the project, without a shell, prompts or an editor. Options that start "
    "another program or write outside the project are refused. Entries of 'paths' are never read "
    "as options."
)

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "command": {
            "description": "A built-in git command; aliases do not work",
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
    }
}

ANNOTATIONS = {"read_only": False, "destructive": True, "idempotent": False, "open_world": True}

# Options with which git starts a program that the caller chooses.
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
# Options with which git, in any command, writes to a path that the caller chooses, or reads files
# outside the repository.
_PLACES = (
    "--output", "--output-directory", "--separate-git-dir", "--no-index", "--unsafe-paths",
    "--build-fake-ancestor",
)  # fmt: skip
_SHORT_PLACES = {"format-patch": "o"}
# The number of words before the ones that may name a folder to create.
_CREATES_A_FOLDER = {"clone": 1, "init": 0, "worktree": 1}
_CONFIG_READERS = ("--get", "--get-all", "--get-regexp", "--list", "-l", "get", "list")


def argv_of(command: str, args: list[str], paths: list[str]) -> list[str]:
    """Return the command line of git. Raises ``SystemExit`` with the reason if it is refused."""
    for arg in args:
        if _starts_a_program(command, arg):
            raise SystemExit(
                f"git {command} {arg.partition('=')[0]}: this would start another program; "
                "use rye/bash/bash if you need that"
            )
        if _has_option(arg, _PLACES, _SHORT_PLACES.get(command, "")):
            raise SystemExit(
                f"git {command} {arg.partition('=')[0]}: this would write or read outside the "
                "repository; use rye/bash/bash if you need that"
            )
    words = [arg for arg in args if not arg.startswith("-")] + paths
    for word in words[_CREATES_A_FOLDER.get(command, len(words)) :]:
        if word.startswith("/") or ".." in word.split("/"):
            raise SystemExit(
                f"git {command} {word}: is outside the project; name a folder inside it, "
                "or use rye/bash/bash"
            )
    if command == "config" and (not args or args[0] not in _CONFIG_READERS):
        raise SystemExit(
            f"git config can only read settings; start args with one of "
            f"{', '.join(_CONFIG_READERS)}, or use rye/bash/bash to change a setting"
        )
    return ["git", "--no-pager", command, *args, *(["--", *paths] if paths else [])]


def _starts_a_program(command: str, arg: str) -> bool:
    if arg in _WORDS.get(command, ()):
        return True
    return _has_option(arg, _LONG.get(command, ()), _SHORT.get(command, ""))


def _has_option(arg: str, longs: tuple[str, ...], shorts: str) -> bool:
    if arg.startswith("--"):
        # Git accepts an unambiguous prefix of a long option, so prefixes are refused too.
        name = arg.partition("=")[0]
        return len(name) > 2 and any(long.startswith(name) for long in longs)
    # Short options may be combined: -ix is -i and -x.
    return arg.startswith("-") and any(letter in arg[1:] for letter in shorts)


def _run() -> NoReturn:
    given = dict(zip(sys.argv[1::2], sys.argv[2::2]))  # noqa: B905 - older versions of Python do not have strict
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
