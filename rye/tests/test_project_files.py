"""Files of the project that run with a tool: which need a pin, and how pins are written."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from project_program import TOOL, pinned, program
from rye_console import Console
from rye_project import SUBPROCESS, Project, refused


@pytest.fixture
def console(tmp_path: Path) -> Console:
    """A project with the program ``bin/gotool``."""
    console = Console(tmp_path)
    program(console.project, "good")
    return console


@pytest.fixture
def project(console: Console) -> Project:
    return console.project


def test_an_unpinned_program_is_not_locked_either(console: Console) -> None:
    console.project.command(TOOL, "bin/gotool")
    done = console("lock", TOOL)
    assert done.code == 4
    assert "add the line `pins: [bin/gotool]`" in done.stderr
    assert not console.project.lockfile(TOOL).exists()


def test_lock_and_chain_name_the_files_that_are_not_signed(console: Console) -> None:
    pinned(console)
    assert console("unlock", TOOL).code == 0
    assert "plus 1 file of the project, not signed: bin/gotool\n" in console("chain", TOOL).stdout
    done = console("lock", TOOL)
    assert "\n  files of the project, not signed: bin/gotool\n" in done.stdout
    for number in range(7):
        (console.path / "bin" / f"part{number}").write_text("")
    console.project.command(TOOL, "bin/gotool", pins=["bin/*"])
    done = console("lock", "--update", TOOL)
    listed = "bin/gotool, bin/part0, bin/part1, bin/part2, bin/part3 and 3 more"
    assert f"\n  files of the project, not signed: {listed}\n" in done.stdout
    assert "\n  bin/part6: not pinned → " in done.stdout


def test_a_pinned_file_that_is_missing_stops_the_tool(console: Console) -> None:
    pinned(console)
    (console.path / "bin" / "gotool").unlink()
    tool = console.path / ".ai" / "tools" / f"{TOOL}.yaml"
    assert refused(console.project.run(TOOL), "PinError") == (
        f"pins of {tool}: bin/gotool does not exist in {console.path}; create it, or correct the "
        "pins"
    )


@pytest.mark.parametrize("pattern", ["../x", "/etc/passwd", "a/../../b", "", "./x", "a//b"])
def test_a_pin_is_a_path_inside_the_project(project: Project, pattern: str) -> None:
    project.command(TOOL, "true", pins=[pattern])
    message = refused(project.run(TOOL), "ItemFormatError")
    assert "expected a path inside the project, like bin/x, in 'pins[0]'" in message


def test_the_pins_of_a_python_tool_and_of_a_comment_block(console: Console) -> None:
    (console.path / "data.txt").write_text("1")
    head = '__executor_id__ = "rye/core/runtimes/python_runtime"\n'
    console.project.tool("kit/a.py", f'{head}PINS = ["data.txt"]\ndef main():\n    return 1\n')
    lines = ["/// rye", 'executor_id = "rye/core/runtimes/bash_runtime"', 'pins = ["*.txt"]', "///"]
    block = "".join(f"# {line}\n" for line in lines)
    console.project.tool("kit/b.sh", f"{block}echo 1\n")
    for name in ("kit/a", "kit/b"):
        assert console("lock", name).code == 0
        assert console.project.run(name).success
        pins = json.loads(console.project.lockfile(name, "0.0.0").read_text())["verified_deps"]
        assert "{project_path}/data.txt" in pins
    (console.path / "data.txt").write_text("2")
    for name in ("kit/a", "kit/b"):
        refused(console.project.run(name), "LockTamperedError")


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("kit/a.py", 'add the line `PINS = ["bin/gotool"]` to '),
        ("kit/b.sh", 'add the line `# pins = ["bin/gotool"]` below executor_id in '),
        ("kit/c.js", 'add the line `// pins = ["bin/gotool"]` below executor_id in '),
        ("kit/d.yaml", 'change pins to `pins: ["lib/*", bin/gotool]` in '),
    ],
)
def test_the_line_to_add_is_in_the_language_of_the_tool(
    project: Project, name: str, advice: str
) -> None:
    project.yaml(
        "runtimes/run",
        tool_type="runtime",
        executor_id=SUBPROCESS,
        config={"command": "sh", "args": ["{project_path}/bin/gotool"]},
    )
    texts = {
        "kit/a.py": '__executor_id__ = "runtimes/run"\n',
        "kit/b.sh": '# /// rye\n# executor_id = "runtimes/run"\n# ///\n',
        "kit/c.js": '// /// rye\n// executor_id = "runtimes/run"\n// ///\n',
        "kit/d.yaml": "executor_id: runtimes/run\npins: ['lib/*']\n",
    }
    path = project.tool(name, texts[name])
    item_id = name.partition(".")[0]
    message = refused(project.run(item_id), "UnpinnedError")
    assert f"{advice}{path}, then run: rye sign {item_id} && rye lock --update" in message


def test_a_file_that_verify_deps_covers_needs_no_pin(console: Console) -> None:
    console.project.tool("kit/helper.sh", "echo helped\n")
    console.project.command(
        "kit/run", "sh", "{tool_dir}/helper.sh", verify_deps={"scope": "tool_dir"}
    )
    result = console.project.run("kit/run")
    assert result.success, result.error
    console.project.tool("kit/helper.sh", "echo evil\n")
    refused(console.project.run("kit/run"), "LockUpgradeError")


def test_what_a_caller_passes_is_not_pinned(project: Project) -> None:
    schema = {"type": "object", "properties": {"file": {"default": "bin/gotool"}}}
    project.command(TOOL, "cat", "{file}", config_schema=schema)
    result = project.run(TOOL)
    assert result.success, result.error


def test_folders_and_words_that_are_not_files_need_no_pin(project: Project) -> None:
    program(project, "data", "notes.txt", mode=0o644)
    project.command(TOOL, "echo", "bin", "see notes and bin/none > notes.txt", "{unknown}")
    result = project.run(TOOL)
    assert result.success, result.error


def test_text_that_no_file_name_can_have_is_only_text(project: Project) -> None:
    project.command(TOOL, "echo", "x" * 5000 + "/y", "é" * 200 + "/y", "/" * 9000, "a/../" * 2000)
    result = project.run(TOOL)
    assert result.success, result.error


def test_a_name_on_the_path_is_not_a_file_of_the_project(project: Project) -> None:
    program(project, "evil", "echo")
    project.command(TOOL, "echo", "real")
    assert project.run(TOOL).data["stdout"] == "real\n"


def test_a_large_program_is_pinned_too(console: Console) -> None:
    """It is hashed in the thread for large calls."""
    path = console.path / "bin" / "gotool"
    path.write_text("#!/bin/sh\necho large\nexit 0\n" + "#" * 5_000_000)
    pinned(console)
    assert console.project.run(TOOL).data["stdout"] == "large\n"
    path.write_text("#!/bin/sh\necho evil\nexit 0\n" + "#" * 5_000_000)
    refused(console.project.run(TOOL), "LockTamperedError")


@pytest.mark.parametrize("way", ["lock", "run"])
def test_programs_outside_of_the_project_are_recorded_and_not_compared(
    console: Console, way: str
) -> None:
    outside = console.path.parent / "outside"
    outside.write_text("#!/bin/sh\nexec sh -c 'echo hi'\n")
    outside.chmod(0o755)
    console.project.command(TOOL, "env", str(outside), "{word}")
    if way == "lock":
        assert console("lock", TOOL).code == 0
    else:
        assert console.project.run(TOOL, {"word": "/bin/sh"}).success
    lock = json.loads(console.project.lockfile(TOOL).read_text())
    assert lock["programs"] == ["/usr/bin/env", str(outside)]
    outside.write_text("#!/bin/sh\necho changed\n")
    result = console.project.run(TOOL, {"word": "x"}, frozen=True)
    assert result.success, result.error


def test_the_interpreter_of_a_runtime_is_recorded(console: Console) -> None:
    head = '__executor_id__ = "rye/core/runtimes/python_runtime"\n'
    console.project.tool("kit/a.py", f"{head}def main():\n    return 1\n")
    assert console("lock", "kit/a").code == 0
    lock = json.loads(console.project.lockfile("kit/a", "0.0.0").read_text())
    (interpreter,) = lock["programs"]
    assert os.access(interpreter, os.X_OK)
