"""The thread that starts the jobs of a profile from the third one on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from confined_jobs import PYTHON, ConfinedJobs, confined_jobs, users
from processes import wait_until

STATUS = """
import json, os
lines = [line.split(":", 1) for line in open("/proc/self/status")]
wanted = ("Seccomp", "NoNewPrivs", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "SigBlk")
found = {name: value.strip() for name, value in lines if name in (*wanted, "Seccomp_filters")}
found |= {kind: os.readlink(f"/proc/self/ns/{kind}") for kind in ("mnt", "net", "user", "pid")}
print(json.dumps({**found, "cwd": os.getcwd(), "mask": os.umask(0)}, sort_keys=True))
"""


@pytest.fixture(params=users())
def jobs(request: pytest.FixtureRequest) -> Iterator[ConfinedJobs]:
    """The jobs of root and of an ordinary user."""
    with confined_jobs(request.param) as jobs:
        yield jobs


def carriers(jobs: ConfinedJobs) -> list[int]:
    """Return the ids of the carriers of the helper."""
    helper = psutil.Process(jobs.client.process.pid)
    return [
        int(task.name)
        for process in (helper, *helper.children(recursive=True))
        for task in Path(f"/proc/{process.pid}/task").iterdir()
        if (task / "comm").read_text() == "carrier\n"
    ]


def test_every_job_of_a_profile_is_confined_like_the_first(jobs: ConfinedJobs) -> None:
    confinement = jobs.confinement(read=["/proc"])
    statuses = [jobs.python(STATUS, confinement=confinement) for _ in range(6)]
    first = json.loads(statuses[0])
    assert (first["Seccomp"], first["NoNewPrivs"]) == ("2", "1")
    assert first["cwd"] == str(jobs.project)
    assert {*statuses[1:]} == {statuses[0]}
    unconfined = jobs.client.exec(PYTHON, "-I", "-S", "-c", STATUS)
    assert json.loads(unconfined.stdout)["Seccomp"] == "0"


def test_a_job_reaches_neither_the_thread_that_started_it_nor_the_helper(
    jobs: ConfinedJobs,
) -> None:
    confinement = jobs.confinement(read=["/proc"])
    for _ in range(4):
        jobs.run("true", confinement=confinement)
    found = carriers(jobs)
    if not found:
        pytest.skip("not tried: the jobs of this user enter a user namespace")
    for attack in (
        "os.kill(int(a[0]), 9)",
        "call(200, int(a[0]), 9)",  # tkill on x86_64; no such call on aarch64
        "open(f'/proc/{a[0]}/mem', 'rb')",
        "open(f'/proc/{a[0]}/environ', 'rb')",
        "os.readlink(f'/proc/{a[0]}/cwd')",
    ):
        error = jobs.error_of(attack, found[0], confinement=confinement)
        assert error in ("EPERM", "EACCES", "EINVAL", "ENOSYS"), attack
    assert carriers(jobs) == found


def test_starts_of_one_profile_at_once_are_all_confined(jobs: ConfinedJobs) -> None:
    confinement = jobs.confinement(read=["/proc"])
    fields: dict[str, Any] = {"confinement": confinement, "cwd": str(jobs.project)}
    started = [
        jobs.client.send("exec", command=PYTHON, args=["-I", "-S", "-c", STATUS], **fields)
        for _ in range(24)
    ]
    answers = [jobs.client.receive() for _ in started]
    assert {answer.id for answer in answers} == {*started}
    assert all(answer.header["success"] for answer in answers), [one.stderr for one in answers]
    assert len({bytes(answer.stdout) for answer in answers}) == 1
    assert json.loads(answers[0].stdout)["Seccomp"] == "2"


def test_a_job_outlives_its_profile(jobs: ConfinedJobs) -> None:
    begun, end = jobs.project / "begun", jobs.project / "end"
    folder = jobs.make_folder("changing")
    confinement = jobs.confinement(write=[str(folder)])
    for _ in range(4):
        jobs.run("true", confinement=confinement)
    waiting = f"echo > {begun}; until test -e {end}; do sleep 0.05; done; echo ended"
    fields: dict[str, Any] = {"confinement": confinement, "cwd": str(jobs.project)}
    long = jobs.client.send("exec", command="/bin/sh", args=["-c", waiting], **fields)
    wait_until(begun.exists, "the long job has begun")
    # Another folder of the same name: the profile is compiled again.
    folder.rename(jobs.folder / "moved")
    jobs.make_folder("changing")
    for _ in range(4):
        short = jobs.client.send("exec", command="/bin/true", args=[], **fields)
        answer = jobs.client.receive()
        assert (answer.id, answer.header["success"]) == (short, True), answer.stderr
    end.touch()
    answer = jobs.client.receive()
    assert (answer.id, bytes(answer.stdout)) == (long, b"ended\n"), (answer.header, answer.stderr)
