"""Which text of a command line a shell will parse.

A shell may be wrapped in other commands (``env``, ``nice``, ``docker exec box``), so the whole
command line is searched for one, by name or by path. A program that is mistaken for a shell gets an
unnecessary pair of quotes; an overlooked shell would run a parameter as code.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lilux.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

_POSIX_NAMES = "r?bash|sh|dash|ash|hush|posh|yash|r?ksh|[mlo]ksh|pdksh|r?zsh"
_OTHER_NAMES = "fish|t?csh|rc|es|elvish|nu|xonsh|pwsh|powershell|cmd"
_VERSION = r"(?:-?[0-9.]+)?(?:\.exe)?"
_POSIX = f"(?i)(?:{_POSIX_NAMES}){_VERSION}"
_OTHER = f"(?i)(?:{_OTHER_NAMES}){_VERSION}"
_SHELL = f"(?i)(?:{_POSIX_NAMES}|{_OTHER_NAMES}){_VERSION}"
# These pass the text after an option to a shell of their choice.
_PASSES_ON = {
    "su": ("-c", "--command", "--session-command"),
    "runuser": ("-c", "--command", "--session-command"),
    "script": ("-c", "--command"),
    "flock": ("-c", "--command"),
    "env": ("-S", "--split-string"),
}
# A shell after one of these is the command. Elsewhere in a command line only a POSIX shell with a
# script is recognized, since a word with the name of a shell may be any argument.
_WRAPPERS = frozenset((
    "env", "nice", "nohup", "timeout", "setsid", "stdbuf", "sudo", "doas", "chroot", "busybox",
    "ionice", "taskset", "chrt", "unshare", "nsenter", "bwrap", "docker", "podman", "kubectl",
    "time", "strace",
))  # fmt: skip
# These join their arguments into one text and pass it to a shell.
_JOINS = frozenset(("ssh", "rsh", "mosh", "watch", "parallel"))
_OTHER_SCRIPT_FLAG = r"(?i)-\w*c|--?command|/[ck]|--?encodedcommand"
_TAKES_A_FILE = ("--rcfile", "--init-file")


# Builtins that evaluate an argument, or take it for the name of a variable, a job or a command ...
_BUILTINS = frozenset((
    ".", "[", "[[", "alias", "autoload", "bg", "bind", "bindkey", "break", "builtin", "bye",
    "caller", "chdir", "command", "compadd", "comparguments", "compcall", "compctl", "compdef",
    "compgen", "complete", "compopt", "compound", "continue", "coproc", "declare", "dirs",
    "disown", "echotc", "echoti", "emulate", "enable", "enum", "eval", "exec", "exit", "export",
    "fc", "fg", "float", "for", "function", "functions", "getln", "getopts", "hash", "hist",
    "history", "in", "integer", "jobs", "kill", "let", "limit", "local", "log", "logout",
    "mapfile", "nameref", "newgrp", "nocorrect", "noglob", "popd", "print", "private", "pushd",
    "pushln", "read", "readarray", "readonly", "return", "sched", "select", "set", "setopt",
    "shift", "shopt", "source", "stop", "strftime", "suspend", "test", "time", "times", "trap",
    "ttyctl", "type", "typeset", "ulimit", "umask", "unalias", "unfunction", "unhash",
    "unlimit", "unset", "unsetopt", "until", "vared", "wait", "whence", "where", "which",
    "zargs", "zcompile", "zed", "zformat", "zle", "zmodload", "zmv", "zparseopts", "zprof",
    "zpty", "zregexparse", "zselect", "zsocket", "zstat", "zstyle", "zsystem", "ztcp",
))  # fmt: skip
# ... and programs that run an argument as code or as a command.
_PROGRAMS = frozenset((
    "ansible", "at", "awk", "batch", "bc", "bun", "chroot", "chrt", "cpulimit", "crontab",
    "dbus-run-session", "dc", "deno", "doas", "docker", "ed", "emacs", "env", "ex", "expect",
    "fakeroot", "faketime", "find", "firejail", "flatpak", "flock", "gawk", "gdb", "guile",
    "hyperfine", "ionice", "java", "jshell", "julia", "ksh", "kubectl", "lftp", "ltrace", "lua",
    "luajit", "m4", "make", "mawk", "mosh", "mysql", "nawk", "nerdctl", "nice", "node",
    "nodejs", "nohup", "npm", "npx", "nsenter", "nvim", "ocaml", "octave", "oksh", "osascript",
    "parallel", "perf", "perl", "php", "pkexec", "podman", "prlimit", "proot", "psql", "pypy",
    "python", "pythonw", "r", "rake", "rlwrap", "rscript", "rsh", "rsync", "ruby", "runcon",
    "runuser", "scala", "scp", "screen", "script", "sed", "setarch", "setpriv", "setsid",
    "sftp", "socat", "sqlite", "sqlite3", "ssh", "sshpass", "start-stop-daemon", "stdbuf",
    "strace", "su", "sudo", "swift", "systemd-run", "taskset", "tclsh", "timeout", "tmux",
    "toybox", "trickle", "ts-node", "tsx", "unbuffer", "unshare", "uv", "uvx", "valgrind", "vi",
    "view", "vim", "vimdiff", "watch", "wish", "xargs", "xdg-open", "xterm",
))  # fmt: skip
_TAKE_CODE = _BUILTINS | _PROGRAMS | _WRAPPERS | _JOINS | _PASSES_ON.keys()


def takes_code(command: str) -> bool:
    """True if a command may do more with an argument than read it as data."""
    name = _base(command).lower().removesuffix(".exe")
    names = {name, name.rstrip("0123456789.-")}
    return not names.isdisjoint(_TAKE_CODE) or is_shell(name)


def is_shell(command: str) -> bool:
    """True if a program, given by name or path, is a shell."""
    return re.fullmatch(_SHELL, _base(command)) is not None


class ShellText(Record, frozen=True):
    """Where a shell finds the text that it parses."""

    place: Literal["argument", "stdin"]
    index: int
    """Of the argument; 0 is the command itself. Unused for ``stdin``."""
    quotable: bool
    """True if the shell has the quotes of POSIX."""
    shell: str


def shell_texts(argv: Sequence[str]) -> tuple[ShellText, ...]:
    """The scripts in a command line as it will be run."""
    found: list[ShellText] = []
    wrapped = bool(argv) and _base(argv[0]) in _WRAPPERS
    for index, word in enumerate(argv):
        name = _base(word)
        commands = index == 0 or wrapped
        if re.fullmatch(_POSIX, name):
            texts = _posix_text(argv, index, name)
            found += [text for text in texts if commands or text.place == "argument"]
        elif commands and re.fullmatch(_OTHER, name):
            found += _marked(argv, index, name, _OTHER_SCRIPT_FLAG)
        elif commands and name in _JOINS:
            found += [
                ShellText("argument", later, False, name) for later in range(index + 1, len(argv))
            ]
        elif commands and name in _PASSES_ON:
            flags = "|".join(map(re.escape, _PASSES_ON[name]))
            found += _marked(argv, index, name, rf"(?s:(?:{flags}).*)")
    return tuple(found)


def _base(word: str) -> str:
    return word.rpartition("/")[2].rpartition("\\")[2]


def _posix_text(argv: Sequence[str], start: int, shell: str) -> list[ShellText]:
    """Options may follow ``-c``: the script is the first word that is not an option."""
    has_script = reads_stdin = False
    index = start + 1
    while index < len(argv):
        word = argv[index]
        if word in ("-", "--"):
            index += 1
            break
        if word in _TAKES_A_FILE:
            index += 2
            continue
        if len(word) < 2 or word[0] not in "-+":
            break
        if not word.startswith("--"):
            has_script |= word[0] == "-" and "c" in word
            reads_stdin |= word[0] == "-" and "s" in word
            # `-euo pipefail`: the name of an option follows as a separate word.
            index += word.count("o") + word.count("O")
        index += 1
    if has_script:
        return [ShellText("argument", index, True, shell)] if index < len(argv) else []
    if reads_stdin or index >= len(argv):
        return [ShellText("stdin", 0, True, shell)]
    return []


def _marked(argv: Sequence[str], start: int, name: str, flag: str) -> list[ShellText]:
    """Every word from the flag on, including the flag, which may contain the script."""
    for index in range(start + 1, len(argv)):
        if re.fullmatch(flag, argv[index]):
            return [ShellText("argument", later, False, name) for later in range(index, len(argv))]
    return []
