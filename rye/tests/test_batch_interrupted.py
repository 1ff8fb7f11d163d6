"""A batch that is interrupted: calls under way end, and what is in doubt is said."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from pathlib import Path

import psutil
import pytest
from processes import assert_ended, pid_in, wait_until
from rye.batches import driver as driver_module
from rye.batches.backends.local import LocalBackend
from rye.batches.driver import Driver, Options, Summary
from rye.batches.folder import BatchFolder
from rye.batches.plan import create, remaining, state_of
from rye_command import COMMAND, InProcessRye, default_signals, environment
from rye_project import Project

STOPPING = "rye: interrupted; calls under way may finish for 10 s; press Ctrl-C to end them now\n"
# Waits only the first time, with a process of its own.
WAITS = """cd "$2"; echo "$1" >> ran
[ -e pid ] || { sleep 600 & echo $! > pid.new; mv pid.new pid; wait; }"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path, shipped_system=True)
    project.command("tools/waits", "/bin/sh", "-c", WAITS, "sh", "{n}", "{place}")
    calls = ({"n": n, "place": str(tmp_path)} for n in (1, 2, 3))
    (project.path / "calls.jsonl").write_text("".join(json.dumps(one) + "\n" for one in calls))
    return project


@pytest.fixture
def cli(
    project: Project, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> InProcessRye:
    return InProcessRye(project.path, project.user, monkeypatch, capfd)


def ran(place: Path) -> list[str]:
    return (place / "ran").read_text().split()


def outcomes(folder: Path) -> dict[int, str]:
    lines = (folder / "results.jsonl").read_text().splitlines()
    found = [json.loads(one) for one in lines]
    assert len({one["line"] for one in found}) == len(found), "two lines for one call"
    return {one["line"]: one["outcome"] for one in found}


def start(
    project: Project, folder: Path, calls: str = "calls.jsonl", stdin: int = subprocess.DEVNULL
) -> subprocess.Popen[str]:
    with default_signals():
        return subprocess.Popen(
            [*COMMAND, "batch", "tools/waits", calls, "--dir", folder, "--jobs", "1"],
            cwd=project.path,
            env=environment(project.user),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def test_the_second_interrupt_ends_running_calls_and_says_what_is_in_doubt(
    project: Project, cli: InProcessRye, tmp_path: Path
) -> None:
    folder = tmp_path / "b"
    go_on = f"rye batch resume {folder}"
    with start(project, folder) as process:
        assert process.stderr is not None
        sleeper = pid_in(tmp_path / "pid")
        assert (
            "1 started and have no result: running now\n" in cli("batch", "status", folder).stdout
        )
        assert process.stderr.readline() == f"batch {folder}\n"
        process.send_signal(signal.SIGINT)
        assert process.stderr.readline() == STOPPING
        assert psutil.pid_exists(sleeper.pid)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert output == "0 of 3 calls have a result (nothing ran)\n"
    assert errors == (
        f"rye: 1 call was ended before a result was known\nrye: interrupted; go on with: {go_on}\n"
    )
    assert_ended({"sleep": sleeper})
    assert cli("batch", "status", folder).stdout == (
        "tools/waits: 0 of 3 calls have a result\n"
        "  1 started and have no result: interrupted; each may or may not have run\n"
        f"go on with: {go_on}\n"
    )
    resumed = cli("batch", "resume", folder)
    assert resumed.code == 1
    assert resumed.stderr == (
        f"rye: 1 call may or may not have run; to run them again: {go_on} --rerun-unknown\n"
    )
    assert outcomes(folder) == {1: "unknown", 2: "ok", 3: "ok"}
    assert ran(tmp_path) == ["1", "2", "3"]


def test_unknown_calls_run_again_on_request_and_keep_one_line(
    project: Project, cli: InProcessRye, tmp_path: Path
) -> None:
    folder = tmp_path / "b"
    with start(project, folder) as process:
        pid_in(tmp_path / "pid")
        process.kill()
    assert cli("batch", "resume", folder).code == 1
    assert outcomes(folder) == {1: "unknown", 2: "ok", 3: "ok"}
    again = cli("batch", "resume", folder, "--rerun-unknown")
    assert (again.code, again.stderr) == (0, "")
    assert again.stdout.startswith("3 of 3 calls have a result (3 ok)\n")
    assert outcomes(folder) == {1: "ok", 2: "ok", 3: "ok"}
    assert ran(tmp_path) == ["1", "2", "3", "1"]


def test_an_interrupt_while_calls_are_read_ends_at_once_and_leaves_nothing(
    project: Project, tmp_path: Path
) -> None:
    folder = tmp_path / "b"
    # The input is open, so the command reads until it is interrupted.
    with start(project, folder, "-", stdin=subprocess.PIPE) as process:
        wait_until((folder / "calls.jsonl").exists, "calls are read", seconds=60)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr is not None
        assert process.stderr.read() == "rye: interrupted\n"
    assert not folder.exists()


def test_calls_that_outlast_the_grace_are_ended(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert driver_module.GRACE_SECONDS == 10
    monkeypatch.setattr(driver_module, "GRACE_SECONDS", 0.01)
    folder = BatchFolder(tmp_path / "b")
    calls = (project.path / "calls.jsonl").read_bytes().splitlines()

    async def body() -> Summary:
        backend = LocalBackend("tools/waits", project.context, jobs=1)
        try:
            await backend.open()
            assert backend.verified is not None
            create(folder, calls, backend.verified, {}, skip_bad=False)
            folder.open()
            left = remaining(folder, folder.progress(3), rerun_unknown=False)
            driver = Driver(backend, left, folder, Summary(3), Options())
            running = asyncio.create_task(driver.run())
            sleeper = await asyncio.to_thread(pid_in, tmp_path / "pid")
            driver.stop("interrupted")
            summary = await running
            assert_ended({"sleep": sleeper})
            return summary
        finally:
            folder.close()
            await backend.close()

    summary = asyncio.run(body())
    assert (summary.done, summary.cut_off, summary.stopped) == (0, 1, "interrupted")
    assert state_of(folder).in_doubt == 1


def test_an_interrupt_that_nothing_handles_still_says_how_to_go_on(
    project: Project, cli: InProcessRye, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def third_interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    folder = tmp_path / "b"
    monkeypatch.setattr("rye.batches.running.run_folder", third_interrupt)
    done = cli("batch", "tools/waits", "calls.jsonl", "--dir", folder)
    assert done.code == 130
    assert done.stderr.endswith(f"rye: interrupted; go on with: rye batch resume {folder}\n")
