"""rye/fs/*: reading, writing and finding files of the project."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from rye_project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, shipped_system=True)


def done(project: Project, tool: str, **params: Any) -> Any:
    result = project.run(f"rye/fs/{tool}", params)
    assert result.error is None
    return result.data


def refused(project: Project, tool: str, **params: Any) -> str:
    result = project.run(f"rye/fs/{tool}", params)
    assert (result.success, result.metadata["return_code"]) == (False, 1)
    message: str = result.data["stderr"]
    return message


def test_reads_a_file_and_its_line_numbers(project: Project) -> None:
    (project.path / "a.txt").write_text("one\ntwo\nthree")

    assert done(project, "read", path="a.txt") == {
        "path": "a.txt",
        "content": "one\ntwo\nthree",
        "start_line": 1,
        "end_line": 3,
        "next_line": None,
        "line_cut": False,
        "size": 13,
    }


def test_reads_a_range_of_lines_and_returns_the_next_line(project: Project) -> None:
    (project.path / "a.txt").write_text("".join(f"{n}\n" for n in range(1, 101)))

    first = done(project, "read", path="a.txt", start_line=10, max_lines=2)
    last = done(project, "read", path="a.txt", start_line=100)

    assert (first["content"], first["end_line"], first["next_line"]) == ("10\n11\n", 11, 12)
    assert (last["content"], last["next_line"]) == ("100\n", None)
    assert refused(project, "read", path="a.txt", start_line=101) == (
        "a.txt has 100 lines; start_line 101 is after the end\n"
    )


def test_a_large_file_is_read_in_whole_lines_up_to_the_limit(project: Project) -> None:
    (project.path / "a.txt").write_text(("x" * 99_999 + "\n") * 5)
    (project.path / "one.txt").write_text("é" * 200_000)

    some = done(project, "read", path="a.txt")
    cut = done(project, "read", path="one.txt")

    assert (len(some["content"]), some["next_line"]) == (200_000, 3)
    assert (cut["line_cut"], cut["content"]) == (True, "é" * 131_072)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"ab\0cd", "a.bin is a binary file of 5 bytes; only text can be read\n"),
        (b"caf\xe9", "a.bin is not UTF-8 text (byte 3); convert it, or use rye/bash/bash\n"),
    ],
)
def test_a_file_that_is_not_text_is_refused(project: Project, content: bytes, message: str) -> None:
    (project.path / "a.bin").write_bytes(content)

    assert refused(project, "read", path="a.bin") == message


def test_an_empty_file_is_read(project: Project) -> None:
    (project.path / "a.txt").write_text("")

    assert done(project, "read", path="a.txt")["content"] == ""


def test_folders_pipes_and_missing_files_have_their_own_messages(project: Project) -> None:
    os.mkfifo(project.path / "pipe")

    assert refused(project, "read", path=".ai").startswith(".ai is a folder; ")
    assert refused(project, "read", path="pipe") == "pipe is not a regular file; name one\n"
    assert refused(project, "read", path="no") == "no does not exist; use rye/fs/glob to find it\n"


OUTSIDE = "use a path inside it, or ask the user for the file\n"


@pytest.mark.parametrize(
    ("tool", "params"),
    [
        ("read", {}),
        ("write", {"content": "x"}),
        ("edit", {"old_text": "secret", "new_text": "x"}),
    ],
)
@pytest.mark.parametrize("path", ["../out/a.txt", "link/a.txt", "filelink", "/{root}/out/a.txt"])
def test_a_path_outside_the_project_is_refused(
    project: Project, tmp_path: Path, tool: str, params: dict[str, str], path: str
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.txt").write_text("secret")
    (project.path / "link").symlink_to(tmp_path / "out")
    (project.path / "filelink").symlink_to(tmp_path / "out" / "a.txt")
    path = path.replace("/{root}", str(tmp_path))

    message = refused(project, tool, path=path, **params)

    assert message == f"{path} is outside the project {project.path}; {OUTSIDE}"
    assert (tmp_path / "out" / "a.txt").read_text() == "secret"


@pytest.mark.parametrize(("tool", "params"), [("list", {}), ("glob", {"pattern": "*"}),
                                              ("grep", {"pattern": "secret"})])  # fmt: skip
def test_a_search_does_not_leave_the_project(
    project: Project, tmp_path: Path, tool: str, params: dict[str, str]
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.txt").write_text("secret")
    (project.path / "link").symlink_to(tmp_path / "out")

    assert refused(project, tool, path="link", **params).endswith(OUTSIDE)
    assert "a.txt" not in str(done(project, tool, **params))


def test_writes_a_file_and_its_folders(project: Project) -> None:
    data = done(project, "write", path="new/deep/a.txt", content="é\n")

    assert data == {"path": "new/deep/a.txt", "size": 3, "created": True}
    assert (project.path / "new/deep/a.txt").read_bytes() == "é\n".encode()


def test_replacing_a_file_keeps_its_mode_and_leaves_no_temporary_file(project: Project) -> None:
    script = project.path / "run.sh"
    script.write_text("old")
    script.chmod(0o755)
    before = sorted(project.path.iterdir())

    assert done(project, "write", path="run.sh", content="new")["created"] is False
    assert (script.read_text(), script.stat().st_mode & 0o777) == ("new", 0o755)
    assert sorted(project.path.iterdir()) == before


def test_create_only_does_not_replace(project: Project) -> None:
    (project.path / "a.txt").write_text("old")

    message = refused(project, "write", path="a.txt", content="new", create_only=True)

    assert message == (
        "a.txt already exists; remove create_only to replace it, or use rye/fs/edit\n"
    )
    assert (project.path / "a.txt").read_text() == "old"
    assert list(project.path.glob("*.tmp")) == []


def test_writing_through_a_link_inside_the_project_keeps_the_link(project: Project) -> None:
    (project.path / "real.txt").write_text("old")
    (project.path / "link.txt").symlink_to("real.txt")

    done(project, "write", path="link.txt", content="new")

    assert (project.path / "link.txt").is_symlink()
    assert (project.path / "real.txt").read_text() == "new"


def test_an_edit_returns_a_diff(project: Project) -> None:
    (project.path / "a.txt").write_text("one\ntwo\nthree\n")

    data = done(project, "edit", path="a.txt", old_text="two", new_text="2")

    assert data == {
        "path": "a.txt",
        "replacements": 1,
        "diff": "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n",
        "diff_complete": True,
    }
    assert (project.path / "a.txt").read_text() == "one\n2\nthree\n"


def test_an_edit_that_is_not_unique_changes_nothing_unless_asked(project: Project) -> None:
    path = project.path / "a.txt"
    path.write_text("x\ny\nx\n")

    assert refused(project, "edit", path="a.txt", old_text="x", new_text="z") == (
        "a.txt contains old_text 2 times (lines 1, 3); "
        "include the lines around it, or set replace_all to true\n"
    )
    assert path.read_text() == "x\ny\nx\n"
    done(project, "edit", path="a.txt", old_text="x", new_text="z", replace_all=True)
    assert path.read_text() == "z\ny\nz\n"


def test_an_edit_that_does_not_match_reports_the_nearest_line(project: Project) -> None:
    (project.path / "a.txt").write_text("def f():\n    return 1\n")

    near = refused(project, "edit", path="a.txt", old_text="\treturn 1", new_text="x")
    far = refused(project, "edit", path="a.txt", old_text="nothing like it", new_text="x")
    same = refused(project, "edit", path="a.txt", old_text="def", new_text="def")

    assert near == (
        "a.txt does not contain old_text; its first line matches line 2, but whitespace or "
        "later lines differ: read the file again\n"
    )
    assert far == "a.txt does not contain old_text; read the file and copy the text exactly\n"
    assert same == "old_text and new_text are the same; change new_text\n"


def test_an_edit_keeps_the_line_ends_of_the_file(project: Project) -> None:
    (project.path / "a.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")

    done(project, "edit", path="a.txt", old_text="one\ntwo", new_text="1\n2")

    assert (project.path / "a.txt").read_bytes() == b"1\r\n2\r\nthree\r\n"


@pytest.fixture
def tree(project: Project) -> Project:
    for name in ("src/a.py", "src/sub/b.py", "src/sub/c.md", "node_modules/x.py", ".hid/d.py",
                 "top.py"):  # fmt: skip
        path = project.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"needle in {name}\nother\n")
    (project.path / "src/bin.py").write_bytes(b"needle\0")
    return project


def test_lists_one_or_more_levels(tree: Project) -> None:
    assert done(tree, "list", path="src")["entries"] == [
        {"path": "a.py", "kind": "file", "size": 25},
        {"path": "bin.py", "kind": "file", "size": 7},
        {"path": "sub", "kind": "folder"},
    ]
    deep = done(tree, "list", depth=3, hidden=True, include_ignored=True)["entries"]
    paths = [entry["path"] for entry in deep]
    assert {"src/sub/b.py", "node_modules/x.py", ".hid/d.py"} <= set(paths)


def test_a_list_that_is_cut_says_so(tree: Project) -> None:
    data = done(tree, "list", path="src", max_results=2)

    assert (len(data["entries"]), data["complete"]) == (2, False)


@pytest.mark.parametrize(
    ("pattern", "files"),
    [
        ("*.py", ["src/a.py", "src/bin.py", "src/sub/b.py", "top.py"]),
        ("./*.py", ["top.py"]),
        ("src/*.py", ["src/a.py", "src/bin.py"]),
        ("src/**", ["src/a.py", "src/bin.py", "src/sub/b.py", "src/sub/c.md"]),
        ("**/sub/*.{py,md}", ["src/sub/b.py", "src/sub/c.md"]),
        ("src/[!b]*.py", ["src/a.py"]),
        ("src/?.py", ["src/a.py"]),
        (".hid/*", [".hid/d.py"]),
        ("a{b", []),
    ],
)
def test_globs_for_files(tree: Project, pattern: str, files: list[str]) -> None:
    assert done(tree, "glob", pattern=pattern)["files"] == files


def test_greps_lines_with_context(tree: Project) -> None:
    data = done(tree, "grep", pattern=r"^needle in .*\.py$", context=1)

    assert [match["path"] for match in data["matches"]] == ["src/a.py", "src/sub/b.py", "top.py"]
    assert data["matches"][0] == {
        "path": "src/a.py",
        "line": 1,
        "text": "needle in src/a.py",
        "before": [],
        "after": ["other"],
    }
    assert (data["files_searched"], data["files_skipped"], data["complete"]) == (4, 1, True)


def test_grep_narrows_by_path_glob_case_and_number(tree: Project) -> None:
    def paths(**params: Any) -> list[str]:
        return [match["path"] for match in done(tree, "grep", **params)["matches"]]

    assert paths(pattern="needle", glob="*.md") == ["src/sub/c.md"]
    assert paths(pattern="NEEDLE", path="src/a.py") == []
    assert paths(pattern="NEEDLE", path="src/a.py", ignore_case=True) == ["src/a.py"]
    assert paths(pattern="in .", literal=True) == []
    assert done(tree, "grep", pattern="needle", max_results=1)["complete"] is False


def test_an_invalid_regular_expression_is_reported(project: Project) -> None:
    assert refused(project, "grep", pattern="(").startswith(
        "the pattern is not a valid regular expression"
    )


def test_every_line_of_grep_is_bounded(project: Project) -> None:
    (project.path / "a.txt").write_text("x" * 100_000)

    (match,) = done(project, "grep", pattern="x")["matches"]

    assert match["text"] == "x" * 500 + "…"
