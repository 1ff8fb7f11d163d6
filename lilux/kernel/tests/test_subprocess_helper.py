"""Start, death and end of the helper process."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator
from pathlib import Path

import psutil
import pytest
from lilux.primitives.errors import ConfigurationError, HelperError
from lilux.primitives.subprocess import SubprocessPrimitive
from lilux.primitives.subprocess.binary import find_helper
from process_transports import Execute
from processes import Tree, assert_ended, helper_processes, is_alive, pid_in, wait_until


def own_helpers() -> list[psutil.Process]:
    return [p for p in psutil.Process().children() if p.name() == "lilux-proc" and is_alive(p)]


def test_all_primitives_and_calls_in_a_loop_share_one_helper() -> None:
    async def main() -> None:
        await asyncio.gather(
            *(SubprocessPrimitive().execute({"command": "true"}) for _ in range(20))
        )
        assert len(own_helpers()) == 1

    asyncio.run(main())


def test_the_helper_ends_with_its_loop() -> None:
    asyncio.run(SubprocessPrimitive().execute({"command": "true"}))
    assert own_helpers() == []


DIED = (
    "lilux-proc ended unexpectedly during a call; its processes are being ended; "
    "try again: the next call starts a new helper"
)


def test_the_death_of_the_worker_during_a_call_is_reported_and_the_next_call_works(
    execute: Execute, tmp_path: Path
) -> None:
    tree = Tree(tmp_path / "tree")
    with pytest.raises(HelperError) as raised:
        execute({"command": "sh", "args": ["-c", tree.script("kill -KILL $PPID; sleep 600")]})
    assert str(raised.value) == DIED
    assert execute({"command": "echo", "args": ["again"]}).stdout == "again\n"
    pids = [int((tree.folder / name).read_text()) for name in tree.NAMES]
    wait_until(lambda: not any(map(psutil.pid_exists, pids)), "the tree has ended")


@pytest.mark.parametrize("victim", [0, 1, 2], ids=["keeper", "guardian", "worker"])
def test_the_death_of_any_part_of_the_helper_is_reported_and_the_next_call_works(
    tmp_path: Path, victim: int
) -> None:
    tree = Tree(tmp_path / "tree")

    async def main() -> None:
        primitive = SubprocessPrimitive()
        call = asyncio.create_task(
            primitive.execute({"command": "sh", "args": ["-c", tree.script()]})
        )
        processes = await asyncio.to_thread(tree.processes)
        # The helper of an earlier test may still be ending.
        await asyncio.to_thread(wait_until, lambda: len(own_helpers()) == 1, "one helper runs")
        helper_processes(own_helpers()[0].pid)[victim].kill()
        with pytest.raises(HelperError) as raised:
            await call
        assert str(raised.value) == DIED
        assert (await primitive.execute({"command": "echo", "args": ["again"]})).stdout == "again\n"
        assert_ended(processes)

    asyncio.run(main())


def test_a_helper_that_dies_between_calls_is_replaced() -> None:
    async def main() -> None:
        primitive = SubprocessPrimitive()
        assert (await primitive.execute({"command": "true"})).success
        helper = own_helpers()[0]
        helper.kill()
        await asyncio.to_thread(wait_until, lambda: not is_alive(helper), "the helper is dead")
        for attempt in range(2):
            try:
                assert (await primitive.execute({"command": "true"})).success
                return
            except HelperError:
                # The call itself may be the first to see the end; then the next one works.
                assert attempt == 0

    asyncio.run(main())


def test_a_loop_has_one_helper_after_deaths_and_garbage_collection() -> None:
    async def main() -> None:
        primitive = SubprocessPrimitive()
        for _ in range(3):
            assert (await primitive.execute({"command": "true"})).success
            helper = own_helpers()[0]
            job = asyncio.create_task(primitive.execute({"command": "sleep", "args": ["600"]}))
            await asyncio.sleep(0)
            helper.kill()
            with pytest.raises(HelperError):
                await job
            await primitive.execute({"command": "true"})
            gc.collect()
            await primitive.execute({"command": "true"})
            await asyncio.to_thread(wait_until, lambda: len(own_helpers()) == 1, "one helper")

    asyncio.run(main())


def test_helpers_of_loops_closed_without_shutdown_end_when_another_starts() -> None:
    gc.disable()
    try:
        for _ in range(4):
            loop = asyncio.new_event_loop()
            loop.run_until_complete(SubprocessPrimitive().execute({"command": "true"}))
            loop.close()
        asyncio.run(SubprocessPrimitive().execute({"command": "true"}))
        wait_until(lambda: own_helpers() == [], "all helpers have ended")
    finally:
        gc.enable()


def test_a_generator_may_run_a_command_when_its_loop_ends() -> None:
    outputs = []

    async def generator() -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            config = {"command": "sh", "args": ["-c", "sleep 0.2; echo last words"]}
            outputs.append((await SubprocessPrimitive().execute(config)).stdout)

    async def main() -> AsyncGenerator[None, None]:
        await SubprocessPrimitive().execute({"command": "true"})
        unfinished = generator()
        await anext(unfinished)
        return unfinished

    asyncio.run(main())
    assert outputs == ["last words\n"]


def test_closing_works_after_the_executor_of_the_loop_was_shut_down() -> None:
    async def main() -> None:
        await SubprocessPrimitive().execute({"command": "true"})
        await asyncio.get_running_loop().shutdown_default_executor()

    asyncio.run(main())
    assert own_helpers() == []


def test_several_loops_in_several_threads_work_at_once() -> None:
    outputs: list[str] = []

    async def work(number: int) -> None:
        primitive = SubprocessPrimitive()
        results = await asyncio.gather(
            *(primitive.execute({"command": "echo", "args": [f"{number}.{n}"]}) for n in range(10))
        )
        outputs.extend(result.stdout.strip() for result in results)

    threads = [threading.Thread(target=asyncio.run, args=(work(n),)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outputs) == sorted(f"{a}.{b}" for a in range(8) for b in range(10))
    assert own_helpers() == []


@pytest.mark.parametrize(
    "program",
    [
        "asyncio.run(call())",
        "loop = asyncio.new_event_loop(); loop.run_until_complete(call()); loop.close()",
        "loop = asyncio.new_event_loop(); loop.run_until_complete(call())\nos._exit(0)",
        "asyncio.run(call()); asyncio.run(call())",
        "asyncio.run(abandon())",
    ],
)
def test_exit_leaves_no_process_and_prints_no_warning(program: str, tmp_path: Path) -> None:
    script = f"""
