"""The closure of a call: one digest for everything that was verified."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lilux.sha256 import sha256
from rye.closure.manifest import Closure, decode_manifest
from rye.errors import ClosureError
from rye.executor.inspection import inspect_chain
from rye.executor.run.prepare import Preparation, Preparer
from rye.executor.run.primitives import PRIMITIVE_MAP
from rye_project import SUBPROCESS, Project

PYTHON = """\
__version__ = "1.0.0"
__executor_id__ = "rye/core/runtimes/python_runtime"


def main(word="hi"):
    return word
"""


def closure_of(project: Project, item_id: str) -> Closure:
    preparer = Preparer(project.context, PRIMITIVE_MAP)
    return Preparation(preparer, item_id).verify().closure


def roles(closure: Closure) -> dict[str, str]:
    return {one.path: one.role for one in closure.manifest.files}


def package(root: Path) -> Project:
    """A project with a Python tool of two files."""
    project = Project(root, shipped_system=True)
    project.tool("pack/__init__.py", "")
    project.tool("pack/helper.py", "WORD = 1\n")
    project.tool("pack/t.py", PYTHON)
    return project


def test_a_result_a_lockfile_and_the_chain_have_the_same_digest(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.command("t", "echo", "hi")
    first = project.run("t")
    digest = first.metadata["closure"]
    assert len(digest) == 64
    assert json.loads(project.lockfile("t").read_text())["closure"] == digest
    tool, *others = inspect_chain("t", project.context).elements
    assert tool.closure == digest
    assert [one.closure for one in others] == [""] * len(others)
    failed = project.run("t", {"unknown": 1}, timeout=-1)
    assert "closure" not in failed.metadata
    assert project.run("t", dry_run=True).metadata["closure"] == digest


def test_a_lockfile_without_a_digest_stays_valid(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.command("t", "echo", "hi")
    project.run("t")
    path = project.lockfile("t")
    older = json.loads(path.read_text())
    del older["closure"]
    path.write_text(json.dumps(older))
    assert project.run("t", frozen=True).success


def test_the_files_of_a_closure_have_roles_and_relative_paths(tmp_path: Path) -> None:
    closure = closure_of(package(tmp_path), "pack/t")
    assert roles(closure) == {
        "t.py": "tool",
        "__init__.py": "library",
        "helper.py": "library",
        "rye/core/runtimes/python_runtime.yaml": "runtime",
        "rye/core/primitives/subprocess.yaml": "runtime",
        "rye_run_tool.py": "runtime_library",
        "rye_prepared.py": "runtime_library",
        "rye_start.py": "runtime_library",
        "rye_textfile.py": "runtime_library",
        "rye_walk.py": "runtime_library",
        "rye_workspace.py": "runtime_library",
    }
    assert str(tmp_path).encode() not in closure.encoded
    assert sha256(closure.encoded).hexdigest() == closure.digest


def test_the_same_content_has_the_same_digest_everywhere(tmp_path: Path) -> None:
    """Neither the folder nor the time of the signature matters."""
    one, other = package(tmp_path / "one"), package(tmp_path / "a" / "longer" / "path")
    digest = closure_of(one, "pack/t").digest
    path = other.folder("project") / "tools/pack/t.py"
    path.write_bytes(path.read_bytes().replace(b"rye:signed:20", b"rye:signed:19"))
    other.sign(path)
    assert closure_of(other, "pack/t").digest == digest


@pytest.mark.parametrize("name", ["pack/t.py", "pack/helper.py", "pack/__init__.py"])
def test_a_change_of_any_file_changes_the_digest(tmp_path: Path, name: str) -> None:
    project = package(tmp_path)
    before = closure_of(project, "pack/t").digest
    path = project.folder("project") / "tools" / name
    path.write_text(path.read_text() + "# changed\n")
    project.sign(path)
    assert closure_of(project, "pack/t").digest != before


def test_permissions_config_and_modes_are_part_of_the_digest(tmp_path: Path) -> None:
    project = Project(tmp_path)
    path = project.command("t", "echo", "hi")
    plain = closure_of(project, "t")
    assert plain.manifest.config == {"command": "echo", "args": ["hi"]}
    assert plain.manifest.permissions is None
    path.chmod(0o755)
    executable = closure_of(project, "t")
    assert [one.executable for one in executable.manifest.files] == [True]
    project.command("t", "echo", "hi", permissions={"write": ["tmp"]})
    confined = closure_of(project, "t")
    assert confined.manifest.permissions is not None
    assert len({one.digest for one in (plain, executable, confined)}) == 3


def test_pinned_files_of_the_project_are_part_of_the_digest(tmp_path: Path) -> None:
    project = Project(tmp_path)
    (project.path / "bin").mkdir()
    (project.path / "bin/x").write_text("one")
    project.command("t", "bin/x", pins=["bin/x"])
    before = closure_of(project, "t")
    assert roles(before) == {"bin/x": "project", "t.yaml": "tool"}
    (project.path / "bin/x").write_text("two")
    assert closure_of(project, "t").digest != before.digest


def test_a_pinned_file_beside_the_tool_is_copied_unless_it_is_large(tmp_path: Path) -> None:
    project = Project(tmp_path)
    folder = project.path / ".ai/tools"
    (folder / "t.lock").write_text("small")
    with (folder / "large").open("wb") as large:
        large.truncate(17 * 1024 * 1024)
    project.command("t", "true", "{tool_dir}", pins=[".ai/tools/t.lock", ".ai/tools/large"])
    found = [(one.role, one.path) for one in closure_of(project, "t").manifest.files]
    assert found == [
        ("data", "t.lock"),
        ("project", ".ai/tools/large"),
        ("project", ".ai/tools/t.lock"),
        ("tool", "t.yaml"),
    ]


def test_files_above_the_tool_keep_their_places(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.tool("pack/lib/common.sh", "# common\n")
    project.yaml(
        "pack/bin/t",
        executor_id=SUBPROCESS,
        anchor={"mode": "always", "root": "tool_parent"},
        verify_deps={"scope": "anchor", "extensions": [".sh"]},
        config={"command": "true"},
    )
    assert roles(closure_of(project, "pack/bin/t")) == {
        "bin/t.yaml": "tool",
        "lib/common.sh": "library",
    }


def test_an_anchor_elsewhere_has_its_own_folder(tmp_path: Path) -> None:
    """A tool of the user, with modules of the project."""
    project = Project(tmp_path)
    module = project.path / "src/m.sh"
    module.parent.mkdir()
    module.write_text("# module\n")
    project.sign(module)
    project.yaml(
        "t",
        space="user",
        executor_id=SUBPROCESS,
        anchor={"mode": "always", "root": "project_path"},
        verify_deps={"scope": "anchor", "extensions": [".sh"]},
        config={"command": "true"},
    )
    assert roles(closure_of(project, "t")) == {"t.yaml": "tool", "src/m.sh": "anchor"}


def test_a_marker_that_node_reads_is_part_of_the_digest(tmp_path: Path) -> None:
    project = Project(tmp_path, shipped_system=True)
    tool = '// /// rye\n// executor_id = "rye/core/runtimes/node_runtime"\n// ///\n'
    folder = project.tool("pack/t.mjs", tool).parent
    (folder / "package.json").write_text('{"type": "module"}')
    before = closure_of(project, "pack/t")
    assert roles(before)["package.json"] == "marker"
    (folder / "package.json").write_text("{}")
    assert closure_of(project, "pack/t").digest != before.digest


def test_a_manifest_is_read_back_by_its_digest(tmp_path: Path) -> None:
    closure = closure_of(package(tmp_path), "pack/t")
    assert decode_manifest(closure.encoded, closure.digest) == closure.manifest


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b'"format":1', b'"format":9', "has format 9, which this version of rye does not know"),
        (b'"path":"t.yaml"', b'"path":"../t"', "is malformed ('../t' is not a path inside a"),
        (b'"mode":"0400"', b'"mode":"0777"', "is malformed ('0777')"),
    ],
)
def test_a_manifest_that_cannot_be_used_is_refused(
    tmp_path: Path, old: bytes, new: bytes, message: str
) -> None:
    project = Project(tmp_path)
    project.command("t", "echo", "hi")
    closure = closure_of(project, "t")
    data = closure.encoded.replace(old, new)
    with pytest.raises(ClosureError) as refused:
        decode_manifest(data, sha256(data).hexdigest())
    assert message in str(refused.value)
    with pytest.raises(ClosureError) as refused:
        decode_manifest(data, closure.digest)
    assert str(refused.value) == (
        f"the manifest of closure {closure.digest} has changed; "
        "remove it with: rye cache prune --all"
    )
