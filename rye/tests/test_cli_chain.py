"""``rye chain``: the chain of a tool, also of one that cannot run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rye.executor.inspection import inspect_chain
from rye_console import Console

SUBPROCESS = "rye/core/primitives/subprocess"
NAMES = {
    "item_id",
    "space",
    "path",
    "version",
    "executor_id",
    "integrity",
    "signer",
    "locked",
}


@pytest.fixture
def console(tmp_path: Path) -> Console:
    return Console(tmp_path)


def put(console: Console, item_id: str = "team/hello", **fields: Any) -> Path:
    whole: dict[str, Any] = {"executor_id": SUBPROCESS, "config": {"command": "true"}, **fields}
    return console.project.yaml(item_id, **whole)


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_chain_is_printed_as_a_tree(console: Console) -> None:
    put(console)
    tool, primitive = inspect_chain("team/hello", console.project.context).elements
    assert (
        console("chain", "team/hello").stdout
        == f"""\
team/hello 1.0.0
│  project, .ai/tools/team/hello.yaml
│  signed by you ({tool.signer})
│  sha256 {tool.integrity[:12]}, not pinned
└─ rye/core/primitives/subprocess 1.0.0
      system, {primitive.path}
      signed by rye release ({primitive.signer})
      sha256 {primitive.integrity[:12]}, not pinned

