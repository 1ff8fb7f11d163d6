"""Keeper, guardian and worker end all jobs when one of them is stopped or killed."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from helper_faults import NAMES, keep_stopped
from proc_client import ProcClient, find_binary
from processes import (
    Tree,
    assert_ended,
    helper_processes,
    is_alive,
    pid_in,
    stop_process,
    wait_until,
)

NOBODY = 65534


def processes_by_name(client: ProcClient) -> dict[str, psutil.Process]:
    return dict(zip(NAMES, helper_processes(client.process.pid), strict=True))


@pytest.mark.parametrize("stopped", [["guardian"], ["worker"], ["guardian", "worker"]])
def test_death_of_the_keeper_ends_the_whole_tree_while_others_are_stopped(
    linux: ProcClient, tree: Tree, stopped: list[str]
) -> None:
    linux.send("exec", command="sh", args=["-c", tree.script()])
    processes = tree.processes()
    own = processes_by_name(linux)
    for name in stopped:
        own[name].suspend()
    own["keeper"].kill()
    assert_ended({**processes, **own})


@pytest.mark.parametrize("stopped", [["guardian"], ["worker"], ["guardian", "worker"]])
def test_a_stopped_guardian_or_worker_is_continued(linux: ProcClient, stopped: list[str]) -> None:
    linux.exec("true")
    own = processes_by_name(linux)
    for name in stopped:
        own[name].suspend()
    assert linux.exec("echo", "still here").stdout == b"still here\n"
    for name in stopped:
        wait_until(lambda: own[name].status() == psutil.STATUS_SLEEPING, f"the {name} waits again")  # noqa: B023 - called at once


@pytest.mark.parametrize("killed", ["keeper", "guardian"])
@pytest.mark.parametrize("detach", [False, True], ids=["", "after a detached start"])
def test_a_worker_that_is_stopped_again_and_again_is_killed_with_its_jobs(
    linux: ProcClient, tree: Tree, killed: str, detach: bool
) -> None:
    detached = [
        psutil.Process(linux.call("spawn", command="sleep", args=["600"]).header["pid"])
        for _ in range(detach)
    ]
    linux.send("exec", command="sh", args=["-c", tree.script()])
    processes = tree.processes()
    own = processes_by_name(linux)
    own[killed].kill()
    keep_stopped(own["worker"])
    assert_ended({**processes, **own})
    assert all(map(is_alive, detached))
    for process in detached:
        process.kill()


def test_a_stopped_keeper_ends_with_the_connection(linux: ProcClient, tree: Tree) -> None:
    linux.send("exec", command="sh", args=["-c", tree.script()])
    processes = tree.processes()
    own = processes_by_name(linux)
    own["keeper"].suspend()
    assert linux.close() == 0
    assert_ended({**processes, **own})


def test_orphans_of_a_detached_process_are_left_alone(linux: ProcClient, tmp_path: Path) -> None:
    script = f"(setsid sh -c 'echo $$ > {tmp_path}/pid; exec sleep 600' &)"
    linux.call("spawn", command="sh", args=["-c", script])
    orphan = pid_in(tmp_path / "pid")
    own = processes_by_name(linux)
    for name in ("guardian", "worker"):
        own[name].kill()
    assert_ended(own)
    assert is_alive(orphan)
    orphan.kill()


def test_the_process_of_a_job_is_killed_with_all_three(linux: ProcClient, tree: Tree) -> None:
    linux.send("exec", command="sh", args=["-c", tree.script()])
    processes = tree.processes()
    own = processes_by_name(linux).values()
    # Stopped first, and killed from the worker up, so that none can react to the death of another:
    # the death of the keeper would continue the guardian.
    for process in own:
        stop_process(process)
    for process in reversed(own):
        process.send_signal(signal.SIGKILL)
    assert_ended({"root": processes.pop("root")})
    # No process is left that knows of the others.
    for process in processes.values():
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def test_only_root_can_read_the_memory_of_the_helper(tmp_path: Path) -> None:
    """A process that is not dumpable belongs to root in /proc, and writes no core dump."""
    binary = Path(find_binary())
    as_other_user: list[str] = []
    if os.geteuid() == 0:
        # Files of root's processes belong to root anyway, so the helper runs as another user.
        binary = Path(shutil.copy(binary, tmp_path / "lilux-proc"))
        for folder in [tmp_path, *tmp_path.parents]:
            if folder.is_relative_to("/tmp/") and folder != Path("/tmp"):
                folder.chmod(0o755)
        as_other_user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    with subprocess.Popen([*as_other_user, binary, "serve"], stdin=subprocess.PIPE) as helper:
        try:
            wait_until(
                lambda: len(helper_processes(helper.pid)) == len(NAMES), "the helper is running"
            )
            for process in helper_processes(helper.pid):
                assert process.uids().effective == (NOBODY if as_other_user else os.geteuid())
                owners = {
                    name: Path(f"/proc/{process.pid}/{name}").stat().st_uid
                    for name in ("environ", "mem", "fd")
                }
                assert owners == {"environ": 0, "mem": 0, "fd": 0}
        finally:
            assert helper.stdin
            helper.stdin.close()


def test_a_job_is_dumpable(linux: ProcClient) -> None:
    # So that debuggers and crash reporters work.
    asked = "import ctypes; print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"  # PR_GET_DUMPABLE
    assert linux.exec(sys.executable, "-c", asked).stdout == b"1\n"
