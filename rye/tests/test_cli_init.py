"""``rye init``: a new project, and a second call that changes nothing."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from rye_command import rye
from rye_console import Console


@pytest.fixture
def console(tmp_path: Path) -> Console:
    console = Console(tmp_path)
    shutil.rmtree(console.path / ".ai")
    shutil.rmtree(console.user / ".ai")
    return console


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def next_commands(stdout: str) -> list[list[str]]:
    """Return the commands after ``Next:``, without the program name."""
    lines = stdout.partition("Next:\n")[2].splitlines()
    return [line.split()[1:] for line in lines]


def test_a_new_project_is_created_and_the_next_commands_work(console: Console) -> None:
    done = rye("init", cwd=console.path, user=console.user)

    assert (done.code, done.stderr) == (0, "")
    keys = console.user / ".ai" / "keys"
    created = done.stdout.splitlines()[:3]
    assert created[0].startswith(f"created {keys} with your key ")
    assert created[1:] == [
        "created .ai/tools",
        "created .ai/tools/hello.py, signed with your key",
    ]
    commands = next_commands(done.stdout)
    assert commands == [["run", "hello", "name=you"], ["show", "hello"]]
    ran, shown = [rye(*each, cwd=console.path, user=console.user) for each in commands]
    assert (ran.code, ran.stdout) == (0, '{"greeting": "Hello, you!"}\n')
    assert shown.code == 0
    assert "Who to greet" in shown.stdout


def test_the_private_key_is_never_printed(console: Console) -> None:
    done = console("init")

    secret = (console.user / ".ai" / "keys" / "private_key.pem").read_text().splitlines()[1]
    assert secret not in done.stdout + done.stderr
    assert (console.user / ".ai" / "keys" / "private_key.pem").stat().st_mode & 0o777 == 0o600


def test_a_second_call_changes_nothing(console: Console) -> None:
    console("init")
    before = contents(console.path) | contents(console.user)

    done = console("init")

    assert done.code == 0
    assert done.stdout.startswith(f"nothing to do: {console.path} is already set up\n")
    assert contents(console.path) | contents(console.user) == before


def test_a_project_with_tools_gets_no_example_tool(console: Console) -> None:
    console.project.tool("mine.sh", "echo\n", signed=False)

    done = console("init")

    assert done.code == 0
    assert [path.name for path in (console.path / ".ai" / "tools").iterdir()] == ["mine.sh"]
    assert next_commands(done.stdout) == [["list"], ["verify"]]


def test_a_named_directory_is_created(console: Console) -> None:
    done = console("init", "new project/sub")

    assert (console.path / "new project" / "sub" / ".ai" / "tools" / "hello.py").is_file()
    assert done.stdout.endswith("Next:\n  cd 'new project/sub'\n  rye run hello name=you\n")


def test_a_directory_inside_a_project_becomes_a_project(console: Console) -> None:
    console("init")
    below = console.path / "below"
    below.mkdir()

    console("init", cwd=below)

    assert (below / ".ai" / "tools" / "hello.py").is_file()


def test_the_project_option_is_used(console: Console, tmp_path: Path) -> None:
    other = tmp_path / "other"

    done = console("-C", other, "init")

    assert (other / ".ai" / "tools" / "hello.py").is_file()
    assert done.stdout.endswith(f"Next:\n  cd {other}\n  rye run hello name=you\n")


def test_a_file_in_place_of_the_directory_is_reported(console: Console) -> None:
    (console.path / "file").write_text("")

    done = console("init", "file")

    assert done.code == 1
    assert done.stderr == "rye: file is not a directory; choose another name\n"


def test_a_lost_private_key_is_not_replaced(console: Console) -> None:
    console("init")
    (console.user / ".ai" / "keys" / "private_key.pem").unlink()

    done = console("init")

    assert done.code == 4
    assert "has no private_key.pem next to it; restore the private key" in done.stderr


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_note_says_that_git_ignores_the_tools(console: Console) -> None:
    subprocess.run(["git", "init", "-q", str(console.path)], check=True)
    assert console("init").stderr == ""
    (console.path / ".gitignore").write_text(".ai\n")

    done = console("init")

    assert done.stderr == (
        "note: git ignores .ai/tools; to share your tools, add !/.ai/ to .gitignore\n"
    )
    (console.path / ".gitignore").write_text(".ai\n!/.ai/\n")
    assert console("init").stderr == ""


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_note_says_that_git_would_commit_the_key(console: Console) -> None:
    subprocess.run(["git", "init", "-q", str(console.user)], check=True)

    done = console("init", cwd=console.user)

    assert done.stderr == (
        "note: your key is in this git repository; add /.ai/keys/ to .gitignore\n"
    )


def test_json_lists_what_was_created(console: Console) -> None:
    made = console.json("init")

    assert made["project"] == str(console.path)
    assert [Path(path).name for path in made["created"]] == ["keys", "tools", "hello.py"]
    assert made["next"] == ["rye run hello name=you", "rye show hello"]
    assert console.json("init")["created"] == []
