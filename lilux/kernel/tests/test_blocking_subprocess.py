"""The blocking transport: the results of the asyncio transport, and no event loop."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from interrupts import interrupt_when
from lilux.primitives.errors import ConfigurationError
from lilux.primitives.subprocess import BlockingSubprocess, SubprocessResult
from process_transports import open_transport
from processes import Tree, assert_ended, is_alive, wait_until
from scarce_descriptors import descriptors_left


@pytest.fixture
def blocking() -> Iterator[BlockingSubprocess]:
    with BlockingSubprocess() as made:
        yield made


def shell(script: str, **config: Any) -> dict[str, Any]:
    return {"command": "sh", "args": ["-c", script], **config}


def helpers() -> list[psutil.Process]:
    """The living helpers; one that has ended may still be a zombie."""
    children = psutil.Process().children()
    return [one for one in children if is_alive(one) and one.name() == "lilux-proc"]


CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "success": (shell("echo out; echo err >&2"), {}),
    "exit code": (shell("exit 7"), {}),
    "signal": (shell("kill -KILL $$"), {}),
    "timeout": (shell("exec sleep 600", timeout=0.5, autopsy_budget=10), {}),
    "no command": ({}, {}),
    "not found": ({"command": "no-such-command"}, {}),
    "wrong args": ({"command": "true", "args": "x"}, {}),
    "unknown key": ({"command": "true", "argv": []}, {}),
    "missing cwd": ({"command": "true", "cwd": "/no/such/folder"}, {}),
    "a parameter": ({"command": "echo", "args": ["{word}"]}, {"word": "${HOME} {word}"}),
    "exact environment": ({"command": "env", "env": {"A": "1"}, "env_mode": "exact"}, {}),
    "bytes that are not text": (shell(r"printf 'a\377b\303'"), {}),
    "both pipes full": (
        shell("head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2", output_limit=1000),
        {},
    ),
    "input larger than a pipe": (shell("wc -c", input_data="x" * 3_000_000), {}),
    "unread input": ({"command": "true", "input_data": "x" * 3_000_000}, {}),
    "background process": (shell("sleep 600 & exit 0"), {}),
}  # fmt: skip


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_every_case_gives_the_same_result_as_in_an_event_loop(streamed: bool) -> None:
    assert results("blocking", streamed=streamed) == results("asyncio", streamed=streamed)


def results(transport: str, *, streamed: bool) -> dict[str, Any]:
    """The result and the streamed output of each case."""
    found = {}
    with open_transport(transport) as execute:
        for name, (config, params) in CASES.items():
            seen = {"stdout": "", "stderr": ""}

            def take(stream: str, text: str, seen: dict[str, str] = seen) -> None:
                seen[stream] += text

            result = execute(config, params, on_output=take if streamed else None)
            found[name] = (comparable(result), seen)
    return found


def comparable(result: SubprocessResult) -> dict[str, Any]:
    fields: dict[str, Any] = dataclasses.asdict(result)
    assert fields.pop("duration_ms") >= 0
    autopsy = fields.pop("autopsy")
    return {**fields, "examined": [one["command"] for one in (autopsy or {}).get("processes", ())]}


@pytest.mark.parametrize("transport", ["blocking", "asyncio"])
def test_a_timeout_reports_what_the_processes_waited_for(transport: str) -> None:
    with open_transport(transport) as execute:
        config = {"command": "sleep", "args": ["300"], "timeout": 0.5, "autopsy_budget": 10}
        result = execute(config, {}, on_output=None)
        assert result.autopsy is not None
        (process,) = result.autopsy["processes"]
        assert process["command"] == "sleep 300"
        assert execute({**config, "autopsy": "never"}, {}, on_output=None).autopsy is None
        cut = execute({**config, "autopsy_budget": 0}, {}, on_output=None).autopsy
        assert cut is not None
        assert cut["processes"] == []
        wrong = execute({**config, "autopsy": "sometimes"}, {}, on_output=None)
        assert wrong.stderr == "autopsy must be 'timeout', 'always' or 'never'"
        wrong = execute({**config, "autopsy_budget": "1"}, {}, on_output=None)
        assert wrong.stderr == "autopsy_budget must be a number of seconds, got str"


def test_one_helper_serves_several_jobs_and_ends_with_the_context() -> None:
    before = helpers()
    with BlockingSubprocess() as blocking:
        blocking.start_early()
        started = [one for one in helpers() if one not in before]
        for _ in range(3):
            assert blocking.execute({"command": "true"}).success
        assert [one for one in helpers() if one not in before] == started
        assert len(started) == 1
    wait_until(lambda: not is_alive(started[0]), "the helper has ended")


def test_starting_twice_leaves_one_helper() -> None:
    with BlockingSubprocess() as blocking:
        blocking.start_early()
        blocking.start_early()
        wait_until(lambda: len(helpers()) == 1, "one helper")
        assert blocking.execute({"command": "true"}).success


def test_an_answer_that_came_before_the_end_of_the_helper_is_returned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writing fails, because the helper has ended; its answer can still be read."""
    header = {
        "id": 1,
        "kind": "result",
        "success": True,
        "return_code": 0,
        "duration_ms": 1.5,
        "timed_out": False,
        "signal": None,
        "stdout_bytes": 4,
        "truncated": {"stdout": 0, "stderr": 0},
        "tree": {"known_by": "subreaper", "ended": 0, "survivors": []},
    }
    head = json.dumps(header).encode()
    answer = tmp_path / "answer"
    answer.write_bytes(struct.pack("<II", len(head) + 8, len(head)) + head + b"done")
    binary = tmp_path / "lilux-proc"
    binary.write_text(f"#!/bin/sh\nexec cat {answer}\n")
    binary.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with BlockingSubprocess() as blocking:
        blocking.start_early()
        children = psutil.Process().children()
        wait_until(lambda: not any(map(is_alive, children)), "the helper has ended")
        assert blocking.execute({"command": "true"}).stdout == "done"


