"""``rye lock --check`` and ``rye unlock``: check and remove the pins of a project."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from rye_console import Console

SUBPROCESS = "rye/core/primitives/subprocess"
RUNTIME: dict[str, Any] = {
    "tool_type": "runtime",
    "executor_id": SUBPROCESS,
    "config": {"command": "touch", "args": ["{project_path}/ran"]},
}


@pytest.fixture
def console(tmp_path: Path) -> Console:
    console = Console(tmp_path)
    console.project.yaml("runtimes/touch", **RUNTIME)
    console.project.yaml("tools/hello", executor_id="runtimes/touch")
    return console


def change(console: Console, **fields: Any) -> Path:
    """Change the content of the tool and sign it."""
    return console.project.yaml(
        "tools/hello", **{"executor_id": "runtimes/touch", "description": "changed", **fields}
    )


def lockfile(console: Console, version: str = "1.0.0") -> Path:
    return console.project.lockfile("tools/hello", version)


class TestCheck:
    def test_a_project_without_lockfiles_passes(self, console: Console) -> None:
        done = console("lock", "--check")

        assert (done.code, done.stdout) == (0, "no lockfiles; pin a tool with: rye lock ITEM\n")

    def test_every_state_is_listed(self, console: Console) -> None:
        for name in ("good", "bumped", "changed", "corrupt", "removed", "unpinned"):
            console.project.command(f"tools/{name}", "true")
            assert console("lock", f"tools/{name}").code == 0
        shutil.copy(
            console.project.lockfile("tools/bumped"),
            console.project.lockfile("tools/bumped", "0.9"),
        )
        console.project.command("tools/changed", "true", description="other")
        console.project.lockfile("tools/corrupt").write_text("{}")
        (console.path / ".ai" / "tools" / "tools" / "removed.yaml").unlink()
        console.project.command("tools/unpinned", "true", version="2.0.0")

        done = console("lock", "--check")

        assert done.code == 5
        assert [line.split()[:3] for line in done.stdout.splitlines()] == [
            ["leftover", "tools/bumped", "0.9"],
            ["leftover", "tools/bumped", "1.0.0"],
            ["mismatch", "tools/changed", "1.0.0"],
            ["corrupt", "tools/corrupt", "1.0.0"],
            ["ok", "tools/good", "1.0.0"],
            ["missing", "tools/removed", "1.0.0"],
            ["mismatch", "tools/unpinned", "1.0.0"],
        ]
        errors = done.stderr.splitlines()
        assert len(errors) == 5
        assert errors[0].endswith("replace all of them with: rye lock --update tools/bumped")
        assert errors[1].endswith("an upgrade; accept it with: rye lock --update tools/changed")
        assert errors[3].endswith("which does not exist; remove it with: rye unlock tools/removed")
        assert "'tools/unpinned' 2.0.0 is newer than the pinned 1.0.0" in errors[4]

    def test_matching_pins_pass(self, console: Console) -> None:
        console("lock", "tools/hello")

        done = console("lock", "--check")

        assert (done.code, done.stdout) == (
            0,
            "ok  tools/hello  1.0.0  .ai/lockfiles/tools/hello@1.0.0.lock.json\n",
        )

    def test_a_changed_runtime_is_a_mismatch(self, console: Console) -> None:
        console("lock", "tools/hello")
        console.project.yaml("runtimes/touch", **RUNTIME, description="other")

        (done,) = console.json("lock", "--check")

        assert (done["state"], done["error_type"]) == ("mismatch", "LockUpgradeError")
        assert console("lock", "--check").code == 5

    def test_a_new_dependency_is_a_mismatch(self, console: Console) -> None:
        console("new", "kit/tool")
        console.project.tool("kit/__init__.py", "")
        console("lock", "kit/tool")
        console.project.tool("kit/extra.py", "")

        done = console("lock", "--check")

        assert done.code == 5
        assert "the dependency extra.py is not pinned" in done.stderr

    def test_another_tool_with_the_same_stem_does_not_replace_a_missing_one(
        self, console: Console
    ) -> None:
        console.project.command("solo", "true")
        console("lock", "solo")
        (console.path / ".ai" / "tools" / "solo.yaml").unlink()
        console.project.command("team/solo", "true")

        assert [one["state"] for one in console.json("lock", "--check")] == ["missing"]

    def test_a_lockfile_under_another_name_is_corrupt(self, console: Console) -> None:
        console("lock", "tools/hello")
        lockfile(console).rename(lockfile(console, "9"))

        (done,) = console.json("lock", "--check")

        assert (done["state"], done["version"]) == ("corrupt", "9")


class TestUnlock:
    def test_every_version_is_removed(self, console: Console) -> None:
        console("lock", "tools/hello")
        shutil.copy(lockfile(console), lockfile(console, "2.0.0"))

        done = console("unlock", "hello")

        assert done.code == 0
        assert done.stdout == (
            "removed .ai/lockfiles/tools/hello@1.0.0.lock.json\n"
            "removed .ai/lockfiles/tools/hello@2.0.0.lock.json\n"
        )
        assert not lockfile(console).exists()

    def test_a_missing_tool_can_be_unlocked(self, console: Console) -> None:
        console("lock", "tools/hello")
        (console.path / ".ai" / "tools" / "tools" / "hello.yaml").unlink()
        lockfile(console).write_text("corrupt, too")

        assert console.json("unlock", "tools/hello") == {"removed": [str(lockfile(console))]}

    def test_only_the_tool_itself_is_unlocked(self, console: Console) -> None:
        console.project.command("tools/hello2", "true")
        console.project.command("hello", "true")
        for name in ("tools/hello", "tools/hello2", "hello"):
            assert console("lock", name).code == 0

        assert console("unlock", "tools/hello").code == 0

        assert [one["item_id"] for one in console.json("lock", "--check")] == [
            "hello",
            "tools/hello2",
        ]

    def test_a_tool_without_a_pin_exits_with_3(self, console: Console) -> None:
        done = console("unlock", "tools/hello")

        assert done.code == 3
        assert done.stderr == (
            "rye: .ai/lockfiles has no lockfile of 'tools/hello'; "
            "list the lockfiles with: rye lock --check\n"
        )

    def test_an_id_cannot_name_a_file_outside_of_the_folder(self, console: Console) -> None:
        assert console("unlock", "../../precious").code == 2