no lockfile yet; the first successful run creates it
"""
    )


def test_json_is_a_list_from_the_tool_to_the_primitive(console: Console) -> None:
    path = put(console)
    chain = console.json("chain", "hello")
    assert [each["item_id"] for each in chain] == ["team/hello", SUBPROCESS]
    assert all(set(each) >= NAMES for each in chain)
    first = chain[0]
    assert (first["space"], first["path"], first["version"]) == ("project", str(path), "1.0.0")
    assert (first["executor_id"], first["locked"]) == (SUBPROCESS, False)
    assert len(first["integrity"]) == 64
    assert len(first["signer"]) == 16
    assert chain[1]["executor_id"] is None


def test_json_agrees_with_the_chain_of_a_result(console: Console) -> None:
    put(console)
    ran = console.project.run("team/hello", dry_run=True)
    for element, shown in zip(ran.chain, console.json("chain", "team/hello"), strict=True):
        assert {name: shown[name] for name in element} == element


def test_a_pinned_chain_is_locked(console: Console) -> None:
    put(console)
    assert console.project.run("team/hello").success
    assert [each["locked"] for each in console.json("chain", "team/hello")] == [True, True]
    shown = console("chain", "team/hello").stdout
    assert shown.count(", pinned\n") == 2
    assert "lockfile .ai/lockfiles/team/hello@1.0.0.lock.json" in shown


def test_content_that_differs_from_the_pin_exits_with_5(console: Console) -> None:
    put(console)
    assert console.project.run("team/hello").success
    pinned = console.json("chain", "team/hello")[0]["integrity"]
    put(console, description="changed")
    done = console("chain", "team/hello")
    assert done.code == 5
    assert f", pinned as {pinned[:12]}\n" in done.stdout
    assert "validly signed: an upgrade" in done.stderr
    tool, primitive = console.json("chain", "team/hello")
    assert (tool["locked"], primitive["locked"]) == (False, True)
    assert tool["pinned"] == pinned


def test_a_shadow_with_the_same_content_does_not_match_the_pin(console: Console) -> None:
    runtime = console.project.yaml(
        "team/runner", space="user", executor_id=SUBPROCESS, config={"command": "true"}
    )
    put(console, executor_id="team/runner")
    assert console.project.run("team/hello").success
    shadow = console.path / ".ai" / "tools" / "team" / "runner.yaml"
    shadow.write_bytes(runtime.read_bytes())
    done = console("chain", "team/hello")
    assert done.code == 5
    assert done.stdout.count(", pinned in another space\n") == 1
    locked = {each["item_id"]: each["locked"] for each in console.json("chain", "team/hello")}
    assert locked == {"team/hello": True, "team/runner": False, SUBPROCESS: True}


def test_a_lockfile_without_one_element_exits_with_5(console: Console) -> None:
    put(console)
    assert console.project.run("team/hello").success
    lockfile = console.project.lockfile("team/hello")
    content = json.loads(lockfile.read_text())
    del content["resolved_chain"][1]
    lockfile.write_text(json.dumps(content))
    done = console("chain", "team/hello")
    assert done.code == 5
    assert "which it does not pin" in done.stderr
    assert done.stdout.count(", not pinned\n") == 1


def test_elements_that_violate_a_constraint_are_reported(console: Console) -> None:
    put(console, "team/runner", child_constraints={"team/hello": {"min_version": "2.0.0"}})
    put(console, executor_id="team/runner")
    done = console("chain", "team/hello")
    assert done.code == 1
    assert done.stdout.count("signed by") == 3, "the whole chain is shown"
    assert "2.0.0" in done.stderr


def test_a_corrupt_lockfile_exits_with_5(console: Console) -> None:
    put(console)
    lockfile = console.project.lockfile("team/hello")
    lockfile.parent.mkdir(parents=True)
    lockfile.write_text("{")
    done = console("chain", "team/hello")
    assert done.code == 5
    assert "team/hello 1.0.0\n" in done.stdout
    assert done.stderr.startswith("rye: lockfile .ai/lockfiles/team/hello@1.0.0.lock.json: not ")


def test_an_unsigned_tool_is_shown_and_exits_with_4(console: Console) -> None:
    console.project.tool("raw.yaml", f"executor_id: {SUBPROCESS}\n", signed=False)
    done = console("chain", "raw")
    assert done.code == 4
    assert "│  not signed\n" in done.stdout
    assert f"└─ {SUBPROCESS}, not reached\n" in done.stdout
    assert done.stderr.startswith("rye: raw is not signed: .ai/tools/raw.yaml;")


def test_the_executor_of_an_unsigned_tool_is_not_resolved(console: Console) -> None:
    console.project.tool("raw.yaml", "executor_id: rye/core/runtimes/bash_runtime\n", signed=False)
    (only,) = console.json("chain", "raw")
    assert (only["standing"], only["signer"]) == ("unsigned", None)


def test_a_changed_runtime_is_the_last_element_shown(console: Console) -> None:
    runtime = put(console, "team/runner", tool_type="runtime")
    put(console, executor_id="team/runner")
    runtime.write_text(runtime.read_text().replace("true", "false"))
    done = console("chain", "team/hello")
    assert done.code == 4
    assert [each["standing"] for each in console.json("chain", "team/hello")] == [
        "trusted",
        "changed",
    ]
    assert "changed after you (" in done.stdout


def test_a_missing_executor_exits_with_1_after_the_existing_elements(console: Console) -> None:
    put(console, executor_id="team/nowhere")
    done = console("chain", "team/hello")
    assert done.code == 1
    assert "└─ team/nowhere, not reached\n" in done.stdout
    assert "executor 'team/nowhere' not found in accessible spaces" in done.stderr


def test_a_circular_chain_ends(console: Console) -> None:
    put(console, "team/a", executor_id="team/b")
    put(console, "team/b", executor_id="team/a")
    done = console("chain", "team/a")
    assert done.code == 1
    assert "is circular (team/a → team/b → team/a)" in done.stderr
    assert [each["item_id"] for each in console.json("chain", "team/a")] == ["team/a", "team/b"]


def test_a_chain_of_more_than_ten_elements_ends(console: Console) -> None:
    for number in range(12):
        put(console, f"s/t{number}", executor_id=f"s/t{number + 1}")
    done = console("chain", "s/t0")
    assert done.code == 1
    assert "has more than 10 elements" in done.stderr
    assert len(console.json("chain", "s/t0")) == 10


def test_an_unknown_id_exits_with_3(console: Console) -> None:
    done = console("chain", "nowhere/x")
    assert (done.code, done.stdout) == (3, "")
    assert "there is no item 'nowhere/x'" in done.stderr


def test_a_changed_dependency_is_a_lock_mismatch(console: Console) -> None:
    lib = console.project.tool("pack/lib.py", "VALUE = 1\n")
    console.project.tool("pack/__init__.py", "")
    console.project.tool(
        "pack/hello.py",
        '__version__ = "1.0.0"\n__executor_id__ = "rye/core/runtimes/python_runtime"\n'
        "def main():\n    return 1\n",
    )
    assert console.project.run("pack/hello").success
    assert console("chain", "pack/hello").code == 0
    assert " supporting files, also signed\n" in console("chain", "pack/hello").stdout
    lib.write_text("VALUE = 2\n")
    console.project.sign(lib)
    done = console("chain", "pack/hello")
    assert done.code == 5
    assert "lib.py is pinned as" in done.stderr


def test_nothing_is_written_or_run(console: Console) -> None:
    put(console, config={"command": "touch", "args": [str(console.path / "ran")]})
    before = files(console.path)
    for form in ((), ("--json",), ("--mermaid",)):
        assert console("chain", "team/hello", *form).code == 0
    assert files(console.path) == before


class TestMermaid:
    def test_it_is_a_flowchart(self, console: Console) -> None:
        put(console)
        lines = console("chain", "team/hello", "--mermaid").stdout.splitlines()
        assert lines[0] == "flowchart TD"
        assert lines[1].startswith('    e0["<b>team/hello</b> 1.0.0<br/>project<br/>signed by you')
        assert lines[2].startswith(f'    e1["<b>{SUBPROCESS}</b> 1.0.0<br/>system<br/>')
        assert lines[3:] == ["    e0 --> e1"]

    def test_a_refusal_is_part_of_the_flowchart(self, console: Console) -> None:
        console.project.tool("raw.yaml", f"executor_id: {SUBPROCESS}\n", signed=False)
        done = console("chain", "raw", "--mermaid")
        assert done.code == 4
        assert "    e0 -.-> refused\n" in done.stdout

    def test_text_cannot_end_its_label(self, console: Console) -> None:
        put(console, 'a"];click e0 "x#<b>|{}', executor_id='no"where`<i>')
        shown = console("chain", 'a"];click e0 "x#<b>|{}', "--mermaid").stdout
        assert "a#34;#93;;click e0 #34;x#35;#60;b#62;#124;#123;#125;" in shown
        for line in shown.splitlines():
            assert line.count('"') in (0, 2)

    def test_json_and_mermaid_cannot_be_combined(self, console: Console) -> None:
        assert console("chain", "bash", "--mermaid", "--json").code == 2
