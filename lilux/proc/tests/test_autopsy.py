"""Before a job is ended, the helper finds out what each of its processes waits for."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from proc_client import ProcClient
from processes import pid_in, wait_until

NOBODY = 65534
SECRET = "hunter2-xyzzy"
# More than the default budget, so that a busy machine does not decide a test.
PATIENT = {"autopsy": "always", "autopsy_budget": 10}


class Examined:
    """Runs jobs, ends each one when it waits, and returns what the helper saw."""

    def __init__(self, client: ProcClient, folder: Path, interpreter: str) -> None:
        self.client = client
        self.folder = folder
        self.interpreter = interpreter

    def shell(self, script: str, *, processes: int, busy: bool = False, **options: Any) -> Any:
        """Run a script that becomes this many processes; end it when all of them wait."""
        pid_file = self.folder / "pid"
        script = f"cd {self.folder}; echo $$ > {pid_file}; {script}"
        job = self.client.send("exec", command="sh", args=["-c", script], **{**PATIENT, **options})
        root = pid_in(pid_file)
        pid_file.unlink()
        wanted = {psutil.STATUS_RUNNING} if busy else {psutil.STATUS_SLEEPING}
        steady = 0

        def is_settled() -> bool:
            nonlocal steady
            try:
                states = [one.status() for one in [root, *root.children(recursive=True)]]
            except psutil.NoSuchProcess:
                states = []
            steady = steady + 1 if len(states) == processes and wanted >= set(states) else 0
            return steady > 40

        wait_until(is_settled, f"{processes} processes that wait")
        self.client.send("cancel", target=job)
        answers = {answer.id: answer for answer in (self.client.receive(), self.client.receive())}
        return answers[job].header["autopsy"]

    def python(self, code: str, *, processes: int = 1, **options: Any) -> Any:
        """Run Python code as the process of the job."""
        file = self.folder / "job.py"
        file.write_text(code)
        return self.shell(f"exec {self.interpreter} -I job.py", processes=processes, **options)


def _users() -> list[str]:
    return ["root", "ordinary user"] if os.geteuid() == 0 else ["ordinary user"]


def _other_user() -> int | None:
    return NOBODY if os.geteuid() == 0 else None


def _interpreter(user: int | None) -> str:
    """A Python that the user can run: that of the tests may be in the home of another one."""
    for python in (sys.executable, "/usr/bin/python3"):
        try:
            subprocess.run([python, "-I", "-c", ""], user=user, check=True, cwd="/")
        except (OSError, subprocess.CalledProcessError):
            continue
        return python
    pytest.skip("an ordinary user cannot run any Python here")


@contextmanager
def _jobs(user: int | None) -> Iterator[Examined]:
    with tempfile.TemporaryDirectory() as folder, ProcClient(user=user) as client:
        if user is not None:
            os.chown(folder, user, user)
        yield Examined(client, Path(folder).resolve(), _interpreter(user))


@pytest.fixture(params=_users())
def examined(request: pytest.FixtureRequest) -> Iterator[Examined]:
    """Jobs of root and of an ordinary user, as far as these tests may use both."""
    with _jobs(_other_user() if request.param == "ordinary user" else None) as jobs:
        yield jobs


def waits(autopsy: Any, command: str) -> str:
    """What the process with this command waits for."""
    found = [one["waits_for"] for one in autopsy["processes"] if one["command"] == command]
    assert len(found) == 1, autopsy
    return str(found[0])


def pid_of(autopsy: Any, command: str) -> int:
    return next(int(one["pid"]) for one in autopsy["processes"] if one["command"] == command)


def test_reading_a_pipe_names_its_writer(examined: Examined) -> None:
    autopsy = examined.shell("sleep 300 | cat", processes=3)
    writer = pid_of(autopsy, "sleep 300")
    assert waits(autopsy, "cat") == f"reading a pipe whose writer is {writer} sleep 300"
    assert waits(autopsy, "sleep 300") == "sleeping for 300 s"


def test_waiting_for_a_child_names_the_child(examined: Examined) -> None:
    autopsy = examined.shell("sleep 300; true", processes=2)
    child = pid_of(autopsy, "sleep 300")
    assert waits(autopsy, "sh -c …") == f"waiting for child {child} sleep 300"


def test_reading_stdin_that_nobody_writes_to(examined: Examined) -> None:
    code = "import subprocess as s; s.Popen(['cat'], stdin=s.PIPE).wait()"
    autopsy = examined.python(code, processes=2)
    words = waits(autopsy, "cat")
    assert words.startswith("reading stdin, which nobody writes to: "), words
    assert words.endswith(" job.py holds the other end and waits for a child")


def test_reading_a_pipe_whose_other_end_the_process_holds_itself(examined: Examined) -> None:
    autopsy = examined.python("import os; r, w = os.pipe(); os.dup2(r, 0); os.read(0, 1)")
    (process,) = autopsy["processes"]
    assert process["waits_for"] == (
        "reading stdin, which nobody writes to: it holds the other end itself"
    )


def test_connecting_names_the_address(examined: Examined) -> None:
    with socket.socket() as server, ExitStack() as stack:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        port = server.getsockname()[1]
        # A full queue drops further attempts, so that the next one waits for an answer.
        for _ in range(4):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", port))
        connect = f"import socket; socket.create_connection(('127.0.0.1', {port})"
        wanted = f"connecting to 127.0.0.1:{port} (SYN sent)"
        for code in (f"{connect})", f"{connect}, timeout=300)"):
            (process,) = examined.python(code)["processes"]
            assert process["waits_for"] == wanted


def test_waiting_for_data_and_for_events_names_the_peer(examined: Examined) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"import socket; socket.create_connection(('127.0.0.1', {port})).recv(1)"
        (process,) = examined.python(code)["processes"]
        assert process["waits_for"] == f"waiting for data from 127.0.0.1:{port}"
        code = (
            "import asyncio\n"
            "async def main():\n"
            f"    reader, _ = await asyncio.open_connection('127.0.0.1', {port})\n"
            "    await reader.read()\n"
            "asyncio.run(main())"
        )
        (process,) = examined.python(code)["processes"]
        assert process["waits_for"] == (
            f"waiting for events: data from 127.0.0.1:{port} (event loop)"
        )


def test_waiting_for_a_lock_names_the_file_and_the_holder(examined: Examined) -> None:
    code = (
        "import fcntl, os, time\n"
        "def lock():\n"
        "    fcntl.flock(os.open('the.lock', os.O_RDWR | os.O_CREAT), fcntl.LOCK_EX)\n"
        "ours, theirs = os.pipe()\n"
        "if os.fork():\n"
        "    os.read(ours, 1)\n"
        "    lock()\n"
        "lock()\n"
        "os.write(theirs, b'x')\n"
        "time.sleep(300)"
    )
    autopsy = examined.python(code, processes=2)
    waiting, holding = autopsy["processes"]
    lock = examined.folder / "the.lock"
    held_by = f"held by {holding['pid']} {holding['command']}"
    assert waiting["waits_for"] == f"waiting for a lock on {lock}, {held_by}"
    assert holding["waits_for"].startswith("sleeping for ")


def test_opening_a_fifo_without_the_other_end(examined: Examined) -> None:
    autopsy = examined.shell("mkfifo fifo; exec cat fifo", processes=1)
    assert waits(autopsy, "cat …") == "opening the FIFO fifo, whose other end nobody opens"


def test_a_process_that_computes_is_busy(examined: Examined) -> None:
    autopsy = examined.shell("while :; do :; done", processes=1, busy=True)
    assert waits(autopsy, "sh -c …") == "busy on the CPU"


def test_a_deadlock_in_memory_and_the_work_of_another_thread(examined: Examined) -> None:
    (process,) = examined.python("import threading as t; l = t.Lock(); l.acquire(); l.acquire()")[
        "processes"
    ]
    assert process["waits_for"] == "waiting for a lock or a condition in its own memory (futex)"
    code = "import threading, os; r, w = os.pipe(); threading.Thread(target=os.read, args=(r, 1))"
    (process,) = examined.python(f"{code}.start()")["processes"]
    assert process["waits_for"].startswith("waiting for a thread of its own, which is reading a pi")


def test_state_cpu_time_and_memory_are_reported(examined: Examined) -> None:
    (process,) = examined.shell("exec sleep 300", processes=1)["processes"]
    assert process["state"] == "sleeping"
    assert 0 <= process["cpu_seconds"] < 10
    assert 0 < process["memory_bytes"] < 100_000_000


def test_a_process_that_protects_itself_is_described_as_far_as_it_can_be() -> None:
    code = "import ctypes, time; ctypes.CDLL(None).prctl(4, 0); time.sleep(300)"
    with _jobs(_other_user()) as examined:
        (process,) = examined.python(code)["processes"]
    assert process["waits_for"] == "unknown: the process belongs to another user or protects itself"
    assert process["command"].endswith(" -I job.py")


def test_no_secret_is_in_an_autopsy(examined: Examined) -> None:
    script = (
        f"mkdir {SECRET}; cd {SECRET}; mkfifo fifo; "
        f"python() {{ {examined.interpreter} -I -c 'import time; time.sleep(300)' "
        f'"$@"; }}; python {SECRET} --token={SECRET} -p{SECRET} --{SECRET} "$TOKEN" & '
        f"echo $TOKEN; exec cat ../{SECRET}/fifo"
    )
    autopsy = examined.shell(script, processes=3, env={"TOKEN": SECRET})
    assert SECRET not in str(autopsy)
    assert waits(autopsy, "cat …") == (
        "opening the FIFO ../${TOKEN}/fifo, whose other end nobody opens"
    )
    assert autopsy["output"]["stdout"] == "${TOKEN}"
    assert any("--token=… -p…" in one["command"] for one in autopsy["processes"])


def test_the_last_lines_of_output_are_included(examined: Examined) -> None:
    script = "seq 100; echo failing >&2; echo > done; exec sleep 300"
    autopsy = examined.shell(script, processes=1)
    assert autopsy["output"] == {"stdout": "98\n99\n100", "stderr": "failing"}


def test_a_timeout_has_an_autopsy_and_a_cancel_only_on_request(linux: ProcClient) -> None:
    (process,) = linux.exec("sleep", "300", timeout=0.2, autopsy_budget=10).header["autopsy"][
        "processes"
    ]
    assert process["command"] == "sleep 300"
    assert "autopsy" not in linux.exec("sleep", "300", timeout=0.2, autopsy="never").header
    assert "autopsy" not in linux.exec("true").header
    job = linux.send("exec", command="sleep", args=["300"])
    linux.send("cancel", target=job)
    answers = {answer.id: answer for answer in (linux.receive(), linux.receive())}
    assert "autopsy" not in answers[job].header


def test_a_budget_of_zero_cuts_the_autopsy_and_says_so(linux: ProcClient) -> None:
    autopsy = linux.exec("sleep", "300", timeout=0.2, autopsy_budget=0).header["autopsy"]
    assert autopsy["processes"] == []
    assert autopsy["missing"] == "only 0 of 1 processes were examined"


def test_fifty_processes_are_described(linux: ProcClient) -> None:
    script = "for i in $(seq 50); do sleep 300 & done; echo up; wait"
    answer = linux.exec("sh", "-c", script, timeout=3, autopsy_budget=10)
    autopsy = answer.header["autopsy"]
    assert len([one for one in autopsy["processes"] if one["command"] == "sleep 300"]) == 50
    assert "missing" not in autopsy


def test_many_processes_are_counted(linux: ProcClient) -> None:
    script = "for i in $(seq 120); do sleep 300 & done; wait"
    autopsy = linux.exec("sh", "-c", script, timeout=4, autopsy_budget=10).header["autopsy"]
    assert (len(autopsy["processes"]), autopsy["unexamined"]) == (100, 21)
    assert autopsy["missing"] == "only 100 of 121 processes were examined"


def test_the_portable_platform_says_that_it_cannot_look() -> None:
    with ProcClient("--platform", "portable") as client:
        autopsy = client.exec("sh", "-c", "echo x; exec sleep 9", timeout=0.5).header["autopsy"]
    assert autopsy["processes"] == []
    assert autopsy["missing"] == "this platform does not say what processes wait for"
    assert autopsy["output"]["stdout"] == "x"


OFFER = (
    "import faulthandler, os, signal\n"
    "faulthandler.register(signal.SIGUSR2, os.memfd_create('lilux-stack'), chain=False)\n"
)


def test_a_program_that_offers_its_stack_is_asked_for_it(examined: Examined) -> None:
    code = f"{OFFER}def wait_for_ever():\n    signal.pause()\nwait_for_ever()"
    (process,) = examined.python(code)["processes"]
    first, inner, outer = process["stack"].splitlines()
    assert first.endswith("(most recent call first):")
    assert inner.endswith("line 4 in wait_for_ever")
    assert outer.endswith("line 5 in <module>")
    assert process["waits_for"] == "waiting for a signal"


@pytest.mark.parametrize(
    "code",
    [
        "import os, signal; os.memfd_create('lilux-stack'); os.write(1, b'up'); signal.pause()",
        f"{OFFER}os.closerange(3, 99)\nos.open('other', os.O_CREAT | os.O_RDWR)\nsignal.pause()",
    ],
    ids=["no handler", "memory file closed"],
)
def test_a_program_that_does_not_offer_its_stack_gets_no_signal(
    examined: Examined, code: str
) -> None:
    (process,) = examined.python(code)["processes"]
    assert "stack" not in process
    other = examined.folder / "other"
    assert not other.exists() or other.read_bytes() == b""


def test_a_stopped_program_does_not_delay_its_end(examined: Examined) -> None:
    code = f"{OFFER}print('up', flush=True)\nos.kill(os.getpid(), signal.SIGSTOP)"
    (examined.folder / "job.py").write_text(code)
    command = [examined.interpreter, "-I", str(examined.folder / "job.py")]
    answer = examined.client.exec(*command, timeout=2, autopsy_budget=10)
    (process,) = answer.header["autopsy"]["processes"]
    assert process["waits_for"] == "stopped by a signal"
    assert "stack" not in process


def test_an_unknown_choice_is_refused(linux: ProcClient) -> None:
    answer = linux.exec("true", autopsy="sometimes")
    assert "expected one of `timeout`, `always`, `never`" in answer.header["message"]
    answer = linux.exec("true", autopsy_budget=-1)
    assert answer.header["message"].startswith("autopsy_budget must be a number of seconds")
