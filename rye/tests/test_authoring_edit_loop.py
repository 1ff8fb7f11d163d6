"""Edit, sign, run: the pin follows its author, and nobody else."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from lilux.primitives.signing import generate_keypair, save_keypair
from rye_command import rye
from rye_console import Console

SHELL = '# /// rye\n# executor_id = "bash_runtime"\n# ///\n'
START = "rye: the editor '{}'"


@pytest.fixture
def console(tmp_path: Path) -> Console:
    made = Console(tmp_path)
    made("new", "greet")
    assert made("lock", "greet").code == 0
    return made


def tool(console: Console) -> Path:
    return console.path / ".ai/tools/greet.py"


def edit(console: Console, old: str = "Hello", new: str = "Good day") -> None:
    tool(console).write_text(tool(console).read_text().replace(old, new))


def pinned(console: Console) -> str:
    """The pinned hash of the tool."""
    (path,) = (console.path / ".ai/lockfiles").glob("greet@*")
    return str(json.loads(path.read_text())["root"]["integrity"])


def test_an_edit_of_your_own_is_not_called_tampering(console: Console) -> None:
    edit(console)
    done = console("run", "greet")
    assert done.code == 4
    assert done.stderr == (
        "rye: greet changed since you signed it: .ai/tools/greet.py; read what changed, then sign "
        "it again with: rye sign .ai/tools/greet.py\n"
    )
    console("unlock", "greet")
    assert console("run", "greet").stderr.startswith("rye: greet changed since you signed it at ")


def test_signing_your_own_edit_updates_the_pin_and_shows_the_change(console: Console) -> None:
    edit(console)
    done = console("sign", "greet")
    assert done.stdout == (
        "signed  greet  .ai/tools/greet.py\n"
        '  -    return {"greeting": " ".join([f"Hello, {name}!"] * times)}\n'
        '  +    return {"greeting": " ".join([f"Good day, {name}!"] * times)}\n'
        "updated pin greet 0.0.0\n"
    )
    assert done.stderr == ""
    assert console.json("lock", "--check")[0]["state"] == "ok"


def test_a_file_that_was_written_anew_is_recognised_by_its_pin(console: Console) -> None:
    lines = tool(console).read_text().splitlines(keepends=True)
    tool(console).write_text("".join(lines[1:]).replace("Hello", "Hi"))
    assert "updated pin greet 0.0.0\n" in console("sign", "greet").stdout


def test_no_lock_leaves_the_pin(console: Console) -> None:
    before = pinned(console)
    edit(console)
    done = console("sign", "--no-lock", "greet")
    assert (pinned(console), done.code) == (before, 0)
    assert done.stderr == (
        "note: the pin of greet is of other content; to accept this one, run: "
        "rye lock --update greet\n"
    )
    assert console("run", "greet").code == 5
    updated = console("lock", "--update", "--all")
    assert '  +    return {"greeting": " ".join([f"Good day, ' in updated.stdout
    assert pinned(console) != before


def test_the_pin_of_somebody_elses_tool_does_not_follow(console: Console) -> None:
    """A colleague's tool that you edit and sign is not what its pin vouched for."""
    own = console.user / ".ai/keys"
    own.rename(console.user / ".ai/old-keys")
    save_keypair(*generate_keypair(), console.user / ".ai/keys")
    before = pinned(console)
    edit(console)
    done = console("sign", "greet")
    assert "updated pin" not in done.stdout
    assert "note: the pin of greet is of other content" in done.stderr
    assert pinned(console) == before


def test_a_copied_signature_line_does_not_move_a_pin(console: Console) -> None:
    console("new", "other")
    line = (console.path / ".ai/tools/other.py").read_text().splitlines(keepends=True)[0]
    before = pinned(console)
    rest = tool(console).read_text().splitlines(keepends=True)[1:]
    # The content that the user signed as `other` was never the content of `greet`.
    tool(console).write_text(line + "".join(rest).replace("Hello", "Evil"))
    refused = console("run", "greet")
    assert (refused.code, "changed since you signed it" in refused.stderr) == (5, False)
    assert "updated pin" not in console("sign", "greet").stdout
    assert pinned(console) == before


def test_a_pin_does_not_follow_if_a_runtime_changed_as_well(console: Console) -> None:
    lockfile = next((console.path / ".ai/lockfiles").glob("greet@*"))
    content = json.loads(lockfile.read_text())
    content["resolved_chain"][1]["integrity"] = "0" * 64
    lockfile.write_text(json.dumps(content))
    edit(console)
    assert "updated pin" not in console("sign", "greet").stdout


def test_a_helper_file_of_a_tool_moves_its_pin_too(console: Console) -> None:
    console("new", "kit/tool")
    (console.path / ".ai/tools/kit/__init__.py").write_text("")
    helper = console.path / ".ai/tools/kit/helper.py"
    helper.write_text("X = 1\n")
    console("sign", "kit/*")
    assert console("lock", "kit/tool").code == 0
    helper.write_text(helper.read_text().replace("X = 1", "X = 2"))
    assert console("sign", "kit/helper").stdout.endswith(
        "-X = 1\n  +X = 2\nupdated pin kit/tool 0.0.0\n"
    )
    assert console("lock", "kit/tool").stdout.startswith("already pinned")


def test_edit_opens_the_editor_then_signs_and_pins(console: Console) -> None:
    console.env["EDITOR"] = "sed -i s/Hello/Servus/"
    done = console("edit", "greet")
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.endswith("updated pin greet 0.0.0\n")
    again = console("edit", "greet")
    assert (again.code, again.stdout) == (0, "")
    assert again.stderr == "nothing changed: .ai/tools/greet.py\n"


@pytest.mark.parametrize(
    ("editor", "message"),
    [
        ("no-such-editor", f"{START} cannot be started (no such file or directory); set EDITOR"),
        ("false", f"{START} ended with exit code 1, and .ai/tools/greet.py was not signed; sign"),
        ("sed -i 's/def main(/def main((/'", "rye: .ai/tools/greet.py:"),
    ],
)
def test_an_edit_that_fails_is_not_signed(console: Console, editor: str, message: str) -> None:
    console.env["EDITOR"] = editor
    done = console("edit", "greet")
    assert done.code == 1
    assert done.stderr.startswith(message.format(editor.partition(" ")[0]))


def test_a_tool_of_the_system_is_not_edited(console: Console) -> None:
    assert console("edit", "rye/fs/read").stderr.startswith(
        "rye: 'rye/fs/read' is not a tool of the project or the user: "
    )


def test_a_pin_follows_without_the_cache_if_the_tool_ran_here(console: Console) -> None:
    """As after an update of Rye, which has a cache of its own."""
    assert rye("run", "greet", cwd=console.path, user=console.user).code == 0
    shutil.rmtree(console.user / ".ai/cache/items")
    edit(console)
    assert console("sign", "greet").stdout.endswith("updated pin greet 0.0.0\n")


def test_a_change_by_somebody_else_is_shown_if_the_old_content_ran_here(console: Console) -> None:
    """Nothing was signed on this machine; the closure that ran is the only copy of the old text."""
    tool(console).unlink()
    console.project.tool("theirs.sh", f"{SHELL}echo one\n")
    ran = rye("run", "theirs", cwd=console.path, user=console.user)
    assert ran.stdout == "one\n", ran.stderr
    console.project.tool("theirs.sh", f"{SHELL}echo two\n")
    done = console("lock", "--update", "theirs")
    assert "  -echo one\n  +echo two\n" in done.stdout
