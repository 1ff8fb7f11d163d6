"""`rye batch`: every call gets one result, whatever interrupts it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from batches import SCHEMA, once_project, ran, results, start, tool, write_calls
from processes import wait_until
from rye.batches.folder import BatchFolder
from rye.batches.records import BatchResult
from rye.errors import BatchError
from rye_command import InProcessRye
from rye_project import Project

import rye

IMPORTED_ELSEWHERE = """\
__version__ = "1.0.0"
__executor_id__ = "python_runtime"
import os
IMPORTED_IN = os.getpid()
def main() -> bool:
    return os.getpid() != IMPORTED_IN
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return once_project(tmp_path)


@pytest.fixture
def cli(
    project: Project, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> InProcessRye:
    return InProcessRye(project.path, project.user, monkeypatch, capfd)


def test_every_call_gets_one_line(project: Project, cli: InProcessRye, tmp_path: Path) -> None:
    write_calls(project, ({"n": n} for n in range(10, 20)))
    done = cli("batch", "tools/once", "calls.jsonl", "--out", "out.jsonl", "--dir", tmp_path / "b")
    assert done.code == 1, done.stderr
    lines = results(project.path / "out.jsonl")
    assert sorted(one["line"] for one in lines) == list(range(1, 11))
    failed = next(one for one in lines if one["outcome"] != "ok")
    assert (failed["id"], failed["outcome"], failed["attempt"]) == ("4", "failed", 1)
    assert "ended with exit code 3" in failed["error"]
    assert all(one["duration_ms"] > 0 for one in lines)
    assert (tmp_path / "b" / "results.jsonl").read_text() == (
        project.path / "out.jsonl"
    ).read_text()
    assert done.stdout.startswith("10 of 10 calls have a result (1 failed, 9 ok)\nslowest: ")
    shown = cli("batch", "show", tmp_path / "b", "--failed").stdout
    assert json.loads(shown)["id"] == "4"
    assert cli("batch", "status", tmp_path / "b").stdout == (
        "tools/once: 10 of 10 calls have a result\n  failed   1\n  ok       9\n"
    )


def test_one_call_for_each_file(project: Project, cli: InProcessRye, tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "c.md"):
        (project.path / name).write_text(name)
    done = cli(
        "batch", "rye/fs/read", "--each", "path=*.txt", "--dir", tmp_path / "b", "--jobs", "1"
    )
    assert done.code == 0, done.stderr
    texts = [one["data"]["content"] for one in results(tmp_path / "b" / "results.jsonl")]
    assert [text.strip() for text in texts] == ["a.txt", "b.txt"]


@pytest.mark.parametrize(
    ("calls", "fault"),
    [
        ([{"n": 1}, {"m": 2}], "line 2: "),
        ([{"n": 1}, [2]], "line 2: not an object"),
        (
            [{"id": "a", "parameters": {"n": 1}}, {"id": "a", "parameters": {"n": 2}}],
            "two calls have the id 'a': lines 1 and 2",
        ),
        ([{"n": 1}, {"id": 1, "parameters": {"n": 2}}], "two calls have the id '1'"),
    ],
)
def test_nothing_runs_if_a_call_cannot_be_used(
    project: Project, cli: InProcessRye, tmp_path: Path, calls: list[Any], fault: str
) -> None:
    write_calls(project, calls)
    done = cli("batch", "tools/once", "calls.jsonl", "--dir", tmp_path / "b")
    assert done.code == 2
    assert fault in done.stderr
    assert ran(project) == {}


def test_a_bad_line_is_skipped_on_request(
    project: Project, cli: InProcessRye, tmp_path: Path
) -> None:
    write_calls(project, [{"n": 1}, [2], {"n": 3}])
    done = cli("batch", "tools/once", "calls.jsonl", "--dir", tmp_path / "b", "--skip-bad")
    assert done.code == 0, done.stderr
    lines = results(tmp_path / "b" / "results.jsonl")
    assert {one["line"]: one["outcome"] for one in lines} == {1: "ok", 2: "skipped", 3: "ok"}
    skipped = next(one for one in lines if one["line"] == 2)
    assert skipped["error"] == "the line cannot be used: not an object"


def test_every_call_gets_a_signed_receipt_on_request(
    project: Project, cli: InProcessRye, tmp_path: Path
) -> None:
    write_calls(project, [{"n": 1}, {"n": 2}, {"n": 3}])
    done = cli(
        "batch", "tools/once", "calls.jsonl", "--dir", tmp_path / "b", "--receipts", "signed"
    )
    assert done.code == 0, done.stderr
    assert cli("receipt", "log", "--out", tmp_path / "log").code == 0
    assert len((tmp_path / "log").read_text().splitlines()) == 3
    assert cli("receipt", "verify", tmp_path / "log").code == 0


def test_it_stops_after_too_many_failures(
    project: Project, cli: InProcessRye, tmp_path: Path
) -> None:
    write_calls(project, [{"n": 13}, *({"n": n} for n in range(20, 60))])
    done = cli(
        "batch", "tools/once", "calls.jsonl", "--dir", tmp_path / "b",
        "--max-failures", "1", "--jobs", "1",
    )  # fmt: skip
    assert done.code == 1
    resume = f"rye batch resume {tmp_path / 'b'}"
    assert done.stderr.endswith(f"rye: 1 call did not succeed; go on with: {resume}\n")
    assert ran(project) == {"13": 1}


def test_only_a_tool_that_may_run_twice_is_tried_again(
    project: Project, cli: InProcessRye, tmp_path: Path
) -> None:
    write_calls(project, [{"n": 13}])
    refused = cli("batch", "tools/once", "calls.jsonl", "--dir", tmp_path / "a", "--retry", "2")
    assert refused.code == 2
    assert "pass --retry-unsafe if it may" in refused.stderr
    assert not (tmp_path / "a").exists()
    tool(project, annotations={"idempotent": True})
    done = cli("batch", "tools/once", "calls.jsonl", "--dir", tmp_path / "b", "--retry", "2")
    assert done.code == 1
    assert ran(project) == {"13": 3}
    assert [one["attempt"] for one in results(tmp_path / "b" / "results.jsonl")] == [3]


@pytest.mark.parametrize("repeats", [False, True])
def test_a_killed_batch_resumes_and_runs_nothing_twice_unless_it_may(
    project: Project, cli: InProcessRye, tmp_path: Path, repeats: bool
) -> None:
    tool(project, annotations={"idempotent": repeats})
    folder = tmp_path / "b"
    write_calls(project, ({"n": n, "slow": 5} for n in range(1, 11)))
    with start(project, folder, "--jobs", "2", "--out", "out.jsonl") as process:
        # All but the slow one, which sleeps.
        wait_until(lambda: len(ran(project)) == 10, "all calls have begun", seconds=60)
        process.kill()
    (project.path / "calls.jsonl").unlink()  # the folder has a copy
    state = cli("batch", "status", folder).stdout
    assert "started and have no result" in state
    if repeats:
        # Let the slow call end this time.
        (folder / "calls.jsonl").write_text(
            (folder / "calls.jsonl").read_text().replace('"slow": 5', '"slow": 0')
        )
    resumed = cli("batch", "resume", folder)
    lines = results(project.path / "out.jsonl")
    assert sorted(one["line"] for one in lines) == list(range(1, 11)), resumed.stderr
    outcomes = {one["line"]: one["outcome"] for one in lines}
    assert outcomes[5] == ("ok" if repeats else "unknown")
    assert ran(project)["5"] == (2 if repeats else 1)
    assert cli("batch", "resume", folder).code == resumed.code
    assert results(project.path / "out.jsonl") == lines


def test_an_interrupt_lets_running_calls_finish(project: Project, tmp_path: Path) -> None:
    write_calls(project, ({"n": n} for n in range(100, 400)))
    with start(project, tmp_path / "b", "--jobs", "2") as process:
        wait_until(lambda: len(ran(project)) > 5, "some calls have run", seconds=60)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    lines = results(tmp_path / "b" / "results.jsonl")
    # Every call that began has a result, and not all began.
    assert sorted(one["line"] + 99 for one in lines) == sorted(map(int, ran(project)))
    assert len(lines) < 300


def test_a_program_gets_results_as_they_arrive(project: Project) -> None:
    taken: list[int] = []

    def calls() -> Iterable[dict[str, int]]:
        for n in range(30, 50):
            taken.append(n)
            yield {"n": n}

    async def body() -> list[rye.BatchResult]:
        found = []
        async for result in rye.batch("tools/once", calls(), project_path=project.path, jobs=2):
            found.append(result)
            # No more is taken than runs at once.
            assert len(taken) <= len(found) + 2
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("USER_SPACE", str(project.user))
        results = asyncio.run(body())
    assert {(one.line, one.outcome) for one in results} == {(n, "ok") for n in range(1, 21)}


def test_the_calls_of_a_batch_start_warm(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.tool("tools/where.py", IMPORTED_ELSEWHERE)
    monkeypatch.setenv("USER_SPACE", str(project.user))
    monkeypatch.setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
    answers: list[Any] = []

    def calls() -> Iterable[dict[str, int]]:
        deadline = time.monotonic() + 60
        while True not in answers and time.monotonic() < deadline:
            yield {}

    async def body() -> None:
        async for result in rye.batch("tools/where", calls(), project_path=project.path, jobs=2):
            assert result.outcome == "ok", result.error
            answers.append(result.data)

    asyncio.run(body())
    assert answers[0] is False
    assert True in answers


def test_a_torn_line_of_a_crash_is_dropped(tmp_path: Path) -> None:
    folder = BatchFolder(tmp_path)
    (tmp_path / "results.jsonl").write_bytes(
        b'{"line": 1, "id": "1", "outcome": "ok"}\n{"line": 2, "i'
    )
    (tmp_path / "journal").write_bytes(
        (1).to_bytes(8, "little") + (2).to_bytes(8, "little") + b"\3"
    )
    folder.open()
    folder.close()
    found = folder.progress(3)
    assert (found.started[0], found.ended[0]) == (0b110, 0b010)


def test_two_programs_cannot_run_the_same_batch(tmp_path: Path, cli: InProcessRye) -> None:
    folder = BatchFolder(tmp_path / "b")
    folder.create()
    folder.write_manifest(
        {"tool": "tools/once", "calls": 0, "space": "project", "closure": "", "options": {}}
    )
    folder.open()
    done = cli("batch", "resume", tmp_path / "b")
    folder.close()
    assert done.code == 1
    assert "another program runs the batch" in done.stderr


def test_the_order_of_the_input_holds_across_a_kill_and_a_resume(
    project: Project, cli: InProcessRye, tmp_path: Path
) -> None:
    folder, out = tmp_path / "b", project.path / "out.jsonl"
    write_calls(project, ({"n": n, "slow": 3} for n in range(1, 11)))
    written = folder / "results.jsonl"
    options = ("--jobs", "2", "--out", "out.jsonl", "--order", "input")
    with start(project, folder, *options) as process:
        wait_until(
            lambda: written.exists() and len(results(written)) == 9,
            "all but the slow call have ended",
            seconds=20,
        )
        # The slow call holds the others back.
        assert [one["line"] for one in results(out)] == [1, 2]
        process.kill()
    cli("batch", "resume", folder)
    assert [one["line"] for one in results(out)] == list(range(1, 11))
    shown = cli("batch", "show", folder).stdout.splitlines()
    assert [json.loads(one)["line"] for one in shown] == list(range(1, 11))


def test_a_resume_runs_the_tool_that_the_batch_began_with(
    project: Project, cli: InProcessRye, tmp_path: Path
) -> None:
    folder = tmp_path / "b"
    write_calls(project, [{"n": 13}, {"n": 14}])
    cli("batch", "tools/once", "calls.jsonl", "--dir", folder, "--max-failures", "1", "--jobs", "1")
    assert ran(project) == {"13": 1}
    project.command("tools/once", "/bin/echo", "another", config_schema=SCHEMA)
    resumed = cli("batch", "resume", folder)
    assert results(folder / "results.jsonl")[1]["data"]["stdout"] == "did 14\n", resumed.stderr
    assert (
        "tools/once has changed meanwhile; all calls ran the version that the batch began with"
        in resumed.stderr
    )


def test_a_call_that_the_schema_refuses_is_skipped_on_request(
    project: Project, cli: InProcessRye, tmp_path: Path
) -> None:
    write_calls(project, [{"n": 1}, {"id": "bad", "parameters": {"m": 2}}])
    done = cli("batch", "tools/once", "calls.jsonl", "--dir", tmp_path / "b", "--skip-bad")
    assert done.code == 0, done.stderr
    outcomes = {one["id"]: one["outcome"] for one in results(tmp_path / "b" / "results.jsonl")}
    assert outcomes == {"1": "ok", "bad": "skipped"}


def test_a_folder_with_files_of_the_user_is_left_alone(
    project: Project, cli: InProcessRye, tmp_path: Path
) -> None:
    calls = write_calls(project, [{"n": 1}])
    before = calls.read_text()
    done = cli("batch", "tools/once", "calls.jsonl", "--dir", ".")
    assert f"{project.path} is not empty; choose another --dir" in done.stderr
    assert calls.read_text() == before


def test_a_refused_batch_leaves_no_folder(
    project: Project, cli: InProcessRye, tmp_path: Path
) -> None:
    write_calls(project, [{"m": 1}])
    assert cli("batch", "tools/once", "calls.jsonl", "--dir", tmp_path / "b").code == 2
    assert not (tmp_path / "b").exists()


def test_nothing_is_written_after_a_fault_of_the_disk(tmp_path: Path) -> None:
    folder = BatchFolder(tmp_path)
    folder.open()
    os.close(folder._journal)
    folder._journal = os.open("/dev/full", os.O_WRONLY)
    message = f"cannot write to {tmp_path}: no space left on device"
    with pytest.raises(BatchError, match=message):
        asyncio.run(folder.starting(1))
    with pytest.raises(BatchError, match=message):
        folder.ended(BatchResult(1, "1", "ok", None, None, 1, 0.0, None))
    folder.close()
    assert (tmp_path / "results.jsonl").read_bytes() == b""
