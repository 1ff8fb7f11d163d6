"""Data files of a tool: declared, covered by a signed list, pinned, and part of its copy."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from rye.errors import DataFileError
from rye_project import SUBPROCESS, Project, refused

PYTHON = """\
__version__ = "1.0.0"
__executor_id__ = "rye/core/runtimes/python_runtime"
FILES = ["templates/**", "words.txt"]
PERMISSIONS = {}

import pathlib


def main():
    folder = pathlib.Path(__file__).parent
    return [path.read_text() for path in (folder / "words.txt", folder / "templates/a/page.html")]
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path, shipped_system=True)
    folder = project.path / ".ai/tools/kit"
    (folder / "templates/a").mkdir(parents=True)
    (folder / "templates/a/page.html").write_text("<p>")
    (folder / "words.txt").write_text("some words")
    (folder / "other.txt").write_text("not declared")
    project.tool("kit/report.py", PYTHON)
    return project


@pytest.fixture
def folder(project: Project) -> Path:
    return project.path / ".ai/tools/kit"


def test_a_confined_tool_reads_its_data_beside_its_copy(project: Project, folder: Path) -> None:
    result = project.run("kit/report")
    assert result.data == ["some words", "<p>"], result.error
    copy = project.user / ".ai/cache/closures" / result.metadata["closure"] / "tool"
    found = sorted(one.relative_to(copy).as_posix() for one in copy.rglob("*") if one.is_file())
    assert found == ["report.py", "templates/a/page.html", "words.txt"]
    signed, *lines = (folder / "report.py.files").read_text().splitlines()
    assert signed.startswith("# rye:signed:")
    assert [line.partition("  ")[2] for line in lines] == ["templates/a/page.html", "words.txt"]


def test_data_is_pinned_like_code(project: Project, folder: Path) -> None:
    assert project.run("kit/report").success
    pinned = json.loads(project.lockfile("kit/report").read_text())["verified_deps"]
    assert {"words.txt", "templates/a/page.html"} <= pinned.keys()
    (folder / "words.txt").write_text("other words")
    project.sign(folder / "report.py")
    message = refused(project.run("kit/report"), "LockUpgradeError")
    assert f"the dependency words.txt is pinned as {pinned['words.txt']}, but is " in message
    assert project.run("kit/report", use_lockfile=False).data == ["other words", "<p>"]


def test_data_that_differs_from_the_signed_list_does_not_run(
    project: Project, folder: Path
) -> None:
    fix = "review it, then run: rye sign kit/report"

    def message() -> str:
        return refused(project.run("kit/report"), "DataFileError")

    (folder / "words.txt").write_text("evil words")
    assert message() == f"{folder}/words.txt has changed since it was signed; {fix}"
    (folder / "words.txt").write_text("some words")
    (folder / "templates/new.html").write_text("")
    where = f"files of {folder}/report.py"
    assert message() == f"{where}: templates/new.html was added since it was signed; {fix}"
    (folder / "templates/new.html").unlink()
    assert project.run("kit/report").success
    shutil.rmtree(folder / "templates/a")
    (folder / "templates/b.html").write_text("")
    assert message() == (
        f"{where}: templates/a/page.html is missing, although it was signed; {fix}"
    )


def test_a_list_that_nobody_signed_is_refused(project: Project, folder: Path) -> None:
    path = folder / "report.py.files"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[1:]))
    refused(project.run("kit/report"), "UnsignedError")
    path.write_text("".join([lines[0], *lines[2:]]))
    refused(project.run("kit/report"), "ChangedError")
    path.unlink()
    assert refused(project.run("kit/report"), "DataFileError") == (
        f"{folder}/report.py declares files, and nobody signed them; "
        "review it, then run: rye sign kit/report"
    )


def test_a_link_is_not_data(project: Project, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (folder / "templates/link").symlink_to(tmp_path / "secret")
    with pytest.raises(DataFileError) as caught:
        project.sign(folder / "report.py")
    assert str(caught.value) == (
        f"files of {folder}/report.py: templates/link cannot be read "
        "(too many levels of symbolic links); put the file itself there"
    )


def test_a_pattern_without_a_file_is_not_signed(project: Project) -> None:
    with pytest.raises(DataFileError) as caught:
        project.tool("kit/none.py", PYTHON.replace("words.txt", "gone/*.txt"))
    assert "nothing in its folder matches 'gone/*.txt'; create the file" in str(caught.value)
    project.tool("kit/wrong.py", PYTHON.replace('"words.txt"]', '"../words.txt"]'))
    message = refused(project.run("kit/wrong"), "ItemFormatError")
    assert "expected a path beside it, like templates/**, in 'FILES[1]'" in message


def test_the_library_of_a_runtime_has_data_too(tmp_path: Path) -> None:
    project = Project(tmp_path)
    lib = project.path / ".ai/tools/own/lib"
    lib.mkdir(parents=True)
    (lib / "table.json").write_text("[1]")
    project.yaml(
        "own/runtime",
        tool_type="runtime",
        executor_id=SUBPROCESS,
        anchor={"mode": "never", "lib": "lib"},
        files=["lib/*.json"],
        config={"command": "cat", "args": ["{runtime_lib}/table.json"]},
    )
    project.yaml("t", executor_id="own/runtime")
    assert project.run("t").data == [1]
    (lib / "table.json").write_text("[2]")
    refused(project.run("t"), "DataFileError")


def test_a_tool_in_any_language_declares_files(project: Project, folder: Path) -> None:
    header = (
        '# /// rye\n# executor_id = "rye/core/runtimes/bash_runtime"\n# files = ["words.txt"]\n'
    )
    project.tool("kit/say.sh", header + '# ///\ncat "$(dirname "$0")/words.txt"\n')
    assert project.run("kit/say").data["stdout"] == "some words"
    assert (folder / "say.sh.files").exists()
