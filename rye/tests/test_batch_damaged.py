"""A batch whose files were lost, edited or shared: it says what is wrong and runs nothing twice."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from batches import once_project, ran, write_calls
from rye.batches.folder import BatchFolder
from rye.batches.plan import state_of
from rye.errors import BatchError
from rye_command import InProcessRye
from rye_project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return once_project(tmp_path)


@pytest.fixture
def cli(
    project: Project, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> InProcessRye:
    return InProcessRye(project.path, project.user, monkeypatch, capfd)


@pytest.fixture
def folder(project: Project, cli: InProcessRye, tmp_path: Path) -> Path:
    """A batch that stopped after the first of three calls."""
    write_calls(project, [{"n": 13}, {"n": 14}, {"n": 15}])
    cli(
        "batch", "tools/once", "calls.jsonl", "--dir", tmp_path / "b",
        "--max-failures", "1", "--jobs", "1",
    )  # fmt: skip
    assert ran(project) == {"13": 1}
    return tmp_path / "b"


def edited(path: Path, change: Callable[[dict[str, object]], object]) -> None:
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda one: one.pop("options"), "'options' is missing or is not of type dict"),
        (lambda one: one.update(calls="3"), "'calls' is missing or is not of type int"),
        (lambda one: one.update(calls=-1), "'calls' is negative"),
        (lambda one: one.update(version=2), "'version' is not 1"),
        (lambda one: one["options"].update(jobs="x"), "'options.jobs' is not of type int"),
    ],
)
@pytest.mark.parametrize("command", ["resume", "status", "show"])
def test_a_manifest_that_cannot_be_used_is_named_with_the_reason(
    cli: InProcessRye, tmp_path: Path, command: str, change: Callable[..., object], reason: str
) -> None:
    BatchFolder(tmp_path / "b").create()
    BatchFolder(tmp_path / "b").write_manifest(
        {"tool": "tools/once", "calls": 3, "space": "project", "closure": "", "options": {}}
    )
    manifest = tmp_path / "b" / "manifest.json"
    edited(manifest, change)
    done = cli("batch", command, tmp_path / "b")
    assert (done.code, done.stderr) == (
        1,
        f"rye: {manifest} cannot be used: {reason}; restore it, or start another batch\n",
    )


def test_a_batch_that_was_killed_while_its_calls_were_checked_has_not_begun(
    cli: InProcessRye, tmp_path: Path
) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "calls.jsonl").write_text('{"n": 1}\n')
    assert cli("batch", "resume", tmp_path / "b").stderr == (
        f"rye: the batch {tmp_path / 'b'} has not begun: its calls have not all been checked; "
        "if nothing is reading them now, remove the folder and start the batch again\n"
    )


@pytest.mark.parametrize(
    "content", ['{"n": 13}\n{"n": 14}\n', '{"n": 13}\n{"n": 14}\n{"n": 15}\n{"n": 16}\n']
)
def test_changed_calls_are_not_run(
    project: Project, cli: InProcessRye, folder: Path, content: str
) -> None:
    (folder / "calls.jsonl").write_text(content)
    done = cli("batch", "resume", folder)
    assert (done.code, done.stderr) == (
        1,
        (
            f"rye: {folder / 'calls.jsonl'} has changed since the batch was started; "
            "restore it, or start another batch\n"
        ),
    )
    assert ran(project) == {"13": 1}


def test_a_line_of_the_same_length_that_is_not_json_ends_the_resume(
    project: Project, cli: InProcessRye, folder: Path
) -> None:
    calls = folder / "calls.jsonl"
    calls.write_text(calls.read_text().replace('{"n": 14}', '{"n": 14]'))
    assert (
        f"{calls} has changed since the batch was started" in cli("batch", "resume", folder).stderr
    )
    assert ran(project) == {"13": 1}


def test_without_its_journal_nothing_runs_unless_it_may_run_twice(
    project: Project, cli: InProcessRye, folder: Path
) -> None:
    (folder / "journal").unlink()
    done = cli("batch", "resume", folder)
    assert (done.code, done.stderr) == (
        1,
        (
            f"rye: {folder / 'journal'} lacks calls that have a result; others may have run, too; "
            "restore it; or, if calls may run twice, pass --rerun-unknown\n"
        ),
    )
    assert ran(project) == {"13": 1}
    cli("batch", "resume", folder, "--rerun-unknown")
    assert ran(project) == {"13": 1, "14": 1, "15": 1}


def test_skipped_lines_need_no_journal(project: Project, cli: InProcessRye, tmp_path: Path) -> None:
    write_calls(project, [[1], {"n": 13}, {"n": 14}])
    cli(
        "batch", "tools/once", "calls.jsonl", "--dir", tmp_path / "b",
        "--max-failures", "1", "--jobs", "1", "--skip-bad",
    )  # fmt: skip
    cli("batch", "resume", tmp_path / "b")
    assert ran(project) == {"13": 1, "14": 1}


def test_a_line_that_is_not_a_result_is_named(cli: InProcessRye, folder: Path) -> None:
    with (folder / "results.jsonl").open("a") as lines:
        lines.write("garbage\n")
    done = cli("batch", "show", folder)
    assert done.stderr == (
        f"rye: {folder / 'results.jsonl'}: line 2 is not a result; "
        "the file was changed; restore it, or remove that line\n"
    )


def test_a_copied_line_is_counted_once(folder: Path) -> None:
    written = folder / "results.jsonl"
    written.write_text(written.read_text() * 3)
    state = state_of(BatchFolder(folder))
    assert (state.ended, state.outcomes) == (1, {"failed": 1})


@pytest.mark.parametrize("name", ["results.jsonl", "manifest.json", "other"])
def test_the_copy_of_the_results_cannot_replace_a_file_of_the_batch(
    project: Project, cli: InProcessRye, tmp_path: Path, name: str
) -> None:
    write_calls(project, [{"n": 1}])
    (tmp_path / "link").symlink_to(tmp_path / "b")
    out = tmp_path / "link" / name
    done = cli("batch", "tools/once", "calls.jsonl", "--dir", tmp_path / "b", "--out", out)
    assert done.code == 2
    assert "--out is in the folder of the batch; choose another" in done.stderr
    assert not (tmp_path / "b").exists()


def test_a_resume_does_not_replace_results_by_their_copy(cli: InProcessRye, folder: Path) -> None:
    written = folder / "results.jsonl"
    before = written.read_text()
    edited(folder / "manifest.json", lambda one: one["options"].update(out=str(written)))  # type: ignore[attr-defined]
    done = cli("batch", "resume", folder)
    assert f"the copy of the results, {written}, is in the folder of the batch" in done.stderr
    assert written.read_text() == before


def test_two_programs_cannot_begin_a_batch_in_the_same_folder(tmp_path: Path) -> None:
    one, other = BatchFolder(tmp_path / "b"), BatchFolder(tmp_path / "b")
    one.create()
    other.create()
    with one.new_calls(), pytest.raises(BatchError, match=re.escape("b is not empty")):
        other.new_calls()


def test_only_the_user_may_read_parameters_and_results(
    project: Project, cli: InProcessRye, tmp_path: Path
) -> None:
    write_calls(project, [{"n": 1}])
    (tmp_path / "b").mkdir(mode=0o755)
    cli("batch", "tools/once", "calls.jsonl", "--dir", tmp_path / "b")
    cli("batch", "resume", tmp_path / "b", "--rerun-unknown")
    for name in ("calls.jsonl", "journal", "results.jsonl"):
        assert (tmp_path / "b" / name).stat().st_mode & 0o777 == 0o600, name


def test_calls_in_doubt_do_not_stop_a_resume(
    project: Project, cli: InProcessRye, folder: Path
) -> None:
    with (folder / "journal").open("ab") as journal:
        journal.write((2).to_bytes(8, "little"))
    done = cli("batch", "resume", folder)
    assert done.stdout.startswith("3 of 3 calls have a result (1 failed, 1 ok, 1 unknown)\n")
    assert ran(project) == {"13": 1, "15": 1}


def test_a_full_disk_while_ids_are_compared_is_reported(
    project: Project, cli: InProcessRye, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_calls(project, ({"id": f"call {n}", "parameters": {"n": n}} for n in range(2000)))
    connect = sqlite3.connect

    def small(*given: object, **options: object) -> sqlite3.Connection:
        database = connect(*given, **options)  # type: ignore[call-overload]
        database.execute("PRAGMA max_page_count = 3")
        return database  # type: ignore[no-any-return]

    monkeypatch.setattr("rye.batches.calls.sqlite3.connect", small)
    done = cli("batch", "tools/once", "calls.jsonl", "--dir", tmp_path / "b")
    assert (done.code, done.stderr) == (
        1,
        (
            f"rye: cannot copy the calls to {tmp_path / 'b'}: database or disk is full; "
            "choose another --dir\n"
        ),
    )
    assert not (tmp_path / "b").exists()


def test_results_of_skipped_lines_share_no_id(
    project: Project, cli: InProcessRye, tmp_path: Path
) -> None:
    write_calls(
        project, [{"id": "a", "parameters": {"n": 1}}, [2], {"id": 2, "parameters": {"n": 3}}]
    )
    done = cli("batch", "tools/once", "calls.jsonl", "--dir", tmp_path / "b", "--skip-bad")
    assert (done.code, "two calls have the id '2': lines 2 and 3" in done.stderr) == (2, True)
    assert ran(project) == {}
    assert not (tmp_path / "b").exists()


def test_a_batch_of_a_cluster_resumes_on_this_machine(
    project: Project, cli: InProcessRye, folder: Path
) -> None:
    edited(folder / "manifest.json", lambda one: one["options"].update(on="ray", env=["TOKEN"]))  # type: ignore[attr-defined]
    cli("batch", "resume", folder, "--on", "local")
    assert ran(project) == {"13": 1, "14": 1, "15": 1}
    refused = cli("batch", "resume", folder, "--on", "local", "--env", "TOKEN")
    assert (refused.code, "--env is for --on ray" in refused.stderr) == (2, True)
