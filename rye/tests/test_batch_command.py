"""What `rye batch` accepts, reports and returns."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from batches import SCHEMA, once_project, parent_of, ran, results, start, tool, write_calls
from processes import wait_until
from rye_command import COMMAND, InProcessRye, environment
from rye_project import Project

import rye


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return once_project(tmp_path)


@pytest.fixture
def cli(
    project: Project, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> InProcessRye:
    return InProcessRye(project.path, project.user, monkeypatch, capfd)


def test_a_skipped_line_says_why(project: Project, cli: InProcessRye, tmp_path: Path) -> None:
    write_calls(project, [{"id": "x", "parameters": {"n": "one"}}, [2], {"n": 3}])
    cli("batch", "tools/once", "calls.jsonl", "--dir", tmp_path / "b", "--skip-bad")
    errors = {one["id"]: one.get("error") for one in results(tmp_path / "b" / "results.jsonl")}
    assert errors == {
        "x": "the line cannot be used: parameters.n: expected integer, got string",
        "2": "the line cannot be used: not an object",
        "3": None,
    }


def test_a_pattern_that_matches_nothing_is_refused(
    project: Project, cli: InProcessRye, tmp_path: Path
) -> None:
    done = cli("batch", "tools/once", "--each", "n=*.nothing", "--dir", tmp_path / "b")
    assert done.code == 2
    assert "invalid --each 'n=*.nothing': no file matches" in done.stderr
    assert not (tmp_path / "b").exists()


def test_a_change_of_the_tool_is_reported_at_once_and_at_the_end(
    project: Project, tmp_path: Path
) -> None:
    write_calls(project, [{"n": 1}, {"n": 2, "slow": 2}, {"n": 3}])
    log = tmp_path / "log"
    with log.open("wb") as stderr:
        process = start(project, tmp_path / "b", "--jobs", "1", stderr=stderr)
    with process:
        wait_until(lambda: "2" in ran(project), "the slow call has begun", seconds=60)
        project.command("tools/once", "/bin/echo", "another", config_schema=SCHEMA)
        at_once = "rye: the tool has changed; the batch goes on with the version that it began with"
        wait_until(lambda: at_once in log.read_text(), "the change is reported", seconds=15)
        assert process.poll() is None
        assert "3" not in ran(project)
        os.kill(int((project.path / "ran" / "2").read_text()), signal.SIGKILL)
        assert process.wait(60) == 1
    assert ran(project) == {"1": 1, "2": 1, "3": 1}
    assert log.read_text().endswith(
        "rye: tools/once has changed meanwhile; all calls ran the version that the batch began "
        "with\n"
    )


@pytest.mark.parametrize(
    ("given", "code"),
    [(("tools/none", "calls.jsonl"), 3), (("tools/once", "none.jsonl"), 2), (("tools/once",), 2)],
)
def test_a_batch_that_cannot_start_ends_with_the_codes_of_run(
    project: Project, cli: InProcessRye, tmp_path: Path, given: tuple[str, ...], code: int
) -> None:
    write_calls(project, [{"n": 1}])
    assert cli("batch", *given, "--dir", tmp_path / "b").code == code
    assert not (tmp_path / "b").exists()


def test_a_tool_that_is_not_trusted_or_not_as_pinned_does_not_start(
    project: Project, cli: InProcessRye, tmp_path: Path
) -> None:
    write_calls(project, [{"n": 1}])
    assert cli("run", "tools/once", "n=7").code == 0
    tool(project, version="2.0.0")
    batch = ("batch", "tools/once", "calls.jsonl", "--dir", tmp_path / "b")
    assert cli(*batch).code == 5
    project.lockfile("tools/once").unlink()
    path = project.path / ".ai" / "tools" / "tools" / "once.yaml"
    path.write_text(path.read_text() + "# changed\n")
    assert cli(*batch).code == 4
    assert ran(project) == {"7": 1}


def test_the_folder_is_the_first_line_for_programs(
    project: Project, cli: InProcessRye, tmp_path: Path
) -> None:
    write_calls(project, [{"n": 1}, {"n": 13}])
    done = cli("batch", "tools/once", "calls.jsonl", "--dir", tmp_path / "b", "--json")
    first, *_, last = map(json.loads, done.stdout.splitlines())
    assert first == {"dir": str(tmp_path / "b")}
    assert (last["summary"], last["outcomes"]) == (True, {"ok": 1, "failed": 1})


def test_one_wait_for_the_disk_precedes_every_start(
    project: Project, cli: InProcessRye, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    real = os.fdatasync

    def fdatasync(descriptor: int) -> None:
        real(descriptor)
        if Path(f"/proc/self/fd/{descriptor}").readlink().name == "journal":
            synced.append(os.fstat(descriptor).st_size // 8)

    monkeypatch.setattr(os, "fdatasync", fdatasync)
    write_calls(project, ({"n": n} for n in range(20, 32)))
    done = cli("batch", "tools/once", "calls.jsonl", "--dir", tmp_path / "b", "--sync")
    assert done.code == 0, done.stderr
    assert synced[-1] == 12
    assert len(synced) <= 13


def test_a_call_whose_helper_dies_is_unknown_for_a_program(project: Project) -> None:
    async def body() -> list[rye.BatchResult]:
        calls = [{"n": 1, "slow": 1}]
        running = aiter(rye.batch("tools/once", calls, project_path=project.path))
        following = asyncio.ensure_future(anext(running))
        while not ran(project):
            await asyncio.sleep(0.05)
        parent = int((project.path / "ran" / "1").read_text())
        while (above := parent_of(parent)) != os.getpid():
            parent = above
        os.kill(parent, signal.SIGKILL)
        return [await following, *[one async for one in running]]

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("USER_SPACE", str(project.user))
        (result,) = asyncio.run(body())
    assert (result.outcome, result.error) == (
        "unknown",
        "the worker died; the call may or may not have run",
    )


def test_without_ray_it_says_how_to_install_it(
    project: Project, cli: InProcessRye, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    write_calls(project, [{"n": 1}])
    done = cli("batch", "tools/once", "calls.jsonl", "--on", "ray")
    assert (done.code, done.stderr) == (1, "rye: ray is not installed; pip install 'rye[ray]'\n")
    assert not (project.user / ".ai" / "batches").exists()


@pytest.mark.parametrize("option", [("--env", "TOKEN"), ("--insecure",)])
def test_options_of_a_cluster_are_refused_for_this_machine(
    project: Project, cli: InProcessRye, option: tuple[str, ...]
) -> None:
    write_calls(project, [{"n": 1}])
    done = cli("batch", "tools/once", "calls.jsonl", *option)
    assert done.code == 2
    assert f"{option[0]} is for --on ray" in done.stderr


def test_the_calls_may_come_from_stdin_while_an_old_copy_exists(
    project: Project, cli: InProcessRye, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (project.path / "out.jsonl").touch()
    calls = write_calls(project, [{"n": 1}])
    with calls.open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        done = cli("batch", "tools/once", "-", "--out", "out.jsonl", "--dir", tmp_path / "b")
    assert done.code == 0, done.stderr
    assert [one["outcome"] for one in results(project.path / "out.jsonl")] == ["ok"]


def test_a_pattern_in_a_subfolder_names_the_files_as_the_tool_finds_them(
    project: Project, cli: InProcessRye, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (project.path / "sub").mkdir()
    (project.path / "sub" / "a.txt").write_text("in a subfolder")
    monkeypatch.setattr(Path, "cwd", lambda: project.path / "sub")
    options = ("--dir", tmp_path / "b", "--jobs", "1")
    done = cli("batch", "rye/fs/read", "--each", "path=../sub/*.txt", *options)
    assert done.code == 0, done.stderr
    assert "in a subfolder" in results(tmp_path / "b" / "results.jsonl")[0]["data"]["content"]


def test_a_pattern_that_is_not_one_is_refused(cli: InProcessRye, tmp_path: Path) -> None:
    done = cli("batch", "tools/once", "--each", "n=**x", "--dir", tmp_path / "b")
    assert (done.code, "Traceback" in done.stderr) == (2, False)


def test_an_id_that_cannot_be_written_is_refused(
    project: Project, cli: InProcessRye, tmp_path: Path
) -> None:
    write_calls(project, [{"id": "\ud800", "parameters": {"n": 1}}])
    done = cli("batch", "tools/once", "calls.jsonl", "--dir", tmp_path / "b")
    assert (done.code, done.stderr) == (
        2,
        (
            "rye: 1 of 1 calls cannot be used: line 1: the id has half of a pair of surrogates; "
            "correct them, or leave them out with --skip-bad\n"
        ),
    )


@pytest.mark.parametrize("jobs", [0, -1])
def test_a_program_cannot_ask_for_no_calls_at_once(project: Project, jobs: int) -> None:
    async def body() -> None:
        async for _ in rye.batch("tools/once", [{"n": 1}], project_path=project.path, jobs=jobs):
            pass

    with pytest.raises(rye.ParameterError, match=f"invalid jobs: {jobs} is not a number of calls"):
        asyncio.run(body())


def test_a_copy_that_no_resume_could_write_is_refused_before_anything_runs(
    project: Project, cli: InProcessRye, tmp_path: Path
) -> None:
    write_calls(project, [{"n": 1}])
    for out in (tmp_path, tmp_path / "none" / "out.jsonl"):
        done = cli("batch", "tools/once", "calls.jsonl", "--dir", tmp_path / "b", "--out", out)
        assert done.code == 2
        assert "--out is not a file in an existing folder; choose another" in done.stderr
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize("timeout", ["0", "-1", "nan", "inf", "1e9"])
def test_a_time_limit_that_every_call_would_refuse_is_refused_once(
    project: Project, cli: InProcessRye, tmp_path: Path, timeout: str
) -> None:
    write_calls(project, [{"n": 1}])
    done = cli("batch", "tools/once", "calls.jsonl", "--dir", tmp_path / "b", "--timeout", timeout)
    assert done.code == 2
    assert "--timeout is not above 0 and at most 31622400" in done.stderr
    assert not (tmp_path / "b").exists()


def test_an_id_cannot_add_lines_to_the_summary(
    project: Project, cli: InProcessRye, tmp_path: Path
) -> None:
    own = "a\n9 of 9 calls have a result" + "x" * 100
    write_calls(project, [{"id": own, "parameters": {"n": 1}}])
    done = cli("batch", "tools/once", "calls.jsonl", "--dir", tmp_path / "b")
    assert re.fullmatch(
        r"1 of 1 calls have a result \(1 ok\)\n"
        r"slowest: a 9 of 9 calls have a resultx{52}… \d+\.\d\d s\n",
        done.stdout,
    )


def test_more_calls_at_once_than_open_files_allow_are_refused_before_anything_runs(
    project: Project, tmp_path: Path
) -> None:
    write_calls(project, ({"n": n} for n in range(100, 140)))
    limited = ["/bin/sh", "-c", 'ulimit -n 496 && exec "$@"', "sh"]

    def batch(name: str, jobs: int) -> subprocess.CompletedProcess[str]:
        command = ["batch", "tools/once", "calls.jsonl", "--dir", str(tmp_path / name)]
        return subprocess.run(
            [*limited, *COMMAND, *command, "--jobs", str(jobs)],
            cwd=project.path,
            env=environment(project.user),
            capture_output=True,
            text=True,
            check=False,
        )

    done = batch("a", 21)
    assert (done.returncode, done.stderr) == (
        2,
        (
            "rye: invalid number of jobs: 21 calls at once need more open files than the limit of "
            "this process; use at most 20, or raise the hard limit (ulimit -Hn)\n"
        ),
    )
    assert ran(project) == {}
    assert batch("b", 20).returncode == 0
    assert len(ran(project)) == 40
