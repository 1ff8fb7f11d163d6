"""``rye rm`` and ``rye sign --resolve``: locks and signatures stay in order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rye_console import Console


@pytest.fixture
def console(tmp_path: Path) -> Console:
    made = Console(tmp_path)
    made("new", "team/greet")
    made("lock", "team/greet")
    return made


def tool(console: Console) -> Path:
    return console.path / ".ai/tools/team/greet.py"


def lockfile(console: Console) -> Path:
    return console.path / ".ai/lockfiles/team/greet@0.0.0.lock.json"


def test_a_tool_is_removed_with_its_pins_and_empty_folders(console: Console) -> None:
    done = console("rm", "team/greet", "--yes")
    assert done.stdout == (
        "removed .ai/tools/team/greet.py\nremoved .ai/lockfiles/team/greet@0.0.0.lock.json\n"
    )
    assert not (console.path / ".ai/tools/team").exists()
    assert not (console.path / ".ai/lockfiles/team").exists()
    assert (console.path / ".ai/tools").is_dir()


def test_nothing_is_removed_without_a_yes(console: Console) -> None:
    assert console("rm", "team/greet").stderr == (
        "rye: nothing was removed: .ai/tools/team/greet.py; pass --yes to remove them\n"
    )
    assert tool(console).exists()


def test_what_others_run_on_is_not_removed(console: Console) -> None:
    console.project.yaml(
        "own_runtime", tool_type="runtime", executor_id="rye/core/primitives/subprocess"
    )
    console.project.tool("user.sh", '# /// rye\n# executor_id = "own_runtime"\n# ///\n')
    assert console("rm", "own_runtime", "--yes").stderr == (
        "rye: 'own_runtime' runs user; remove or change them first\n"
    )
    assert console("rm", "rye/fs/read", "--yes").stderr == (
        "rye: 'rye/fs/read' is not a tool of the project or the user; "
        "uninstall the package that contains it\n"
    )


def test_the_pin_of_a_tool_follows_the_removal_of_its_helper(console: Console) -> None:
    for name in ("__init__", "helper"):
        (console.path / f".ai/tools/team/{name}.py").write_text("")
    console("sign", "team/*")
    console("lock", "--update", "team/greet")
    assert "updated pin team/greet\n" in console("rm", "team/helper", "--yes").stdout
    assert "helper.py" not in json.loads(lockfile(console).read_text())["verified_deps"]
    assert console("lock", "team/greet").stdout.startswith("already pinned")


def conflict(ours: str, theirs: str) -> str:
    return f"<<<<<<< HEAD\n{ours}=======\n{theirs}>>>>>>> other\n"


def test_conflicting_signature_lines_and_lockfiles_are_resolved(console: Console) -> None:
    line, rest = tool(console).read_text().split("\n", 1)
    other = line[:-3] + "abc"
    tool(console).write_text(conflict(f"{line}\n", f"{other}\n") + rest + "# merged\n")
    text = lockfile(console).read_text()
    lockfile(console).write_text(conflict(text, text.replace("greet", "greed")))
    assert console("sign", "team/greet").stderr == (
        "rye: .ai/tools/team/greet.py:1: has the marks of a merge conflict; "
        "merge the content, then sign it with: rye sign --resolve .ai/tools/team/greet.py\n"
    )
    assert console("run", "team/greet").stderr == (
        "rye: lockfile .ai/lockfiles/team/greet@0.0.0.lock.json: "
        "has the marks of a merge conflict; merge the content of the tool, "
        "then sign and pin it with: rye sign --resolve team/greet\n"
    )
    done = console("sign", "--resolve", "team/greet")
    assert (done.code, done.stderr) == (0, "")
    assert "updated pin team/greet 0.0.0\n" in done.stdout
    assert "<<<<<<<" not in tool(console).read_text()
    assert [one["state"] for one in console.json("lock", "--check")] == ["ok"]


def test_a_conflict_in_the_content_stays(console: Console) -> None:
    before = conflict("a = 1\n", "a = 2\n") + tool(console).read_text()
    tool(console).write_text(before)
    assert console("sign", "--resolve", "team/greet").code == 1
    assert tool(console).read_text() == before


def test_two_lockfiles_after_a_merge_are_replaced_by_one(console: Console) -> None:
    text = lockfile(console).read_text().replace("0.0.0", "0.9.0")
    lockfile(console).with_name("greet@0.9.0.lock.json").write_text(text)
    assert console("run", "team/greet", "--dry-run").code == 5
    assert console("sign", "--resolve", "team/greet").code == 0
    assert [path.name for path in lockfile(console).parent.iterdir()] == [lockfile(console).name]
