"""Private copies of closures: written once, checked in every call, and opened by their digest."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from rye.closure.manifest import Closure
from rye.closure.store import ClosureStore, store_of
from rye.errors import ClosureError
from rye.executor.run.prepare import Preparation, Preparer
from rye.executor.run.primitives import PRIMITIVE_MAP
from rye_project import Project

SCRIPT = (
    '# /// rye\n# version = "1.0.0"\n# executor_id = "rye/core/runtimes/bash_runtime"\n# ///\n{}\n'
)
PYTHON = '__executor_id__ = "rye/core/runtimes/python_runtime"\n\n\ndef main():\n    {}\n'


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path, shipped_system=True)
    project.tool("t.sh", SCRIPT.format("echo good"))
    return project


def closure_of(project: Project, item_id: str = "t") -> Closure:
    return Preparation(Preparer(project.context, PRIMITIVE_MAP), item_id).verify().closure


def closures(project: Project) -> Path:
    return project.user / ".ai/cache/closures"


def modes(root: Path) -> dict[str, int]:
    paths = [root, *root.rglob("*")]
    return {
        path.relative_to(root.parent).as_posix()[64:]: stat.S_IMODE(path.stat().st_mode)
        for path in paths
    }


def test_a_copy_is_private_and_read_only(project: Project) -> None:
    (project.path / ".ai/tools/t.sh").chmod(0o755)
    digest = project.run("t").metadata["closure"]
    assert stat.S_IMODE(closures(project).stat().st_mode) == 0o700
    found = modes(closures(project) / digest)
    assert found[""] == found["/tool"] == found["/lib"] == 0o500
    assert found["/tool/t.sh"] == 0o500
    assert found["/manifest.json"] == found["/lib/rye_run_tool.sh"] == 0o400
    assert [one.name for one in closures(project).glob("[!.]*")] == [digest]


def test_a_stored_closure_is_opened_by_its_digest(project: Project) -> None:
    digest = project.run("t").metadata["closure"]
    content = (project.path / ".ai/tools/t.sh").read_bytes()
    (project.path / ".ai/tools/t.sh").unlink()
    opened = store_of(project.context).open(digest)
    assert opened.digest == digest
    assert opened.manifest.tool is not None
    assert Path(opened.root, str(opened.manifest.tool.place)).read_bytes() == content


def test_a_tool_that_reads_no_file_is_stored_for_later(project: Project) -> None:
    project.command("echoes", "echo", "hi")
    digest = project.run("echoes").metadata["closure"]
    assert [one.path for one in store_of(project.context).open(digest).manifest.files] == [
        "rye/core/primitives/subprocess.yaml",
        "echoes.yaml",
    ]


@pytest.mark.parametrize("digest", ["0" * 64, "../../keys", ""])
def test_a_closure_that_is_not_stored_is_an_error(project: Project, digest: str) -> None:
    with pytest.raises(ClosureError) as refused:
        store_of(project.context).open(digest)
    assert str(refused.value) == (
        f"closure {digest} is not stored here; "
        "run the tool again, or look for it on the machine where it ran"
    )


def test_a_stored_closure_that_was_changed_is_not_opened(project: Project) -> None:
    digest = project.run("t").metadata["closure"]
    tool = closures(project) / digest / "tool/t.sh"
    tool.chmod(0o600)
    tool.write_text(SCRIPT.format("echo evil"))
    with pytest.raises(ClosureError) as refused:
        store_of(project.context).open(digest)
    assert str(refused.value) == (
        f"the stored closure {digest} has changed; it is not used; remove it: "
        f"{closures(project) / digest}"
    )


def test_the_same_content_signed_again_uses_the_same_copy(project: Project) -> None:
    digest = project.run("t").metadata["closure"]
    before = (closures(project) / digest / "tool/t.sh").stat().st_ino
    path = project.path / ".ai/tools/t.sh"
    path.write_bytes(path.read_bytes().replace(b":signed:20", b":signed:19"))
    project.sign(path)
    assert project.run("t").metadata["closure"] == digest
    assert (closures(project) / digest / "tool/t.sh").stat().st_ino == before


def test_a_store_that_cannot_be_used_is_replaced_by_a_temporary_copy(
    project: Project, tmp_path: Path
) -> None:
    (project.user / ".ai/cache").mkdir(exist_ok=True)
    closures(project).write_text("not a folder")
    project.environ["TMPDIR"] = str(tmp_path / "tmp")
    (tmp_path / "tmp").mkdir()
    result = project.run("t")
    assert result.data["stdout"] == "good\n"
    assert result.metadata["closure_note"] == (
        f"{closures(project)} cannot be used (file exists), so a temporary copy of the tool ran; "
        "make it a private folder that you can write to"
    )
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_store_that_others_can_enter_is_not_used(project: Project) -> None:
    digest = project.run("t").metadata["closure"]
    closures(project).chmod(0o755)
    result = project.run("t")
    assert result.data["stdout"] == "good\n"
    assert "(it is not private to its owner)" in result.metadata["closure_note"]
    with pytest.raises(ClosureError):
        store_of(project.context).open(digest)


def test_a_file_that_changed_since_it_was_verified_is_not_copied(project: Project) -> None:
    closure = closure_of(project)
    path = project.path / ".ai/tools/t.sh"
    path.write_text(SCRIPT.format("echo evil"))
    with pytest.raises(ClosureError) as refused:
        store_of(project.context).copy(closure, {})
    assert str(refused.value) == (
        f"{path} changed after it was verified and was not run; run it again"
    )
    assert not (closures(project) / closure.digest).exists()


def test_many_threads_make_one_copy(project: Project) -> None:
    closure = closure_of(project)
    stores = [store_of(project.context) for _ in range(8)]

    def copy(store: ClosureStore) -> str:
        return store.copy(closure, {}).root

    with ThreadPoolExecutor(8) as threads:
        roots = set(threads.map(copy, stores))
    assert roots == {f"{closures(project)}/{closure.digest}"}
    assert [one.name for one in closures(project).glob("[!.]*")] == [closure.digest]


def test_messages_of_a_shell_name_the_authors_file(project: Project) -> None:
    path = project.tool("broken.sh", SCRIPT.format("no_such_command"))
    pieces: list[str] = []
    result = project.run("broken", on_output=lambda stream, text: pieces.append(text))
    assert result.error is not None
    assert result.error.endswith(f"{path}: line 6: no_such_command: command not found")
    assert "".join(pieces) == f"{path}: line 6: no_such_command: command not found\n"


def test_a_tool_finds_its_copy_and_its_original_folder(project: Project) -> None:
    project.yaml(
        "where",
        executor_id="rye/core/primitives/subprocess",
        config={"command": "echo", "args": ["{tool_dir}", "{source_dir}", "{tool_path}"]},
    )
    result = project.run("where")
    copy = closures(project) / result.metadata["closure"] / "tool"
    source = project.path / ".ai/tools"
    assert result.data["stdout"] == f"{copy} {source} {copy}/where.yaml\n"


# Compiled Python


def compiled_of(project: Project, digest: str) -> Path:
    (found,) = closures(project).glob(f"{digest}.*")
    return found


def test_a_python_tool_that_is_called_again_is_compiled(project: Project) -> None:
    project.tool("p.py", PYTHON.format("return __file__"))
    first = project.run("p")
    digest = first.metadata["closure"]
    assert list(closures(project).glob(f"{digest}.*")) == []
    assert project.run("p").data == first.data == f"{closures(project)}/{digest}/tool/p.py"
    compiled = compiled_of(project, digest)
    assert {"p.pyc"} == {one.name for one in (compiled / "tool").iterdir()}
    assert (compiled / "lib/rye_run_tool.pyc").exists()


def test_compiled_python_that_was_changed_is_not_loaded(project: Project) -> None:
    """Neither other bytes nor a file that Rye did not write."""
    project.tool("p.py", PYTHON.format("return 'good'"))
    project.run("p")
    digest = project.run("p").metadata["closure"]
    path = compiled_of(project, digest) / "tool/p.pyc"
    for change in (
        lambda: path.write_bytes(path.read_bytes().replace(b"good", b"evil")),
        lambda: path.with_name("json.pyc").write_bytes(path.read_bytes()),
        path.unlink,
    ):
        change()
        assert project.run("p").data == "good"
        assert b"good" in path.read_bytes()


def test_a_traceback_of_compiled_python_names_the_authors_file(project: Project) -> None:
    path = project.tool("p.py", PYTHON.format("raise KeyError('x')"))
    errors = [project.run("p").data["stderr"] for _ in range(3)]
    assert f'File "{path}", line 6, in main\n    raise KeyError' in errors[2]
    assert errors[0] == errors[1] == errors[2]


def test_a_tool_that_cannot_be_compiled_reports_it_in_every_call(project: Project) -> None:
    project.tool("p.py", PYTHON.format("return 1") + "\n\ndef broken(:\n", signed=False)
    path = project.path / ".ai/tools/p.py"
    text = path.read_text().replace("def broken(:", "return 1")
    path.write_text(text)
    project.sign(path)
    errors = [str(project.run("p").error) for _ in range(3)]
    assert all("SyntaxError: 'return' outside function" in error for error in errors)
