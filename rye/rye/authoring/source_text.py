"""Files that cannot run whatever they declare: merge conflicts and syntax errors.

Python and the metadata of every file are parsed by :mod:`rye.items`. Here only programs that check
a file without running it are started: ``bash -n`` and ``node --check``.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

from lilux.runtime.env_resolver.interpreters import which

from rye.context import Context
from rye.errors import ItemFormatError, MergeConflictError
from rye.items.element import Metadata
from rye.items.shebang import is_script_runtime

_CONFLICT = rb"(?m)^(?:<{7} .*|>{7} .*)$"
_SECONDS = 10
_FIX = "correct it and sign again"
_CHECKERS = {
    "bash_runtime": ("bash", "-n"),
    "node_runtime": ("node", "--check"),
}
_SHELLS = ("sh", "bash", "dash", "ksh", "zsh")
# Whether any other .js file is a module depends on files around it.
_NODE_FILES = (".mjs", ".cjs")


def refuse_conflicts(path: Path, content: bytes) -> None:
    """Raise :class:`ItemFormatError` for a file with the marks of a merge conflict."""
    found = re.search(_CONFLICT, content)
    if found is not None:
        line = content.count(b"\n", 0, found.start()) + 1
        raise MergeConflictError(
            path,
            "has the marks of a merge conflict",
            line=line,
            hint="merge the content, then sign it with: "
            f"rye sign --resolve {shlex.quote(str(path))}",
        )


def refuse_syntax_errors(path: Path, metadata: Metadata, context: Context) -> None:
    """Raise :class:`ItemFormatError` for a shell or JavaScript tool that cannot be parsed.

    Without the interpreter nothing is checked: the tool may be for another machine.
    """
    checker = _checker(path, metadata)
    if checker is None:
        return
    program = which(checker[0], context.environ)
    # A program of the project is not started: looking at a checkout must not run its code.
    if program is None or program.is_relative_to(context.project_path):
        return
    try:
        done = subprocess.run(
            [str(program), *checker[1:], str(path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_SECONDS,
            check=False,
            env={"PATH": context.environ.get("PATH", "")},
        )
    except (OSError, subprocess.TimeoutExpired):
        return
    if done.returncode != 0:
        line, reason = _reason(done.stderr.decode(errors="replace"), path)
        raise ItemFormatError(path, f"has a syntax error ({reason})", line=line, hint=_FIX)


def _checker(path: Path, metadata: Metadata) -> tuple[str, str] | None:
    name = (metadata.executor_id or "").rpartition("/")[2]
    if is_script_runtime(metadata.executor_id):
        interpreter = (metadata.env_config or {}).get("interpreter") or {}
        program = str(interpreter.get("binary", "")).rpartition("/")[2]
        return (program, "-n") if program in _SHELLS else None
    if name == "node_runtime" and path.suffix not in _NODE_FILES:
        return None
    return _CHECKERS.get(name)


def _reason(text: str, path: Path) -> tuple[int | None, str]:
    """The line and the reason in what ``bash -n`` or ``node --check`` printed."""
    place = re.search(rf"{re.escape(str(path))}:(?: line )?(\d+):? ?(.*)", text)
    line = int(place[1]) if place is not None else None
    named = re.search(r"(?m)^SyntaxError: (.*)$", text)
    reason = named[1] if named is not None else place[2] if place is not None else ""
    return line, reason.removeprefix("syntax error: ").strip()[:200] or "it cannot be parsed"
