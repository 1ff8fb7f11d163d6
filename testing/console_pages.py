"""Run the commands of a Markdown page and compare their output with the page.

A page is run from top to bottom in one folder. Two kinds of blocks are used:

- a ``console`` block: each line that begins with ``$ `` is a command, continued on lines that begin
  with ``> ``; the lines after it are its output (stdout and stderr);
- a block after a line that is only a path in backquotes and a colon: the content of that file.

In the output, ``…`` matches anything within a line, and a line of only ``…`` matches any lines.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from confined_machine import accept_missing_parts

_BLOCK = re.compile(
    r"(?:^`(?P<path>[^`\n]+)`:\n\n)?^```(?P<language>\w*)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_SECONDS = 60


class Command(NamedTuple):
    """A command, the output that the page shows, and its line in the page."""

    line: str
    printed: str
    at: int


class File(NamedTuple):
    """A file that the page asks the reader to write."""

    path: str
    text: str


Step = Command | File


def steps(page: str) -> Iterator[Step]:
    """Yield the steps of the page in order."""
    for block in _BLOCK.finditer(page):
        if block["path"]:
            yield File(block["path"], block["body"])
        elif block["language"] == "console":
            yield from _commands(block["body"], page.count("\n", 0, block.start("body")) + 1)


def _commands(body: str, first_line: int) -> Iterator[Command]:
    line, printed, at = "", "", 0
    for number, text in enumerate(body.splitlines(keepends=True), first_line):
        if text.startswith("$ "):
            if line:
                yield Command(line, printed, at)
            line, printed, at = text[2:], "", number
        elif text.startswith("> ") and not printed:
            line += text[2:]
        else:
            printed += text
    if line:
        yield Command(line, printed, at)


def play(page: Path, folder: Path, environ: Mapping[str, str]) -> int:
    """Run the page in ``folder``; return the number of commands that were run.

    The commands share the working directory, the exported variables and the last exit code, as in
    one shell. Raises ``AssertionError`` with the line of the page that shows other output.
    """
    ran = 0
    with tempfile.TemporaryDirectory() as scratch:
        shell = _Shell(Path(scratch, "state"), folder, environ)
        for step in steps(page.read_text()):
            if isinstance(step, File):
                path = shell.folder / step.path
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(step.text)
                continue
            printed = shell.run(step.line)
            assert matches(step.printed, printed), (
                f"{page.name}:{step.at}: {step.line}prints (exit code {shell.code})\n{printed}"
                f"but the page shows\n{step.printed}"
            )
            ran += 1
    return ran


class _Shell:
    """Runs each command in a new bash that continues where the last one ended."""

    def __init__(self, state: Path, folder: Path, environ: Mapping[str, str]) -> None:
        self._state = state
        self._environ = dict(environ)
        self.folder = folder
        self.code = 0

    def run(self, line: str) -> str:
        ends = f"code=$?\n{{ pwd; printf '\\0'; env -0; }} > '{self._state}'\nexit $code"
        done = subprocess.run(
            ["bash", "-c", f"(exit {self.code})\n{line}\n{ends}"],
            cwd=self.folder,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        self.code = done.returncode
        where, _, variables = self._state.read_text().partition("\0")
        self.folder = Path(where.removesuffix("\n"))
        pairs = (entry.partition("=") for entry in variables.split("\0") if entry)
        self._environ = {name: value for name, _, value in pairs if name != "_"}
        return done.stdout


def matches(shown: str, printed: str) -> bool:
    """True if ``printed`` matches what a page shows.

    The order of the lines may differ, because stdout and stderr of a tool are two streams.
    """
    lines = [line.rstrip() for line in printed.splitlines()]
    patterns = [_pattern(line) for line in shown.splitlines()]
    if re.fullmatch("".join(patterns), "".join(f"{line}\n" for line in lines)):
        return True
    return _ANY_LINES not in patterns and _pair_up(patterns, lines)


_ANY_LINES = r"(?:.*\n)*"


def _pattern(line: str) -> str:
    if line.strip() == "…":
        return _ANY_LINES
    return ".*".join(re.escape(part) for part in line.rstrip().split("…")) + r"\n"


def _pair_up(patterns: list[str], lines: list[str]) -> bool:
    left = list(lines)
    for pattern in sorted(patterns, key=lambda each: each.count(".*")):
        fitting = next((line for line in left if re.fullmatch(pattern, f"{line}\n")), None)
        if fitting is None:
            return False
        left.remove(fitting)
    return not left


def fresh_environment(home: Path, scripts: Path) -> dict[str, str]:
    """Return the environment of a user who has just installed Rye."""
    home.mkdir(parents=True, exist_ok=True)
    accept_missing_parts(home)
    return {
        "PATH": f"{scripts}:{os.environ.get('PATH', '/usr/bin:/bin')}",
        "HOME": str(home),
        "LANG": "C.UTF-8",
    }
