"""Keeper, guardian and worker look after each other, whoever of them is stopped or killed."""

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
from proc_client import ProcClient, find_binary
from processes import Tree, assert_gone, lineage, wait_until

NAMES = ("keeper", "guardian", "worker")
NOBODY = 65534


def family(client: ProcClient) -> dict[str, psutil.Process]:
    return dict(zip(NAMES, lineage(client.process.pid), strict=True))


@pytest.mark.parametrize("stopped", [["guardian"], ["worker"], ["guardian", "worker"]])
def test_death_of_the_keeper_ends_the_whole_tree_though_another_is_stopped(
    linux: ProcClient, tree: Tree, stopped: list[str]
) -> None:
    linux.send("exec", command="sh", args=["-c", tree.script()])
    processes = tree.processes()
    own = family(linux)
    for name in stopped:
        own[name].suspend()
    own["keeper"].kill()
    assert_gone({**processes, **own})


def test_a_guardian_that_goes_on_after_a_stop_lets_its_worker_live(linux: ProcClient) -> None:
    linux.exec("true")
    guardian = family(linux)["guardian"]
    guardian.suspend()
    guardian.resume()
    wait_until(lambda: guardian.status() == psutil.STATUS_SLEEPING, "the guardian waits again")
    assert linux.exec("echo", "still here").stdout == b"still here\n"


def test_all_three_killed_in_one_instant_take_the_process_of_the_job_along(
    linux: ProcClient, tree: Tree
) -> None:
    linux.send("exec", command="sh", args=["-c", tree.script()])
    processes = tree.processes()
    own = family(linux).values()
    # Stopped first, so that none can act on the end of another.
    for process in own:
        process.suspend()
    for process in own:
        process.send_signal(signal.SIGKILL)
    assert_gone({"root": processes.pop("root")})
    # Of the others, nobody is left who would know.
    for process in processes.values():
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def test_nobody_but_root_may_look_into_the_memory_of_the_helper(tmp_path: Path) -> None:
    """What may not be looked into leaves no core dump either, and belongs to root in /proc."""
    binary = Path(find_binary())
    as_another: list[str] = []
    if os.geteuid() == 0:
        # Everything belongs to root then, so somebody else has to be asked.
        binary = Path(shutil.copy(binary, tmp_path / "lilux-proc"))
        for folder in [tmp_path, *tmp_path.parents]:
            if folder.is_relative_to("/tmp/") and folder != Path("/tmp"):
                folder.chmod(0o755)
        as_another = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    with subprocess.Popen([*as_another, binary, "serve"], stdin=subprocess.PIPE) as helper:
        try:
            wait_until(lambda: len(lineage(helper.pid)) == len(NAMES), "the helper is up")
            for process in lineage(helper.pid):
                assert process.uids().effective == (NOBODY if as_another else os.geteuid())
                owners = {
                    name: Path(f"/proc/{process.pid}/{name}").stat().st_uid
                    for name in ("environ", "mem", "fd")
                }
                assert owners == {"environ": 0, "mem": 0, "fd": 0}
        finally:
            assert helper.stdin
            helper.stdin.close()


def test_a_job_may_be_looked_into_as_any_process_of_its_user(linux: ProcClient) -> None:
    # A debugger, or a crash reporter, of the tool itself goes on working.
    asked = "import ctypes; print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"  # PR_GET_DUMPABLE
    assert linux.exec(sys.executable, "-c", asked).stdout == b"1\n"
