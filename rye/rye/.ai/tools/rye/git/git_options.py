# rye:signed:20261118T125305Z:fa6562eb8616165bc3b591b31640d571c1b4be423122ebfa3fda672f8b293bc6:YHT_BBDjeKpSDZJ98MY4o7yjzBgHflFkUM3ZW4hkSIshIZvxaSvJ8ix6Ufn8lftixVtty9eAbmSyyD6J6QtzBQ==:0cdadc7a57fefd2c
"""The commands of git that a caller may use, and the options that each of them accepts.

Everything else is refused, so that an option that starts a program, or reads or writes a file of
the caller's choice, is refused without being known here. Names are compared as a whole: git accepts
abbreviations of long options.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from rye_workspace import Refused

__version__ = "1.0.0"
__tool_type__ = "library"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "git"
__tool_description__ = "The allowed options of rye/git/git; not a tool itself"

# An option is a flag. With '=', it needs a value; with '#', a number; '?': a value is optional.
_DIFF = (
    "-p -u --patch -s --no-patch -U# --unified=# --stat? --numstat --shortstat --summary "
    "--name-only --name-status --raw --minimal --patience --histogram --diff-algorithm= -M --find-renames? -C "
    "--find-copies? --no-renames --diff-filter= -w --ignore-all-space -b --ignore-space-change "
    "--ignore-space-at-eol --ignore-blank-lines -W --function-context --word-diff? --color? "
    "--no-color -z -S= -G= --pickaxe-regex --check --full-index --abbrev? --exit-code -R --text -a "
    "--no-ext-diff --no-textconv --no-prefix"
)
_REVISIONS = (
    "-# -n# --max-count=# --skip=# --since= --until= --after= --before= --author= --committer= "
    "--grep= -i --invert-grep --all-match -E -F --oneline --graph --decorate? --no-decorate --all "
    "--branches? --tags? --remotes? --merges --no-merges --first-parent --reverse --date= "
    "--format= --pretty? --abbrev-commit --topo-order --date-order --left-right --left-only --right-only "
    "--cherry-pick --cherry-mark --cherry --no-walk --full-history --ancestry-path --parents"
)
_LOG = f"{_DIFF} {_REVISIONS} --follow -c --cc -m -r -t --root -L= --source --no-notes"
_LISTED = (
    "--contains? --no-contains? --merged? --no-merged? --points-at= --sort= --format= --no-color"
)
_CONTINUE = "--abort --continue --quit"
_PICK = f"{_CONTINUE} --skip --no-edit -n --no-commit -m# -s --signoff"


class Command(NamedTuple):
    options: str
    words: str = "names"
    """``revisions`` (ended by ``--``), ``names``, ``paths``, ``remote``, ``none``, or the only
    subcommands."""
    changes: bool = False
    """True if git may write or remove ``paths``."""


COMMANDS = {
    "add": Command("-A --all -u --update -n --dry-run -v --verbose -N --intent-to-add", "paths"),
    "blame": Command("-L= -w -M -C -e --show-email -s -l -t -f -p --porcelain --line-porcelain "
                      "--date= --since= --first-parent --abbrev=#", "revisions"),
    "branch": Command(f"-a --all -r --remotes -v --verbose -l --list -d --delete -D -m --move -M "
                       f"-f --force -q --quiet -u= --set-upstream-to= --unset-upstream -t --track? "
                       f"--no-track --show-current {_LISTED}"),
    "cat-file": Command("-p -t -s -e"),
    "check-ignore": Command("-v --verbose -n --non-matching -q --quiet", "paths"),
    "checkout": Command("-b= -B= -q --quiet -f --force --detach -t --track? --no-track --ours "
                         "--theirs --orphan=", "revisions", changes=True),
    "cherry": Command("-v --abbrev?"),
    "cherry-pick": Command(f"{_PICK} -x --allow-empty --ff"),
    "commit": Command("-m= --message= -a --all --amend --no-edit --allow-empty "
                       "--allow-empty-message -q --quiet -s --signoff --author= --date= --fixup= "
                       "--squash= --dry-run --short --porcelain --reset-author", "paths"),
    "describe": Command("--tags --all --always --dirty --long --abbrev=# --match= --exclude= "
                         "--exact-match --contains --first-parent"),
    "diff": Command(f"{_DIFF} --cached --staged --merge-base -q --quiet", "revisions"),
    "diff-tree": Command(f"{_DIFF} -r -t --root --no-commit-id -m -c --cc", "revisions"),
    "fetch": Command("--all -p --prune -t --tags --no-tags --depth=# --deepen=# --unshallow -q "
                      "--quiet -v --verbose --dry-run -f --force", "remote"),
    "for-each-ref": Command(f"--count=# {_LISTED}"),
    "grep": Command("-n --line-number -i --ignore-case -w -l --files-with-matches -L -c --count -E "
                     "-F -P -G -v -h -H -o -q -e= -A# -B# -C# -p -W --cached "
                     "--heading --break --max-depth=# --all-match", "revisions"),
    "init": Command("-q --quiet -b= --initial-branch=", "none"),
    "log": Command(_LOG, "revisions"),
    "ls-files": Command("-c --cached -m --modified -o --others -d --deleted -s --stage -u -i "
                         "--ignored --exclude-standard --full-name -t -z --error-unmatch "
                         "--directory", "paths"),
    "ls-remote": Command("--heads --tags --refs --symref --sort= -q --quiet --get-url", "remote"),
    "ls-tree": Command("-r -d -t -l --long --name-only --full-tree --full-name -z --abbrev?"),
    "merge": Command(f"{_CONTINUE} --no-edit --ff --no-ff --ff-only --squash --commit --no-commit -m= -q "
                      "--quiet --stat --no-stat -n --autostash --allow-unrelated-histories"),
    "merge-base": Command("-a --all --is-ancestor --fork-point --octopus --independent"),
    "mv": Command("-f --force -k -n --dry-run -v --verbose", "paths", changes=True),
    "name-rev": Command("--tags --name-only --always"),
    "pull": Command("--rebase --no-rebase --ff --no-ff --ff-only -q --quiet -v --verbose --tags "
                     "--autostash -p --prune --no-edit --no-commit --depth=#", "remote"),
    "push": Command("-u --set-upstream -f --force --force-with-lease? --tags --follow-tags -d "
                     "--delete -n --dry-run -q --quiet -v --verbose --all --atomic --porcelain",
                     "remote"),
    "range-diff": Command(f"{_DIFF} --no-dual-color --creation-factor=#"),
    "rebase": Command(f"{_CONTINUE} --skip --onto= --autostash --no-autostash -q --quiet "
                       "--rebase-merges --no-ff --root --fork-point --no-fork-point"),
    "reflog": Command(_LOG, "show"),
    "remote": Command("-v --verbose --push --all", "get-url"),
    "reset": Command("--soft --mixed --hard --merge --keep -q --quiet", "revisions"),
    "restore": Command("-s= --source= -S --staged -W --worktree -q --quiet --ours --theirs",
                        "paths", changes=True),
    "revert": Command(_PICK),
    "rev-list": Command(f"{_REVISIONS} --count --objects", "revisions"),
    "rev-parse": Command("--verify -q --quiet --short? --abbrev-ref? --symbolic-full-name --all "
                          "--branches --tags --remotes --show-toplevel --show-prefix --show-cdup "
                          "--git-dir --is-inside-work-tree --is-bare-repository"),
    "rm": Command("--cached -r -q --quiet -n --dry-run -f --force --ignore-unmatch", "paths",
                   changes=True),
    "show": Command(_LOG, "revisions"),
    "show-ref": Command("--heads --tags -s --hash? --verify -q --quiet -d --dereference"),
    "stash": Command("-m= --message= -q --quiet -k --keep-index -S --staged --index -p --patch "
                     "--stat --name-only --name-status",
                      "list show push pop apply drop", changes=True),
    "status": Command("-s --short -b --branch --porcelain? --long -v --verbose -z --ignored? "
                       "--untracked-files? --show-stash --no-renames --ahead-behind", "paths"),
    "switch": Command("-c= --create= -C= --force-create= -d --detach -q --quiet -f --force "
                       "--discard-changes -m --merge -t --track? --no-track --orphan="),
    "tag": Command(f"-l --list -a --annotate -m= --message= -d --delete -f --force {_LISTED}"),
    "version": Command("--build-options", "none"),
}  # fmt: skip


def parse(command: str, args: list[str]) -> tuple[list[str], list[str], list[str]]:
    """Return the options in an unambiguous form, the words, and the paths after ``--``."""
    kinds = _kinds(COMMANDS[command].options)
    options: list[str] = []
    words: list[str] = []
    rest = list(args)
    while rest:
        arg = rest.pop(0)
        if arg == "--":
            return options, words, rest
        if arg.startswith("--"):
            options.append(_long(command, kinds, arg, rest))
        elif re.fullmatch("-[0-9]+", arg) and "-" in kinds:
            options.append(arg)
        elif arg.startswith("-"):
            options += _short(command, kinds, arg, rest)
        else:
            words.append(arg)
    return options, words, []


def _kinds(options: str) -> dict[str, str]:
    """Map each option to its kind: ``""``, ``=``, ``=#``, ``#`` or ``?``."""
    pairs = (re.fullmatch("(.[^=#?]*)(.*)", option) for option in options.split())
    return {pair[1]: pair[2] for pair in pairs if pair}