import asyncio, logging, os, sys
from lilux.primitives.subprocess import SubprocessPrimitive
# On a busy machine asyncio says in its debug mode that a step took long, which is no fault.
logging.getLogger("asyncio").addFilter(lambda record: not record.msg.startswith("Executing "))
async def call():
    result = await SubprocessPrimitive().execute({{"command": "sh", "args": ["-c", "echo $PPID"]}})
    with open({str(tmp_path / "pids")!r}, "a") as pids:
        pids.write(result.stdout)
async def abandon():
    await call()
    asyncio.create_task(SubprocessPrimitive().execute({{"command": "sleep", "args": ["600"]}}))
    await asyncio.sleep(0.05)
{program}
"""
    quiet = ["-X", "dev", "-W", "error", "-c", script]
    if program.startswith("loop = ") and "_exit" not in program:
        # asyncio warns about objects of a loop that was closed without shutdown.
        quiet = ["-c", script]
    done = subprocess.run([sys.executable, *quiet], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
    for pid in (tmp_path / "pids").read_text().split():
        wait_until(lambda pid=int(pid): not psutil.pid_exists(pid), "the worker has ended")  # type: ignore[misc] # bound now


def test_the_death_of_the_caller_ends_its_jobs_but_not_detached_processes(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "tree")
    script = """
import asyncio, sys
from lilux.primitives.subprocess import SubprocessPrimitive
async def main():
    primitive = SubprocessPrimitive()
    await primitive.spawn("sh", ["-c", "echo $$ > " + sys.argv[2] + "; exec sleep 600"])
    await primitive.execute({"command": "sh", "args": ["-c", sys.argv[1]], "render": False})
asyncio.run(main())
"""
    spawned_pid = tmp_path / "spawned"
    caller = subprocess.Popen([sys.executable, "-c", script, tree.script(), str(spawned_pid)])
    processes = tree.processes()
    caller.send_signal(signal.SIGKILL)
    caller.wait()
    assert_ended(processes)
    spawned = pid_in(spawned_pid)
    assert is_alive(spawned)
    spawned.kill()


def test_a_forked_child_does_not_keep_the_helper_alive(tmp_path: Path) -> None:
    # If the child kept the connection open, the helper would not see the end of its caller.
    script = """
import asyncio, os, sys, time
from lilux.primitives.subprocess import SubprocessPrimitive
async def main():
    primitive = SubprocessPrimitive()
    await primitive.execute({"command": "true"})
    if os.fork() == 0:
        os.execvp("sleep", ["sleep", "30"]) if sys.argv[1] == "exec" else time.sleep(30)
    print("forked", flush=True)
    await primitive.execute({"command": "sleep", "args": ["600"]})
