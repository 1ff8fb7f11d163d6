"""``rye lock``: pins without a run."""

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
    """Another content of the tool, validly signed."""
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


def test_the_pin_is_the_one_that_a_run_makes(console: Console) -> None:
    console("lock", "tools/hello")
    pinned = json.loads(lockfile(console).read_text())
    lockfile(console).unlink()

    assert console.project.run("tools/hello").success

    ran = json.loads(lockfile(console).read_text())
    assert {**pinned, "generated_at": ""} == {**ran, "generated_at": ""}


def test_the_files_that_a_tool_brings_along_are_pinned(console: Console) -> None:
    console("new", "kit/tool")
    console.project.tool("kit/__init__.py", "")
    console.project.tool("kit/helper.py", "X = 1\n")

    done = console("lock", "kit/tool")

    assert done.code == 0, done.stderr
    pinned = json.loads(console.project.lockfile("kit/tool").read_text())
    assert {"__init__.py", "helper.py", "tool.py"} <= pinned["verified_deps"].keys()
    assert f", with {len(pinned['verified_deps'])} files more\n" in done.stdout


def test_an_unsigned_file_beside_the_tool_is_not_pinned(console: Console) -> None:
    console("new", "kit/tool")
    console.project.tool("kit/__init__.py", "")
    console.project.tool("kit/helper.py", "X = 1\n", signed=False)

    assert console("lock", "kit/tool").code == 4
    assert not console.project.lockfile("kit/tool").exists()


def test_a_chain_that_does_not_fit_together_is_not_pinned(console: Console) -> None:
    console.project.yaml(
        "runtimes/touch", **RUNTIME, child_constraints={"tools/hello": {"min_version": "9.0.0"}}
    )

    done = console("lock", "tools/hello")

    assert done.code == 1
    assert "tools/hello" in done.stderr
    assert not lockfile(console).exists()


def test_a_pin_of_other_files_than_the_tool_brings_along_differs(console: Console) -> None:
    console("new", "kit/tool")
    console.project.tool("kit/__init__.py", "")
    console("lock", "kit/tool")
    console.project.tool("kit/extra.py", "")

    done = console("lock", "kit/tool")

    assert done.code == 5
    assert done.stderr.endswith(
        "the dependency extra.py is not pinned; accept it with: rye lock --update kit/tool\n"
    )


def test_a_pin_of_another_way_through_the_runtimes_differs(console: Console) -> None:
    """A file that a short id now leads to is pinned nowhere, though all that is pinned holds."""
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


def test_an_equal_pin_is_left_alone(console: Console) -> None:
    console("lock", "tools/hello")
    before = lockfile(console).stat()

    for options in ([], ["--update"]):
        done = console("lock", *options, "tools/hello")
        assert done.stdout.startswith("pinned already tools/hello 1.0.0: ")
    after = lockfile(console).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_pin_that_differs_is_refused_and_the_hint_mends_it(console: Console) -> None:
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
    assert first.startswith("pinned anew tools/hello 1.0.0: ")
    old, new = (
        json.loads(one)["root"]["integrity"][:12]
        for one in (before, (console.path / path.strip()).read_bytes())
    )
    assert changes == [f"  tools/hello: 1.0.0 {old} (project) → 1.0.0 {new} (project)"]
    assert console.project.run("tools/hello", frozen=True).success


def test_an_update_tells_of_elements_that_come_and_go(console: Console) -> None:
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


def test_the_hint_for_a_tampered_file_works_as_it_is_written(console: Console) -> None:
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


def test_a_pin_of_the_user_is_updated_in_the_project(console: Console) -> None:
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


def test_the_hint_accepts_a_shadow_that_bears_another_version(console: Console) -> None:
    console.project.yaml("mine", space="user", executor_id="runtimes/own")
    console.project.yaml("runtimes/own", space="user", **RUNTIME)
    assert console("lock", "mine").code == 0
    console.project.yaml("mine", executor_id="runtimes/own", version="2.0.0")

    refused = console("lock", "mine")

    assert refused.code == 5
    assert refused.stderr.endswith("or accept it with: rye lock --update mine\n")
    assert console("lock", "--update", "mine").code == 0
    assert console.project.run("mine", frozen=True).success
    assert console("lock", "--check").code == 0


def test_no_pin_is_replaced_or_removed_through_a_link_out_of_the_project(
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
        ([], "name the items to pin, or say --check"),
        (["--check", "a"], "--check checks every lockfile; leave out the rest"),
        (["--check", "--update"], "--check checks every lockfile; leave out the rest"),
    ],
)
def test_misuse_is_told(console: Console, arguments: list[str], message: str) -> None:
    done = console("lock", *arguments)

    assert done.code == 2
    assert message in done.stderr


def test_an_item_that_is_not_there_is_not_found(console: Console) -> None:
    assert console("lock", "nope").code == 3
