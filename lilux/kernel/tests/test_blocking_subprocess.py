"""Running a process without an event loop: the same results, and the same end of everything."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from interrupts import interrupt_when
from lilux.primitives.errors import ConfigurationError, HelperError
from lilux.primitives.subprocess import SubprocessPrimitive, SubprocessResult
from lilux.primitives.subprocess import answer as helper_answer
from lilux.primitives.subprocess.blocking import BlockingSubprocess
from processes import Tree, assert_gone, is_alive, wait_until
from scarce_descriptors import descriptors_left


@pytest.fixture
def blocking() -> Iterator[BlockingSubprocess]:
    with BlockingSubprocess() as made:
        yield made


def run(
    blocking: BlockingSubprocess, config: dict[str, Any], params: Any = None, **options: Any
) -> SubprocessResult:
    """Drives the coroutine, which must not be suspended once."""
    with pytest.raises(StopIteration) as end:
        blocking.execute(config, params, **options).send(None)
    result: SubprocessResult = end.value.value
    return result


def shell(script: str, **config: Any) -> dict[str, Any]:
    return {"command": "sh", "args": ["-c", script], **config}


def helpers() -> list[psutil.Process]:
    """Those that are alive; the end of one is taken note of by the next."""
    children = psutil.Process().children()
    return [one for one in children if is_alive(one) and one.name() == "lilux-proc"]


CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "success": (shell("echo out; echo err >&2"), {}),
    "exit code": (shell("exit 7"), {}),
    "signal": (shell("kill -KILL $$"), {}),
    "timeout": (shell("exec sleep 600", timeout=0.3), {}),
    "no command": ({}, {}),
    "not found": ({"command": "no-such-command"}, {}),
    "wrong args": ({"command": "true", "args": "x"}, {}),
    "unknown key": ({"command": "true", "argv": []}, {}),
    "cwd that is not there": ({"command": "true", "cwd": "/no/such/folder"}, {}),
    "a parameter": ({"command": "echo", "args": ["{word}"]}, {"word": "${HOME} {word}"}),
    "exact environment": ({"command": "env", "env": {"A": "1"}, "env_mode": "exact"}, {}),
    "bytes that are no text": (shell(r"printf 'a\377b\303'"), {}),
    "both pipes full": (
        shell("head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2", output_limit=1000),
        {},
    ),
    "input larger than a pipe": (shell("wc -c", input_data="x" * 3_000_000), {}),
    "input that nobody reads": ({"command": "true", "input_data": "x" * 3_000_000}, {}),
    "background process": (shell("sleep 600 & exit 0"), {}),
}  # fmt: skip


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_every_case_has_the_result_that_it_has_in_an_event_loop(
    blocking: BlockingSubprocess, streamed: bool
) -> None:
    async def all_of_them() -> dict[str, tuple[SubprocessResult, dict[str, str]]]:
        primitive = SubprocessPrimitive()
        found = {}
        for name, (config, params) in CASES.items():
            options, seen = _options(streamed)
            found[name] = (await primitive.execute(config, params, **options), seen)
        return found

    expected = asyncio.run(all_of_them())
    for name, (config, params) in CASES.items():
        options, seen = _options(streamed)
        result = run(blocking, config, params, **options)
        assert _comparable(result) == _comparable(expected[name][0]), name
        assert seen == expected[name][1], name


def _options(streamed: bool) -> tuple[dict[str, Any], dict[str, str]]:
    seen: dict[str, str] = {"stdout": "", "stderr": ""}

    def take(stream: str, text: str) -> None:
        seen[stream] += text

    return ({"on_output": take} if streamed else {}), seen


def _comparable(result: SubprocessResult) -> dict[str, Any]:
    fields: dict[str, Any] = dataclasses.asdict(result)
    assert fields.pop("duration_ms") >= 0
    return fields


def test_output_comes_while_the_job_runs(blocking: BlockingSubprocess, tmp_path: Path) -> None:
    seen: list[tuple[str, str]] = []

    def take(stream: str, text: str) -> None:
        seen.append((stream, text))
        # The job goes on only after this.
        (tmp_path / "heard").touch()

    script = f"echo first; while [ ! -e {tmp_path}/heard ]; do sleep 0.01; done; echo last >&2"
    result = run(blocking, shell(script, timeout=20), on_output=take)
    assert result.success
    assert seen == [("stdout", "first\n"), ("stderr", "last\n")]


def test_a_callback_that_raises_is_told_and_the_job_goes_on(blocking: BlockingSubprocess) -> None:
    def take(stream: str, text: str) -> None:
        raise RuntimeError("secret")

    result = run(blocking, shell("echo a; echo b >&2"), on_output=take)
    assert (result.success, result.stdout) == (True, "a\n")
    assert result.output_error == "the output callback failed: RuntimeError"


def test_a_coroutine_function_cannot_be_a_callback_here(blocking: BlockingSubprocess) -> None:
    async def take(stream: str, text: str) -> None:
        raise AssertionError("never run")

    result = run(blocking, shell("echo a"), on_output=take)
    assert result.success
    assert result.output_error == (
        "the output callback is a coroutine function; pass a plain function here"
    )


def test_one_helper_serves_several_jobs_and_ends_at_the_end() -> None:
    before = helpers()
    with BlockingSubprocess() as blocking:
        blocking.start_early()
        started = [one for one in helpers() if one not in before]
        for _ in range(3):
            assert run(blocking, {"command": "true"}).success
        assert [one for one in helpers() if one not in before] == started
        assert len(started) == 1
    wait_until(lambda: not is_alive(started[0]), "the helper has ended")


def test_after_the_end_another_job_starts_another_helper() -> None:
    blocking = BlockingSubprocess()
    for _ in range(2):
        assert run(blocking, {"command": "true"}).success
        blocking.close()
        blocking.close()


@pytest.mark.parametrize("streamed", [False, True])
def test_an_interrupt_is_raised_once_the_whole_tree_is_gone(
    blocking: BlockingSubprocess, tmp_path: Path, streamed: bool
) -> None:
    tree = Tree(tmp_path / "tree")
    options, _ = _options(streamed)
    with (
        interrupt_when((tmp_path / "tree" / "up").exists),
        pytest.raises(KeyboardInterrupt),
    ):
        blocking.execute(shell(tree.script(), timeout=60), **options).send(None)
    assert [name for name, one in _processes(tree).items() if is_alive(one)] == []
    assert run(blocking, {"command": "true"}).success


def _processes(tree: Tree) -> dict[str, psutil.Process]:
    found = {}
    for name in tree.NAMES:
        pid = int((tree.folder / name).read_text())
        if psutil.pid_exists(pid):
            found[name] = psutil.Process(pid)
    return found


def test_an_interrupted_job_may_say_good_bye_within_its_grace(
    blocking: BlockingSubprocess, tmp_path: Path
) -> None:
    script = (
        f"trap 'echo bye > {tmp_path}/bye; exit' TERM; echo $$ > {tmp_path}/pid; "
        "while :; do sleep 0.02; done"
    )
    with interrupt_when((tmp_path / "pid").exists), pytest.raises(KeyboardInterrupt):
        blocking.execute(shell(script, grace=20, timeout=60)).send(None)
    assert (tmp_path / "bye").read_text() == "bye\n"


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
        blocking.execute(shell(script, grace=0.5, timeout=60)).send(None)
    pid = int((tmp_path / "pid").read_text())
    assert not psutil.pid_exists(pid)


def test_an_answer_that_makes_no_sense_is_told_at_once(
    blocking: BlockingSubprocess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(helper_answer._FIELDS["exec"], "of_another_release", int)
    began = time.monotonic()
    with pytest.raises(HelperError, match=r"install lilux and lilux-proc of the same release$"):
        blocking.execute({"command": "true"}).send(None)
    assert time.monotonic() - began < 4


def test_the_death_of_the_caller_by_sigkill_ends_the_job(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "tree")
    program = (
        "import sys\n"
        "from lilux.primitives.subprocess.blocking import BlockingSubprocess\n"
        "BlockingSubprocess().execute({'command': 'sh', 'args': ['-c', sys.argv[1]]}).send(None)\n"
    )
    caller = subprocess.Popen([sys.executable, "-c", program, tree.script()])
    try:
        processes = tree.processes()
    finally:
        caller.kill()
        caller.wait()
    assert_gone(processes)


def test_the_death_of_the_helper_is_told_and_the_next_job_gets_another(
    blocking: BlockingSubprocess,
) -> None:
    with pytest.raises(HelperError) as raised:
        blocking.execute(shell("kill -KILL $PPID; exec sleep 600")).send(None)
    assert str(raised.value) == (
        "lilux-proc ended unexpectedly while a request was in flight; whatever it had started is "
        "being ended, and the next call starts a new helper: try again"
    )
    assert run(blocking, {"command": "true"}).success


def test_a_forked_child_does_not_keep_the_helper_alive(tmp_path: Path) -> None:
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


def test_without_lilux_proc_running_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "program")])
    blocking = BlockingSubprocess()
    blocking.start_early()
    with pytest.raises(ConfigurationError) as raised:
        blocking.execute({"command": "true"}).send(None)
    assert str(raised.value) == (
        "lilux-proc binary not found on PATH. Install it with: pip install lilux-proc"
    )


@pytest.mark.parametrize("free", [0, 1, 2, 3])
def test_without_descriptors_running_says_what_to_do_and_leaves_none_open(free: int) -> None:
    # What is imported on use is a file, too.
    with BlockingSubprocess() as blocking:
        assert run(blocking, {"command": "true"}).success
        blocking.close()
        with descriptors_left(free), pytest.raises(ConfigurationError) as raised:
            blocking.execute({"command": "true"}).send(None)
        assert str(raised.value) == (
            "lilux-proc cannot be started: Too many open files; close files, or raise the limit of "
            "open files (ulimit -n)"
        )
        assert run(blocking, {"command": "true"}).success


def test_a_binary_that_is_not_lilux_proc_gives_a_clear_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake = tmp_path / "lilux-proc"
    fake.write_text("#!/bin/sh\necho this is not a frame, is it\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with (
        BlockingSubprocess() as blocking,
        pytest.raises(
            HelperError,
            match=r"^lilux-proc (and this program do not understand|ended unexpectedly)",
        ),
    ):
        blocking.execute({"command": "true"}).send(None)


def test_no_event_loop_and_no_socket_is_loaded() -> None:
    script = (
        "import sys\n"
        "from lilux.primitives.subprocess.blocking import BlockingSubprocess\n"
        "with BlockingSubprocess() as blocking:\n"
        "    try:\n"
        "        blocking.execute({'command': 'true'}).send(None)\n"
        "    except StopIteration as end:\n"
        "        assert end.value.success\n"
        "heavy = ('asyncio', 'socket', 'signal', 'dataclasses', 'typing', 'shutil', 'pathlib')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