asyncio.run(main())
"""
    for way in ("exec", "stay"):
        caller = subprocess.Popen(
            [sys.executable, "-c", script, way], stdout=subprocess.PIPE, text=True
        )
        assert caller.stdout
        assert caller.stdout.readline() == "forked\n"
        family = psutil.Process(caller.pid).children(recursive=True)
        helper = [process for process in family if process.name() == "lilux-proc"]
        assert len(helper) == 3
        caller.kill()
        caller.wait()
        caller.stdout.close()
        assert_ended({str(process.pid): process for process in helper})
        for process in family:
            if is_alive(process):
                process.kill()


def test_a_forked_child_can_run_commands() -> None:
    script = """
import asyncio, os, sys
from lilux.primitives.subprocess import SubprocessPrimitive
async def call(word):
    return (await SubprocessPrimitive().execute({"command": "echo", "args": [word]})).stdout
loop = asyncio.new_event_loop()
loop.run_until_complete(call("parent"))
child = os.fork()
if child == 0:
    sys.stdout.write(asyncio.run(call("child")))
    sys.stdout.flush()
    os._exit(0)
os.waitpid(child, 0)
sys.stdout.write(loop.run_until_complete(call("parent again")))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=20
    )
    assert done.stdout == "child\nparent again\n"


def test_secrets_are_not_in_the_command_line_or_environment_of_the_helper(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LILUX_TEST_TOKEN", "S3CRET-inherited")

    async def main() -> None:
        job = asyncio.create_task(
            SubprocessPrimitive().execute(
                {
                    "command": "sh",
                    "args": ["-c", f"echo $$ > {tmp_path}/pid; exec sleep 600", "S3CRET-argument"],
                    "env": {"TOKEN": "S3CRET-variable"},
                    "input_data": "S3CRET-input",
                }
            )
        )
        await asyncio.to_thread(pid_in, tmp_path / "pid")
        for process in helper_processes(own_helpers()[0].pid):
            shown = Path(f"/proc/{process.pid}/cmdline").read_bytes()
            shown += Path(f"/proc/{process.pid}/environ").read_bytes()
            assert b"S3CRET" not in shown
        job.cancel()
        await asyncio.gather(job, return_exceptions=True)

    asyncio.run(main())


def test_without_lilux_proc_the_primitive_cannot_be_created(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "program")])
    with pytest.raises(ConfigurationError) as raised:
        SubprocessPrimitive()
    assert str(raised.value) == (
        "lilux-proc binary not found on PATH. Install it with: pip install lilux-proc"
    )


def test_lilux_proc_is_searched_on_path_then_beside_the_interpreter_and_the_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    places = [tmp_path / name for name in ("path", "interpreter", "program")]
    for place in places:
        place.mkdir()
        (place / "lilux-proc").write_text("#!/bin/sh\n")
        (place / "lilux-proc").chmod(0o755)
    monkeypatch.setenv("PATH", str(places[0]))
    monkeypatch.setattr(sys, "executable", str(places[1] / "python"))
    monkeypatch.setattr(sys, "argv", [str(places[2] / "rye")])
    for place in places:
        assert find_helper() == str(place / "lilux-proc")
        (place / "lilux-proc").rename(place / "removed")
        monkeypatch.setenv(
            "PATH", f"{tmp_path}/nowhere{os.pathsep}{place}"
        )  # a different search, so not cached


def test_a_binary_in_the_working_directory_is_not_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    planted = tmp_path / "lilux-proc"
    planted.write_text("#!/bin/sh\n")
    planted.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f".{os.pathsep}{os.pathsep}relative")
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    for program in ("-c", "script.py", "./script.py", ""):
        monkeypatch.setattr(sys, "argv", [program])
        with pytest.raises(ConfigurationError):
            find_helper()


def test_a_binary_that_is_not_lilux_proc_gives_a_clear_error(
    execute: Execute, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake = tmp_path / "lilux-proc"
    fake.write_text("#!/bin/sh\necho this is not a frame, is it\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(HelperError, match=r"^lilux-proc (sent a malformed|ended unexpectedly)"):
        execute({"command": "true"})
    fake.write_text("not executable code")
    with pytest.raises(ConfigurationError) as raised:
        execute({"command": "true"})
    assert str(raised.value) == (
        f"{fake} cannot be started: Exec format error; reinstall lilux-proc"
    )
