"""Limits of a confined job, over everything that it starts."""

from __future__ import annotations

from collections.abc import Iterator

import psutil
import pytest
from confined_jobs import PYTHON, ConfinedJobs, confined_jobs, users

MIB = 1024 * 1024


@pytest.fixture(params=users())
def jobs(request: pytest.FixtureRequest) -> Iterator[ConfinedJobs]:
    """The jobs of root and of an ordinary user."""
    with confined_jobs(request.param) as jobs:
        yield jobs


def test_a_fork_bomb_is_ended_and_reported(jobs: ConfinedJobs) -> None:
    # At most 512 processes, in case the limit does not work.
    bomb = "import os, time\nfor _ in range(9): os.fork(); time.sleep(0.05)\ntime.sleep(600)"
    confinement = jobs.confinement(limits={"processes": 20})
    answer = jobs.run(PYTHON, "-c", bomb, confinement=confinement)
    assert answer.header["limit"] == "processes"
    assert answer.stderr.decode().endswith("Command ended: it used more than 20 processes")
    assert (answer.header["success"], answer.header["return_code"]) == (False, -1)
    assert answer.header["confinement"]["enforced"]["processes"] == "watched"
    assert answer.header["tree"]["survivors"] == []


def test_processes_that_left_the_group_count_and_are_ended(jobs: ConfinedJobs) -> None:
    script = "for i in 1 2 3 4 5 6; do setsid sleep 600 & done; sleep 600"
    confinement = jobs.confinement(limits={"processes": 5})
    answer = jobs.run("sh", "-c", script, confinement=confinement)
    assert answer.header["limit"] == "processes"
    assert answer.header["tree"]["known_by"] == "subreaper"
    left = [p for p in psutil.process_iter() if str(jobs.project) == _folder_of(p)]
    assert left == []


def test_a_job_cannot_let_its_orphans_out_of_its_limits(jobs: ConfinedJobs) -> None:
    # The child of a job that no longer adopts orphans would belong to the helper.
    code = """if True:
        import ctypes, errno, os, time
        libc = ctypes.CDLL(None, use_errno=True)
        set_subreaper = 36
        assert libc.prctl(set_subreaper, 1, 0, 0, 0) == 0
        assert libc.prctl(set_subreaper, 0, 0, 0, 0) == -1
        print(errno.errorcode[ctypes.get_errno()], flush=True)
        for _ in range(6):
            if os.fork() == 0:
                if os.fork() == 0: os.setsid(); time.sleep(600)
                os._exit(0)
            os.wait()
        time.sleep(600)
    """
    confinement = jobs.confinement(limits={"processes": 5})
    answer = jobs.run(PYTHON, "-c", code, confinement=confinement)
    assert answer.stdout == b"EPERM\n", answer.stderr
    assert answer.header["limit"] == "processes"


def _folder_of(process: psutil.Process) -> str:
    try:
        return str(process.cwd())
    except psutil.Error:
        return ""


def test_memory_of_the_whole_tree_is_limited(jobs: ConfinedJobs) -> None:
    # Each process stays below the limit, all of them together do not.
    code = """if True:
        import os, time
        for _ in range(4):
            if os.fork() == 0:
                kept = bytearray(40 * 1024 * 1024)
                for at in range(0, len(kept), 4096): kept[at] = 1
                time.sleep(600)
        time.sleep(600)
    """
    confinement = jobs.confinement(limits={"memory": 100 * MIB})
    answer = jobs.run(PYTHON, "-c", code, confinement=confinement)
    assert answer.header["limit"] == "memory"
    assert answer.stderr.decode().endswith(f"it used more than {100 * MIB} bytes of memory")


def test_memory_that_processes_share_counts_once(jobs: ConfinedJobs) -> None:
    code = """if True:
        import os, time
        kept = bytearray(60 * 1024 * 1024)
        for at in range(0, len(kept), 4096): kept[at] = 1
        children = [os.fork() for _ in range(3)]
        time.sleep(0.3)
        if all(children):
            for child in children: os.waitpid(child, 0)
    """
    confinement = jobs.confinement(limits={"memory": 120 * MIB})
    answer = jobs.run(PYTHON, "-c", code, confinement=confinement)
    assert answer.header["success"], (answer.header, answer.stderr)


def test_one_process_cannot_outrun_the_measurement(jobs: ConfinedJobs) -> None:
    confinement = jobs.confinement(limits={"memory": 64 * MIB})
    answer = jobs.run(PYTHON, "-c", "bytes(1 << 40)", confinement=confinement)
    assert b"MemoryError" in answer.stderr


def test_processor_time_of_the_whole_tree_is_limited(jobs: ConfinedJobs) -> None:
    script = "while :; do :; done & while :; do :; done & wait"
    confinement = jobs.confinement(limits={"cpu": 1})
    answer = jobs.run("sh", "-c", script, confinement=confinement, timeout=25)
    assert answer.header["limit"] == "cpu"
    assert answer.stderr.decode().endswith("it used more than 1 seconds of processor time")


def test_the_size_of_files_is_limited(jobs: ConfinedJobs) -> None:
    confinement = jobs.confinement(limits={"file_size": 1000})
    command = ("dd", "if=/dev/zero", "of=large", "bs=500", "count=3")
    answer = jobs.run(*command, confinement=confinement)
    assert answer.header["limit"] == "file_size"
    assert answer.stderr.decode().endswith("Command ended: it used more than 1000 bytes in a file")
    assert (jobs.project / "large").stat().st_size == 1000


def test_a_job_within_its_limits_is_not_ended(jobs: ConfinedJobs) -> None:
    limits = {"memory": 512 * MIB, "cpu": 60, "processes": 64, "file_size": MIB}
    answer = jobs.run("sleep", "0.2", confinement=jobs.confinement(limits=limits))
    assert answer.header["success"]
    assert "limit" not in answer.header
    enforced = answer.header["confinement"]["enforced"]
    assert {name: enforced[name] for name in limits} == {
        **dict.fromkeys(limits, "watched"),
        "file_size": "rlimit",
    }
