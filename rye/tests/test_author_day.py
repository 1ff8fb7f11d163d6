"""An author's day: from a script to a tool in one command, and back to work after each edit.

Each row starts in an empty folder with one script. The commands that the author types are counted,
and so are their characters; no file is edited to make the tool.
"""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from rye_command import Completed, rye
from rye_console import Console

PYTHON = 'def main(who: str = "you") -> dict:\n    """Greet."""\n    return {"hello": who}\n'
ARGPARSE = """import argparse
p = argparse.ArgumentParser()
p.add_argument("who")
p.add_argument("--loud", action="store_true")
a = p.parse_args()
print("HELLO" if a.loud else "hello", a.who)
"""
SHELL = '#!/bin/sh\n# Greet.\necho "hello $1"\n'
PERL = '#!/usr/bin/env perl\nprint "hello $ARGV[0]\\n";\n'
NODE = 'export function main({ who = "you" }) {\n  return { hello: who };\n}\n'
MAKE = "# Greet.\ngreet:\n\t@echo hello\n"


class Row(NamedTuple):
    """A file, the command that makes it a tool, and a call of it with what it prints."""

    file: str
    text: str
    typed: str
    call: str
    printed: str
    needs: str = "sh"


ROWS = [
    Row("greet.py", PYTHON, "rye add greet.py -y", "greet who=Ada", '{"hello": "Ada"}\n'),
    Row("cli.py", ARGPARSE, "rye add cli.py -y", "cli who=Ada loud=true", "HELLO Ada\n"),
    Row("greet.sh", SHELL, "rye add greet.sh -y", "greet arg1=Ada", "hello Ada\n"),
    Row("greet.pl", PERL, "rye add greet.pl -y", "greet arg1=Ada", "hello Ada\n", "perl"),
    Row("g.mjs", NODE, "rye add g.mjs -y", "g who=Ada", '{"hello":"Ada"}\n', "node"),
    Row("Makefile", MAKE, "rye add Makefile:greet -y", "make/greet", "hello\n", "make"),
    Row("prog", "", "rye add prog -y", """prog args='["hi"]'""", "hi\n", "echo"),
]


class Author:
    """Types commands in an empty project, and counts them."""

    def __init__(self, root: Path) -> None:
        self.console = Console(root)
        self.path = self.console.path
        shutil.rmtree(self.path / ".ai")
        self.typed: list[str] = []

    def types(self, line: str) -> Completed:
        self.typed.append(line)
        return self.console(*shlex.split(line)[1:])

    def runs(self, call: str) -> str:
        """What a call prints; a process of its own, because tools write to its descriptors."""
        done = rye("run", *shlex.split(call), cwd=self.path, user=self.console.user)
        assert done.code == 0, done.stderr
        return done.stdout


@pytest.fixture
def author(tmp_path: Path) -> Author:
    return Author(tmp_path)


@pytest.mark.parametrize("row", ROWS, ids=[row.file for row in ROWS])
def test_a_script_is_a_tool_after_one_command(author: Author, row: Row) -> None:
    if shutil.which(row.needs) is None:
        pytest.skip(f"{row.needs} is not installed")
    source = author.path / row.file
    if row.file == "prog":
        shutil.copy(shutil.which("echo") or "", source)
    else:
        source.write_text(row.text)
    before = source.read_bytes()

    done = author.types(row.typed)

    assert (done.code, done.stderr) == (0, "")
    assert len(author.typed) == 1
    assert sum(map(len, author.typed)) <= 25
    assert source.read_bytes() == before  # the original stays as it is
    # The next command is printed, people can run the tool, and agents can see it.
    item_id = row.call.split()[0]
    assert f"\n  rye run {item_id}" in done.stdout
    assert author.runs(row.call) == row.printed
    listed = json.loads(author.console("tools", "--format", "mcp").stdout)
    assert item_id.replace("/", ".") in [tool["name"] for tool in listed]


def test_a_script_below_the_tools_gets_its_header_in_place(author: Author) -> None:
    path = author.path / ".ai/tools/team/greet.sh"
    path.parent.mkdir(parents=True)
    path.write_text(SHELL)
    done = author.types("rye add .ai/tools/team/greet.sh -y")
    assert "changed .ai/tools/team/greet.sh, signed with your key" in done.stdout
    assert author.runs("team/greet arg1=Ada") == "hello Ada\n"


def test_a_script_whose_id_another_file_has_stays_as_it_is(author: Author) -> None:
    tools = author.path / ".ai/tools"
    tools.mkdir(parents=True)
    (tools / "greet.sh").write_text(SHELL)
    (tools / "greet.py").write_text(PYTHON)
    done = author.types("rye add .ai/tools/greet.sh -y")
    assert done.stderr == "rye: 'greet' is also .ai/tools/greet.py; remove or rename one\n"
    assert (tools / "greet.sh").read_text() == SHELL


@pytest.mark.parametrize("typed", ["rye sign greet", "rye edit greet"])
def test_an_edited_tool_runs_again_after_one_command(author: Author, typed: str) -> None:
    (author.path / "greet.py").write_text(PYTHON)
    author.types("rye add greet.py -y")
    author.runs("greet")  # the first success pins it
    tool = author.path / ".ai/tools/greet.py"
    author.typed.clear()

    if "sign" in typed:
        tool.write_text(tool.read_text().replace('"hello"', '"hi"'))
    author.console.env["EDITOR"] = """sed -i 's/"hello"/"hi"/'"""
    done = author.types(typed)

    assert done.code == 0
    assert (len(author.typed), sum(map(len, author.typed))) == (1, 14)
    assert author.runs("greet") == '{"hi": "you"}\n'


def test_nothing_is_written_without_a_yes(author: Author) -> None:
    (author.path / "greet.py").write_text(PYTHON)
    done = author.types("rye add greet.py")
    assert done.code == 1
    assert done.stderr == (
        "rye: nothing was written: .ai/tools/greet.py would be signed with your key; read the "
        "script, then pass --yes\n"
    )
    assert not (author.path / ".ai/tools").exists()


def test_an_existing_tool_is_not_replaced(author: Author) -> None:
    (author.path / "greet.py").write_text(PYTHON)
    author.types("rye add greet.py -y")
    assert author.types("rye add greet.py -y").stderr == (
        "rye: 'greet' already exists: .ai/tools/greet.py; choose another name with --as, or remove "
        "it with: rye rm greet\n"
    )
    assert author.types("rye add greet.py -y --as team/hello").code == 0


def test_a_script_that_cannot_be_signed_leaves_nothing(author: Author) -> None:
    (author.path / "bad.sh").write_text("#!/bin/bash\nif true; then\n")
    done = author.types("rye add bad.sh -y")
    assert (done.code, "has a syntax error" in done.stderr) == (1, True)
    assert not (author.path / ".ai/tools/bad.sh").exists()