def _long(command: str, kinds: dict[str, str], arg: str, rest: list[str]) -> str:
    name, given, value = arg.partition("=")
    kind = kinds.get(name)
    if kind is None or (given and not kind):
        raise _not_allowed(command, arg if given and kind == "" else name)
    if kind.startswith("="):
        if not given:
            value = _next(command, name, rest)
        _check(command, name, kind, value)
        return f"{name}={value}"
    return arg


def _short(command: str, kinds: dict[str, str], arg: str, rest: list[str]) -> list[str]:
    """Take combined letters apart: ``-am text`` is ``-a``, ``-m`` and ``text``."""
    options = []
    for index, letter in enumerate(arg[1:], start=2):
        kind = kinds.get(f"-{letter}")
        if kind is None:
            raise _not_allowed(command, f"-{letter}")
        if kind:
            value = arg[index:] or _next(command, f"-{letter}", rest)
            _check(command, f"-{letter}", kind, value)
            return [*options, f"-{letter}{value}"] if value else [*options, f"-{letter}", ""]
        options.append(f"-{letter}")
    return options or [_refuse_dash(command)]


def _refuse_dash(command: str) -> str:
    raise Refused(f"git {command} -: standard input cannot be used; name a file or a revision")


def _next(command: str, name: str, rest: list[str]) -> str:
    if not rest:
        raise Refused(f"git {command} {name}: needs a value; add it as the next element of args")
    return rest.pop(0)


def _check(command: str, name: str, kind: str, value: str) -> None:
    if kind.endswith("#") and not re.fullmatch("[0-9]+", value):
        raise Refused(f"git {command} {name}: {value!r} is not a number; give one")


def _not_allowed(command: str, name: str) -> Refused:
    allowed = re.sub("[=#?]+", "", COMMANDS[command].options).replace("- ", "-<number> ")
    return Refused(f"git {command} {name}: this option is not allowed; allowed are {allowed}")
