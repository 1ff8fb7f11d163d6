"""Prepared processes: a call is a copy, and in every other respect a job."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import prepared_program
import psutil
import pytest
from proc_client import Answer, ProcClient
from processes import Tree, assert_ended, is_alive, stop_process, wait_until

PROGRAM = prepared_program.__file__


class Prepared:
    """A prepared process of a helper."""

    def __init__(self, client: ProcClient, setup: str = "", **fields: Any) -> None:
        self.client = client
        args = [PROGRAM, *filter(None, [setup])]
        fields = {"timeout": None, "stream": True, "capture": False, **fields}
        self.id = client.send("exec", command=sys.executable, args=args, start="prepare", **fields)
        answer = client.receive()
        assert answer.kind == "stdout", answer
        self.process = psutil.Process(int(bytes(answer.payload).split()[1]))

    def send(self, code: str, payload: bytes = b"", **fields: Any) -> int:
        fields = {"start": {"prepared": self.id}, **fields}
        return self.client.send("exec", payload, command="tool", args=["a", code], **fields)

    def call(self, code: str, payload: bytes = b"", **fields: Any) -> Answer:
        wanted = self.send(code, payload, **fields)
        answer = self.client.receive()
        assert answer.id == wanted, answer
        return answer


def run_script(script: str) -> str:
    """The code of a call that runs a script for ``sh``."""
    return f"import subprocess; subprocess.run(['sh', '-c', {script!r}])"


@pytest.fixture
def prepared(linux: ProcClient) -> Prepared:
    """A prepared process without confinement."""
    return Prepared(linux)


def test_a_call_has_its_own_input_output_arguments_folder_and_environment(
    prepared: Prepared, tmp_path: Path
) -> None:
    code = "print(sys.stdin.read(), strings[1:3], os.getcwd(), dict(os.environ)); sys.exit(7)"
    env = {"A": "1", "B": ""}
    answer = prepared.call(code, b"in", cwd=str(tmp_path), env=env, env_mode="exact")
    expected = f"in [b'tool', b'a'] {tmp_path} {env}\n"
    assert answer.stdout.decode() == expected
    assert answer.header["return_code"] == 7
    assert answer.header["tree"] == {"known_by": "subreaper", "ended": 0, "survivors": []}


def test_a_call_sees_nothing_of_an_earlier_one(prepared: Prepared) -> None:
    code = "print(value); value.append('changed'); os.environ['A'] = 'left'; os.chdir('/')"
    before = prepared.call("print(os.getcwd())").stdout
    for _ in range(2):
        assert prepared.call(code).stdout == b"['as prepared']\n"
    assert (
        prepared.call("print(os.getcwd(), 'A' in os.environ)").stdout == before[:-1] + b" False\n"
    )


def test_a_call_is_a_child_of_the_helper_in_its_own_group(prepared: Prepared) -> None:
    answer = prepared.call("print(os.getpid(), os.getpgid(0), os.getppid(), os.getsid(0))")
    pid, group, parent, session = map(int, answer.stdout.split())
    assert pid == group == answer.header["pid"]
    assert parent == prepared.process.ppid()
    assert session == os.getsid(prepared.process.pid)


def test_the_tree_of_a_call_ends_with_it(prepared: Prepared, tree: Tree) -> None:
    go = tree.folder / "go"
    script = tree.script(f"while [ ! -e {go} ]; do sleep 0.01; done")
    running = prepared.send(run_script(script))
    processes = tree.processes()
    go.touch()
    answer = prepared.client.receive()
    assert answer.id == running
    assert answer.header["success"], answer.stderr
    assert answer.header["tree"] == {"known_by": "subreaper", "ended": 3, "survivors": []}
    assert_ended(processes)
    assert is_alive(prepared.process)


def test_a_call_that_takes_too_long_is_ended_with_its_tree(prepared: Prepared, tree: Tree) -> None:
    running = prepared.send(run_script(tree.script()), timeout=3.0)
    processes = tree.processes()
    answer = prepared.client.receive()
    assert (answer.id, answer.header["timed_out"]) == (running, True)
    assert answer.header["autopsy"]["processes"]
    assert_ended(processes)
    assert prepared.call("print(1)").stdout == b"1\n"


def test_a_call_can_be_cancelled(prepared: Prepared, tmp_path: Path) -> None:
    started = tmp_path / "started"
    running = prepared.send(f"import time; open({str(started)!r}, 'w'); time.sleep(600)")
    wait_until(started.exists, "the call runs")
    cancel = prepared.client.send("cancel", target=running)
    answers = {
        answer.id: answer for answer in (prepared.client.receive(), prepared.client.receive())
    }
    assert answers[cancel].header["found"] is True
    assert answers[running].header["cancelled"] is True


def test_the_output_of_a_call_is_bounded(prepared: Prepared) -> None:
    answer = prepared.call("print('x' * 5000)", output_limit=1000)
    assert answer.header["truncated"]["stdout"] >= 4000


def test_a_call_has_a_channel(prepared: Prepared) -> None:
    code = "os.write(int(os.environ['TALK']), b'hello'); print(os.read(3, 100))"
    running = prepared.send(code, channel="TALK")
    said = prepared.client.receive()
    assert (said.id, said.kind, bytes(said.payload)) == (running, "channel", b"hello")
    prepared.client.send("input", b"answer", target=running, stream="channel")
    answers = [prepared.client.receive(), prepared.client.receive()]
    assert next(one for one in answers if one.id == running).stdout == b"b'answer'\n"


def test_many_calls_run_at_the_same_time(prepared: Prepared) -> None:
    ids = {prepared.send(f"print({number})"): number for number in range(40)}
    for _ in range(40):
        answer = prepared.client.receive()
        assert answer.stdout.decode() == f"{ids.pop(answer.id)}\n"


def test_calls_go_on_when_the_prepared_process_dies(prepared: Prepared, tmp_path: Path) -> None:
    go = tmp_path / "go"
    waiting = f"import time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)\nprint('done')"
    ready = tmp_path / "ready"
    running = prepared.send(f"open({str(ready)!r}, 'w')\n{waiting}")
    wait_until(ready.exists, "the call runs")
    prepared.process.kill()
    end = prepared.client.receive()
    assert (end.id, end.header["signal"]) == (prepared.id, signal.SIGKILL)
    refused = prepared.call("print(1)")
    assert (refused.kind, refused.header["error"]) == ("error", "not_prepared")
    # Jobs that start and end meanwhile do not end the call, whose parent is one thread.
    for _ in range(3):
        assert prepared.client.exec("true").header["tree"]["ended"] == 0
    go.touch()
    answer = prepared.client.receive()
    assert (answer.id, answer.stdout) == (running, b"done\n")


def test_no_call_survives_the_helper(prepared: Prepared, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    prepared.send(
        f"import time; open({str(pid)!r}, 'w').write(f'{{os.getpid()}}'); time.sleep(600)"
    )
    wait_until(lambda: pid.exists() and pid.read_text(), "the call runs")
    call = psutil.Process(int(pid.read_text()))
    os.kill(prepared.process.ppid(), signal.SIGKILL)
    wait_until(lambda: not is_alive(call) and not is_alive(prepared.process), "both ended")


def test_a_prepared_process_that_does_not_answer_is_reported(prepared: Prepared) -> None:
    stop_process(prepared.process)
    refused = prepared.call("print(1)", timeout=0.5)
    assert refused.header["message"] == (
        "the prepared process does not answer; end it, and prepare it again"
    )
    assert refused.header["error"] == "not_prepared"


def test_other_requests_are_answered_while_a_call_waits_for_its_copy(prepared: Prepared) -> None:
    stop_process(prepared.process)
    waiting = prepared.send("print(1)")
    answer = prepared.client.exec("echo", "meanwhile")
    assert answer.stdout == b"meanwhile\n"
    prepared.process.resume()
    called = prepared.client.receive()
    assert (called.id, called.stdout) == (waiting, b"1\n")


def test_a_copy_that_was_not_answered_does_nothing(linux: ProcClient, tmp_path: Path) -> None:
    # It is stopped between its birth and its announcement, until the helper has given up.
    made = tmp_path / "made"
    setup = """if True:
        import ctypes
        after = ctypes.pythonapi.PyOS_AfterFork_Child
        def stop():
            after()
            os.kill(os.getpid(), 19)
        ctypes.pythonapi.__dict__['PyOS_AfterFork_Child'] = stop
    """
    prepared = Prepared(linux, setup)
    refused = prepared.call(f"open({str(made)!r}, 'w')", timeout=0.5)
    assert refused.header["error"] == "not_prepared"
    copies = [
        one
        for one in psutil.Process(prepared.process.ppid()).children()
        if one.pid != prepared.process.pid
    ]
    assert len(copies) == 1
    copies[0].resume()
    wait_until(lambda: not is_alive(copies[0]), "the copy ended")
    assert not made.exists()
    prepared.process.kill()
    assert linux.receive().id == prepared.id
    wait_until(lambda: not psutil.pid_exists(copies[0].pid), "the copy was reaped")


def test_a_process_with_threads_is_not_copied(linux: ProcClient) -> None:
    setup = "import threading, time; threading.Thread(target=time.sleep, args=[600]).start()"
    refused = Prepared(linux, setup).call("print(1)")
    assert refused.header["error"] == "not_prepared"
    assert refused.header["message"] == (
        "the prepared process has more than one thread; run the command"
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"observe": True},
            "a prepared process cannot have observe; remove it, or start the program",
        ),
        (
            {"background": "keep"},
            "a prepared process cannot have background: keep; remove it, or start the program",
        ),
        (
            {"start": {"prepared": 99}},
            "the prepared process is not running; prepare it again",
        ),
        (
            {"confinement": {"read": ["/usr"]}},
            "the prepared process has another confinement; give the call the same one",
        ),
        (
            {"env": {"A": "x" * 140_000}},
            "the arguments and environment of the call are longer than 128 KiB; run the command",
        ),
    ],
)
def test_a_call_that_cannot_be_a_copy_is_refused(
    prepared: Prepared, fields: dict[str, Any], message: str
) -> None:
    refused = prepared.call("print(1)", **fields)
    assert refused.kind == "error"
    assert refused.header["message"] == message


def test_the_portable_platform_has_no_prepared_processes() -> None:
    with ProcClient("--platform", "portable") as client:
        for start in ("prepare", {"prepared": 1}):
            refused = client.call("exec", command="true", start=start)
            assert refused.header["error"] == "not_prepared"
            assert refused.header["message"] == (
                "this platform has no prepared processes; run the command"
            )
