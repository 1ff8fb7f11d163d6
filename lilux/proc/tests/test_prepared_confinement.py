"""A confined prepared process: its copies have its confinement, and each its own private folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import prepared_program
import psutil
import pytest
from confined_jobs import PYTHON, SYSTEM_PATH, ConfinedJobs, confined_jobs, users
from proc_client import Answer
from processes import wait_until


class Prepared:
    """A prepared process that may write the project."""

    def __init__(self, jobs: ConfinedJobs, **limits: int) -> None:
        self.client = jobs.client
        self.project = jobs.project
        program = jobs.folder / "prepared_program.py"
        shutil.copy(prepared_program.__file__, program)
        self.fields: dict[str, Any] = {
            "confinement": jobs.confinement(read=[str(program)], tmp=["TMPDIR"], limits=limits),
            "cwd": str(jobs.project),
            "env": {"PATH": SYSTEM_PATH},
            "env_mode": "exact",
        }
        options = {"stream": True, "timeout": None, "start": "prepare", **self.fields}
        args = ["-I", "-S", str(program)]
        self.id = self.client.send("exec", command=PYTHON, args=args, **options)
        answer = self.client.receive()
        assert answer.kind == "stdout", (answer.header, answer.payload)
        self.process = psutil.Process(int(bytes(answer.payload).split()[1]))

    def send(self, code: str) -> int:
        start = {"prepared": self.id}
        return self.client.send("exec", command="tool", args=[code], start=start, **self.fields)

    def call(self, code: str) -> Answer:
        self.send(code)
        return self.client.receive()

    def error_of(self, statement: str) -> str:
        """The name of the errno of a statement in a call."""
        code = f"try: {statement}\nexcept OSError as error: print(type(error).__name__)"
        answer = self.call(code)
        assert answer.header["success"], answer.stderr
        return answer.stdout.decode().strip()


@pytest.fixture(params=users())
def jobs(request: pytest.FixtureRequest) -> Iterator[ConfinedJobs]:
    """The jobs of root and of an ordinary user."""
    with confined_jobs(request.param) as jobs:
        yield jobs


def test_a_call_may_not_touch_more_than_the_prepared_process(jobs: ConfinedJobs) -> None:
    prepared = Prepared(jobs)
    assert prepared.error_of(f"open({str(jobs.secret)!r})") == "PermissionError"
    assert prepared.error_of("socket.socket()") == "PermissionError"
    answer = prepared.call("open('made', 'w').write('x'); print(os.path.getsize('made'))")
    assert answer.header["success"], answer.stderr
    assert (jobs.project / "made").exists()
    assert set(answer.header["confinement"]["enforced"]) >= {"fs", "syscalls", "signals"}


def test_each_call_has_its_own_private_folder(jobs: ConfinedJobs) -> None:
    prepared = Prepared(jobs)
    go = jobs.project / "go"
    wait = f"import time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)"
    used = "open(os.environ['TMPDIR'] + '/file', 'w').write('data')"
    note = jobs.project / "note"
    running = prepared.send(f"{used}; open({str(note)!r}, 'w').write(os.environ['TMPDIR'])\n{wait}")
    wait_until(lambda: note.exists() and note.read_text(), "the call runs")
    first = Path(note.read_text())
    assert first.is_relative_to(jobs.folder / "tmp")
    for attack in (
        f"open({str(first / 'file')!r}).read()",
        f"os.listdir({str(first)!r})",
        f"os.listdir({str(first.parent.parent)!r})",
        f"open({str(first / 'other')!r}, 'w')",
    ):
        assert prepared.error_of(attack) == "PermissionError"
    second = prepared.call("print(os.environ['TMPDIR'], os.listdir(os.environ['TMPDIR']))")
    assert second.stdout.decode().split(maxsplit=1)[1] == "[]\n"
    assert second.stdout.decode().split()[0] != str(first)
    prepared.process.kill()
    assert prepared.client.receive().id == prepared.id
    assert (first / "file").exists()
    go.touch()
    assert prepared.client.receive().id == running
    wait_until(lambda: not first.parent.exists(), "the folder of the call is removed")


def test_the_limits_of_a_call_count_from_its_start(jobs: ConfinedJobs) -> None:
    jobs.needs("processes")
    prepared = Prepared(jobs, processes=2)
    one = "import subprocess; subprocess.run(['sleep', '0.2'])"
    assert prepared.call(one).header["success"]
    many = "import subprocess\nfor _ in range(4): subprocess.Popen(['sleep', '60'])\nos.wait()"
    answer = prepared.call(many)
    assert answer.header["limit"] == "processes"
    assert psutil.pid_exists(prepared.process.pid)


def test_a_path_that_was_replaced_needs_another_prepared_process(jobs: ConfinedJobs) -> None:
    prepared = Prepared(jobs)
    jobs.project.rename(jobs.folder / "moved")
    jobs.project.mkdir()
    os.chown(jobs.project, jobs.uid, -1)
    refused = prepared.call("print(1)")
    assert refused.header["error"] == "not_prepared"
    assert refused.header["message"] == (
        "a path of the confinement has changed since the process was prepared; prepare it again"
    )


def test_a_prepared_process_is_started_by_the_thread_that_reaps_its_copies(
    jobs: ConfinedJobs,
) -> None:
    first = Prepared(jobs)
    for _ in range(4):
        # Then a carrier starts the jobs of this profile, unless they enter a user namespace.
        assert jobs.client.exec("/bin/true", **first.fields).header["success"]
    prepared = Prepared(jobs)
    helper = prepared.process.parent()
    assert helper is not None
    tasks = [*Path(f"/proc/{helper.pid}/task").iterdir()]
    pid = str(prepared.process.pid)
    found = [one for one in tasks if pid in (one / "children").read_text().split()]
    assert [(one / "comm").read_text() for one in found] != ["carrier\n"]
    assert len(found) == 1
