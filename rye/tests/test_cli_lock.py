"""``rye lock``: pin tools without running them."""

from __future__ import annotations

import json
import shlex
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


def test_a_chain_is_pinned_without_a_run(console: Console) -> None:
    done = console("lock", "hello")

    assert (done.code, done.stderr) == (0, "")
    assert done.stdout == (
        f"pinned tools/hello 1.0.0: tools/hello → runtimes/touch → {SUBPROCESS}\n"
        "  .ai/lockfiles/tools/hello@1.0.0.lock.json\n"
    )
    assert not (console.path / "ran").exists()
    assert console.project.run("tools/hello", frozen=True).success


def test_the_pin_is_the_same_as_that_of_a_run(console: Console) -> None:
    console("lock", "tools/hello")
    pinned = json.loads(lockfile(console).read_text())
    lockfile(console).unlink()

    assert console.project.run("tools/hello").success

    ran = json.loads(lockfile(console).read_text())
    assert {**pinned, "generated_at": ""} == {**ran, "generated_at": ""}


def test_the_supporting_files_of_a_tool_are_pinned(console: Console) -> None:
    console("new", "kit/tool")
    console.project.tool("kit/__init__.py", "")
    console.project.tool("kit/helper.py", "X = 1\n")

    done = console("lock", "kit/tool")

    assert done.code == 0, done.stderr
    pinned = json.loads(console.project.lockfile("kit/tool", "0.0.0").read_text())
    assert {"__init__.py", "helper.py", "tool.py"} <= pinned["verified_deps"].keys()
    assert f" (and {len(pinned['verified_deps'])} supporting files)\n" in done.stdout


def test_an_unsigned_file_beside_the_tool_is_not_pinned(console: Console) -> None:
    console("new", "kit/tool")
    console.project.tool("kit/__init__.py", "")
    console.project.tool("kit/helper.py", "X = 1\n", signed=False)

    assert console("lock", "kit/tool").code == 4
    assert not console.project.lockfile("kit/tool", "0.0.0").exists()


def test_a_chain_that_violates_a_constraint_is_not_pinned(console: Console) -> None:
    console.project.yaml(
        "runtimes/touch", **RUNTIME, child_constraints={"tools/hello": {"min_version": "9.0.0"}}
    )

    done = console("lock", "tools/hello")

    assert done.code == 1
    assert "tools/hello" in done.stderr
    assert not lockfile(console).exists()


def test_a_new_supporting_file_does_not_match_the_pin(console: Console) -> None:
    console("new", "kit/tool")
    console.project.tool("kit/__init__.py", "")
    console("lock", "kit/tool")
    console.project.tool("kit/extra.py", "")

    done = console("lock", "kit/tool")

    assert done.code == 5
    assert done.stderr.endswith(
        "the dependency extra.py is not pinned; accept it with: rye lock --update kit/tool\n"
    )


def test_a_short_id_that_resolves_to_another_file_does_not_match_the_pin(console: Console) -> None:
    """Every pinned file is unchanged, but the chain now has a file that is not pinned."""
    console.project.yaml("runtimes/rt", space="user", **RUNTIME)
    console.project.yaml("tools/hello", executor_id="rt")
    assert console("lock", "tools/hello").code == 0
    console.project.yaml("other/rt", **RUNTIME)

    for arguments in (["lock", "tools/hello"], ["lock", "--check"]):
        done = console(*arguments)
        assert done.code == 5
        assert done.stderr.endswith(
            "the chain now leads through .ai/tools/other/rt.yaml, which it does not pin; remove "
            "that file, or accept it with: rye lock --update tools/hello\n"
        )


def test_an_unsigned_tool_is_not_pinned(console: Console) -> None:
    console.project.tool("bad.yaml", f"executor_id: {SUBPROCESS}\n", signed=False)

    done = console("lock", "bad", "tools/hello")

    assert done.code == 4
    assert "bad is not signed" in done.stderr
    assert lockfile(console).is_file()


def test_a_matching_pin_is_not_rewritten(console: Console) -> None:
    console("lock", "tools/hello")
    before = lockfile(console).stat()

    for options in ([], ["--update"]):
        done = console("lock", *options, "tools/hello")
        assert done.stdout.startswith("already pinned tools/hello 1.0.0: ")
    after = lockfile(console).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_mismatch_is_refused_and_the_command_in_the_hint_fixes_it(console: Console) -> None:
    console("lock", "tools/hello")
    before = lockfile(console).read_bytes()
    change(console)

    done = console("lock", "tools/hello")

    assert done.code == 5
    assert lockfile(console).read_bytes() == before
    command = done.stderr.rstrip().rpartition("accept it with: rye ")[2]
    assert command == "lock --update tools/hello"
    updated = console(*shlex.split(command))
    assert updated.code == 0
    first, *changes, path = updated.stdout.splitlines()
    assert first.startswith("updated pin tools/hello 1.0.0: ")
    old, new = (
        json.loads(one)["root"]["integrity"][:12]
        for one in (before, (console.path / path.strip()).read_bytes())
    )
    assert changes == [f"  tools/hello: 1.0.0 {old} (project) → 1.0.0 {new} (project)"]
    assert console.project.run("tools/hello", frozen=True).success