def test_a_job_after_close_starts_another_helper() -> None:
    blocking = BlockingSubprocess()
    for _ in range(2):
        assert blocking.execute({"command": "true"}).success
        blocking.close()
        blocking.close()


def test_a_second_interrupt_does_not_leave_the_tree_behind(
    blocking: BlockingSubprocess, tmp_path: Path
) -> None:
    script = (
        f"trap 'echo > {tmp_path}/asked' TERM; echo $$ > {tmp_path}/pid; "
        "while :; do sleep 0.02; done"
    )
    with (
        interrupt_when((tmp_path / "pid").exists, (tmp_path / "asked").exists),
        pytest.raises(KeyboardInterrupt),
    ):
        blocking.execute(shell(script, grace=0.5, timeout=60))
    pid = int((tmp_path / "pid").read_text())
    assert not psutil.pid_exists(pid)


def test_the_death_of_the_caller_by_sigkill_ends_the_job(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "tree")
    program = (
        "import sys\n"
        "from lilux.primitives.subprocess.blocking import BlockingSubprocess\n"
        "BlockingSubprocess().execute({'command': 'sh', 'args': ['-c', sys.argv[1]]})\n"
    )
    caller = subprocess.Popen([sys.executable, "-c", program, tree.script()])
    try:
        processes = tree.processes()
    finally:
        caller.kill()
        caller.wait()
    assert_ended(processes)


def test_a_forked_child_does_not_keep_the_helper_alive() -> None:
    blocking = BlockingSubprocess()
    before = helpers()
    blocking.start_early()
    (helper,) = [one for one in helpers() if one not in before]
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
    try:
        blocking.close()
        wait_until(lambda: not is_alive(helper), "the helper has ended")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_without_lilux_proc_the_error_names_the_package_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "program")])
    blocking = BlockingSubprocess()
    blocking.start_early()
    with pytest.raises(ConfigurationError) as raised:
        blocking.execute({"command": "true"})
    assert str(raised.value) == (
        "lilux-proc binary not found on PATH. Install it with: pip install lilux-proc"
    )


@pytest.mark.parametrize("free", [0, 1, 2, 3])
def test_without_free_descriptors_the_error_is_clear_and_none_stays_open(free: int) -> None:
    with BlockingSubprocess() as blocking:
        # Modules that are imported on first use need a descriptor, too.
        assert blocking.execute({"command": "true"}).success
        blocking.close()
        with descriptors_left(free), pytest.raises(ConfigurationError) as raised:
            blocking.execute({"command": "true"})
        assert str(raised.value) == (
            "lilux-proc cannot be started: Too many open files; close files, or raise the limit of "
            "open files (ulimit -n)"
        )
        assert blocking.execute({"command": "true"}).success


def test_neither_asyncio_nor_sockets_are_imported() -> None:
    script = (
        "import sys\n"
        "from lilux.primitives.subprocess.blocking import BlockingSubprocess\n"
        "with BlockingSubprocess() as blocking:\n"
        "    assert blocking.execute({'command': 'true'}).success\n"
        "heavy = ('asyncio', 'socket', 'signal', 'dataclasses', 'typing', 'shutil', 'pathlib')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