def test_an_update_lists_added_and_removed_elements(console: Console) -> None:
    console("lock", "tools/hello")
    change(console, executor_id=SUBPROCESS, config={"command": "true"})

    (done,) = console.json("lock", "--update", "tools/hello")

    assert done["state"] == "updated"
    assert [(one["name"], one["new"] is None) for one in done["changes"]] == [
        ("tools/hello", False),
        ("runtimes/touch", True),
    ]


def test_tampering_is_not_accepted_by_an_update(console: Console) -> None:
    console("lock", "tools/hello")
    before = lockfile(console).read_bytes()
    path = console.project.path / ".ai" / "tools" / "tools" / "hello.yaml"
    path.write_text(path.read_text() + "\n# evil\n")

    assert console("lock", "tools/hello").code == 5
    assert console("lock", "--update", "tools/hello").code == 4
    assert lockfile(console).read_bytes() == before


def test_the_hint_for_a_tampered_file_works_as_written(console: Console) -> None:
    console("lock", "tools/hello")
    path = console.project.path / ".ai" / "tools" / "tools" / "hello.yaml"
    path.write_text(path.read_text() + "\n# mine\n")
    refused = console("lock", "tools/hello")

    commands = refused.stderr.rstrip().rpartition("accept it with: ")[2].split(" && ")

    assert commands == ["rye sign .ai/tools/tools/hello.yaml", "rye lock --update tools/hello"]
    assert [console(*shlex.split(each)[1:]).code for each in commands] == [0, 0]
    assert console.project.run("tools/hello", frozen=True).success


def test_a_corrupt_lockfile_is_refused_and_replaced_by_an_update(console: Console) -> None:
    console("lock", "tools/hello")
    lockfile(console).write_text("{")

    assert console("lock", "tools/hello").code == 5
    assert lockfile(console).read_text() == "{"
    assert console("lock", "--update", "tools/hello").code == 0
    assert console.project.run("tools/hello", frozen=True).success


def test_a_pin_in_the_user_space_is_updated_in_the_project(console: Console) -> None:
    console("lock", "tools/hello")
    place = console.user / ".ai" / "lockfiles" / "tools" / "hello@1.0.0.lock.json"
    place.parent.mkdir(parents=True)
    lockfile(console).rename(place)
    kept = place.read_bytes()
    change(console)

    assert console("lock", "tools/hello").code == 5
    (done,) = console.json("lock", "--update", "tools/hello")
    assert (done["state"], done["path"]) == ("updated", str(lockfile(console)))
    assert place.read_bytes() == kept


def test_the_hint_accepts_a_shadow_with_another_version(console: Console) -> None:
    console.project.yaml("mine", space="user", executor_id="runtimes/own")
    console.project.yaml("runtimes/own", space="user", **RUNTIME)
    assert console("lock", "mine").code == 0
    console.project.yaml("mine", executor_id="runtimes/own", version="2.0.0")

    refused = console("lock", "mine")

    assert refused.code == 5
    assert refused.stderr.endswith("or accept it with: rye lock --update mine\n")
    assert console("lock", "--update", "mine").code == 0
    assert console("lock", "--check").code == 0
    assert console.project.run("mine", frozen=True).success


def test_no_pin_is_changed_through_a_symlink_out_of_the_project(
    console: Console, tmp_path: Path
) -> None:
    console("lock", "tools/hello")
    folder = console.path / ".ai" / "lockfiles"
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    change(console)

    for arguments in (["lock", "--update"], ["unlock"]):
        done = console(*arguments, "tools/hello")
        assert done.code == 1
        assert "leads out of the project; replace the symbolic link by a folder" in done.stderr
    assert (tmp_path / "elsewhere" / "tools" / "hello@1.0.0.lock.json").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "pass the tools to pin, --update --all, or --check"),
        (["--check", "a"], "--check checks every lockfile; pass nothing else"),
        (["--check", "--update"], "--check checks every lockfile; pass nothing else"),
    ],
)
def test_misuse_is_reported(console: Console, arguments: list[str], message: str) -> None:
    done = console("lock", *arguments)

    assert done.code == 2
    assert message in done.stderr


def test_an_unknown_item_exits_with_3(console: Console) -> None:
    assert console("lock", "nope").code == 3
