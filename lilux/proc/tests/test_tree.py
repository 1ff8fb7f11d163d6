"""Ending a job ends its whole process tree."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from proc_client import ProcClient, find_binary
from processes import (
    Tree,
    assert_ended,
    helper_processes,
    is_alive,
    kill_together,
    pid_in,
    wait_until,
)


def test_timeout_ends_the_whole_tree(linux: ProcClient, tree: Tree) -> None:
    wanted = linux.send("exec", command="sh", args=["-c", tree.script()], timeout=1)
    processes = tree.processes()
    answer = linux.receive()
    assert answer.id == wanted
    # Checked at once: the answer is only sent when all have ended.
    assert [name for name, process in processes.items() if is_alive(process)] == []
    assert answer.header["tree"]["known_by"] == "subreaper"
    assert answer.header["tree"]["survivors"] == []


def test_timeout_keeps_partial_output_and_is_reported(client: ProcClient) -> None:
    answer = client.exec("sh", "-c", "echo part; printf halfway >&2; exec sleep 600", timeout=1)
    header = answer.header
    assert (header["success"], header["return_code"], header["timed_out"]) == (False, -1, True)
    assert answer.stdout == b"part\n"
    assert answer.stderr == b"halfway\nCommand timed out after 1 seconds"
    assert header["signal"] == signal.SIGTERM


def test_timeout_message_has_the_number_of_the_request(client: ProcClient) -> None:
    answer = client.exec("sleep", "600", timeout=0.25)
    assert answer.stderr == b"Command timed out after 0.25 seconds"


def test_job_that_ignores_sigterm_is_killed_on_timeout(client: ProcClient) -> None:
    answer = client.exec("sh", "-c", "trap '' TERM; while :; do sleep 1; done", timeout=1)
    assert answer.header["timed_out"] is True
    assert answer.header["signal"] == signal.SIGKILL


def test_job_can_clean_up_after_sigterm(client: ProcClient) -> None:
    script = "trap 'echo cleaned; exit 0' TERM; echo ready; while :; do sleep 0.01; done"
    answer = client.exec("sh", "-c", script, timeout=1, grace=10)
    assert answer.stdout == b"ready\ncleaned\n"
    assert (answer.header["timed_out"], answer.header["return_code"]) == (True, -1)


def test_stopped_job_is_ended_on_timeout(client: ProcClient) -> None:
    answer = client.exec("sh", "-c", "kill -STOP $$", timeout=0.5)
    assert answer.header["timed_out"] is True


def test_cancel_ends_the_whole_tree(linux: ProcClient, tree: Tree) -> None:
    job = linux.send("exec", command="sh", args=["-c", tree.script()])
    processes = tree.processes()
    linux.send("cancel", target=job)
    answers = {answer.id: answer for answer in (linux.receive(), linux.receive())}
    result = answers.pop(job)
    assert answers.popitem()[1].header["found"] is True
    assert result.header["cancelled"] is True
    assert (result.header["return_code"], result.stderr) == (-1, b"Command cancelled")
    assert [name for name, process in processes.items() if is_alive(process)] == []


def test_cancel_of_a_job_that_has_ended_reports_not_found(client: ProcClient) -> None:
    assert client.exec("true").id == 1
    assert client.call("cancel", target=1).header["found"] is False


def test_closed_connection_ends_the_whole_tree(linux: ProcClient, tree: Tree) -> None:
    linux.send("exec", command="sh", args=["-c", tree.script()])
    processes = tree.processes()
    assert linux.close() == 0
    assert [name for name, process in processes.items() if is_alive(process)] == []


@pytest.mark.parametrize("victim", ["keeper", "guardian", "worker"])
def test_sigkill_of_any_process_of_the_helper_ends_the_whole_tree(
    linux: ProcClient, tree: Tree, victim: str
) -> None:
    linux.send("exec", command="sh", args=["-c", tree.script()])
    processes = tree.processes()
    names = ("keeper", "guardian", "worker")
    own = dict(zip(names, helper_processes(linux.process.pid), strict=True))
    own[victim].send_signal(signal.SIGKILL)
    assert_ended({**processes, **own})


@pytest.mark.parametrize("first", ["guardian", "worker"])
def test_killing_guardian_and_worker_together_ends_the_whole_tree(
    linux: ProcClient, tree: Tree, first: str
) -> None:
    linux.send("exec", command="sh", args=["-c", tree.script()])
    processes = tree.processes()
    victims = helper_processes(linux.process.pid)[1:]
    kill_together(*victims if first == "guardian" else reversed(victims))
    assert_ended(processes)


def test_killing_guardian_and_worker_after_a_detached_start_ends_their_session(
    linux: ProcClient, tree: Tree
) -> None:
    detached = psutil.Process(linux.call("spawn", command="sleep", args=["600"]).header["pid"])
    linux.send("exec", command="sh", args=["-c", tree.script()])
    processes = tree.processes()
    kill_together(*helper_processes(linux.process.pid)[1:])
    # No process is left that knows of those in other sessions.
    escaped = [processes.pop(name) for name in ("own_session", "daemon")]
    assert_ended({**processes, "keeper": psutil.Process(linux.process.pid)})
    assert is_alive(detached)
    kill_together(detached, *escaped)


def test_sigterm_to_the_helper_ends_the_whole_tree(linux: ProcClient, tree: Tree) -> None:
    linux.send("exec", command="sh", args=["-c", tree.script()])
    processes = tree.processes()
    linux.process.terminate()
    assert_ended(processes)


def test_death_of_the_caller_ends_the_whole_tree(tree: Tree) -> None:
    caller = (
        "import sys; from proc_client import ProcClient\nProcClient().exec('sh', '-c', sys.argv[1])"
    )
    here = Path(__file__).parents[3] / "testing"
    process = subprocess.Popen(
        [sys.executable, "-c", caller, tree.script()], env={**os.environ, "PYTHONPATH": str(here)}
    )
    processes = tree.processes()
    process.kill()
    process.wait()
    assert_ended(processes)


@pytest.mark.parametrize("how", ["timeout", "cancel", "close", "kill worker", "kill keeper"])
def test_without_subreapers_the_process_group_is_ended(tree: Tree, how: str) -> None:
    with ProcClient("--platform", "portable") as client:
        timeout = 1 if how == "timeout" else 60
        job = client.send("exec", command="sh", args=["-c", tree.script()], timeout=timeout)
        processes = tree.processes()
        escaped = [processes.pop("own_session"), processes.pop("daemon")]
        keeper, worker = helper_processes(client.process.pid)
        match how:
            case "cancel":
                client.send("cancel", target=job)
            case "close":
                client.close()
            case "kill worker":
                worker.kill()
            case "kill keeper":
                keeper.kill()
        if how in ("timeout", "cancel"):
            answer = client.receive()
            if answer.id != job:
                answer = client.receive()
            assert answer.header["tree"]["known_by"] == "process_group"
        assert_ended(processes)
        for process in escaped:
            process.kill()


def test_call_returns_when_the_process_ends_while_others_keep_its_pipes_open(
    client: ProcClient, tmp_path: Path
) -> None:
    script = f"sh -c 'echo $$ > {tmp_path}/pid; exec sleep 600' & echo done; sleep 0.1"
    answer = client.exec("sh", "-c", script)
    assert (answer.header["success"], answer.stdout) == (True, b"done\n")
    wait_until(lambda: not is_alive_now(tmp_path / "pid"), "the other process has ended")


def is_alive_now(pid_file: Path) -> bool:
    try:
        return is_alive(pid_in(pid_file))
    except psutil.NoSuchProcess:
        return False


def test_background_processes_of_a_job_that_ends_normally_are_ended_and_counted(
    linux: ProcClient, tree: Tree
) -> None:
    job = linux.send("exec", command="sh", args=["-c", tree.script("read line")], stdin="go\n")
    answer = linux.receive()
    assert answer.id == job
    assert answer.header["success"] is True
    assert answer.header["tree"] == {"known_by": "subreaper", "ended": 3, "survivors": []}
    for name in ("child", "own_session", "daemon"):
        assert not is_alive_now(tree.folder / name)


def test_background_processes_can_be_kept(client: ProcClient, tree: Tree) -> None:
    answer = client.exec("sh", "-c", tree.script("echo done"), background="keep")
    assert answer.stdout == b"done\n"
    assert answer.header["tree"]["known_by"] == "unknown"
    kept = {name: pid_in(tree.folder / name) for name in ("child", "own_session", "daemon")}
    try:
        # Neither the end of another job nor the end of the helper ends them.
        client.exec("sh", "-c", "sleep 600 & exit 0")
        client.close()
        assert all(is_alive(process) for process in kept.values())
    finally:
        for process in kept.values():
            process.kill()


def test_timeout_ends_background_processes_that_would_be_kept(
    linux: ProcClient, tree: Tree
) -> None:
    linux.send("exec", command="sh", args=["-c", tree.script()], background="keep", timeout=1)
    processes = tree.processes()
    answer = linux.receive()
    assert answer.header["timed_out"] is True
    assert answer.header["tree"]["known_by"] == "subreaper"
    assert [name for name, process in processes.items() if is_alive(process)] == []


def test_cancel_ends_background_processes_that_would_be_kept(linux: ProcClient, tree: Tree) -> None:
    job = linux.send("exec", command="sh", args=["-c", tree.script()], background="keep")
    processes = tree.processes()
    linux.send("cancel", target=job)
    assert {linux.receive().id, linux.receive().id} == {1, 2}
    assert [name for name, process in processes.items() if is_alive(process)] == []


def test_timeout_ends_a_chain_of_forks_that_would_be_kept(
    linux: ProcClient, tmp_path: Path
) -> None:
    # Each process of the chain forks and exits at once, so it has ended when it is inspected. The
    # chain ends after 20 seconds, in case the test fails.
    chain = f"""
import os, sys, time
end = time.monotonic() + 20
os.setsid() if os.fork() == 0 else time.sleep(600)
while time.monotonic() < end:
    if os.fork(): os._exit(0)
    os.utime("{tmp_path}/beat")
"""
    (tmp_path / "beat").touch()
    answer = linux.exec(sys.executable, "-c", chain, background="keep", timeout=1)
    assert answer.header["timed_out"] is True
    last = (tmp_path / "beat").stat().st_mtime_ns
    subprocess.run(["sleep", "0.5"], check=True)
    assert (tmp_path / "beat").stat().st_mtime_ns == last
    assert answer.header["tree"]["ended"] > 0


@pytest.mark.parametrize("victim", ["keeper", "worker"])
def test_death_of_the_helper_ends_a_job_that_keeps_its_background(
    linux: ProcClient, tmp_path: Path, victim: str
) -> None:
    script = f"echo $$ > {tmp_path}/pid; exec sleep 600"
    linux.send("exec", command="sh", args=["-c", script], background="keep")
    job = pid_in(tmp_path / "pid")
    own = helper_processes(linux.process.pid)
    (own[0] if victim == "keeper" else own[-1]).kill()
    assert_ended({"job": job})


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a program that changes its user")
def test_job_that_changed_its_user_is_reported_as_a_survivor_without_delay(
    tmp_path: Path,
) -> None:
    # A copy of setpriv with the set-user-id bit works like sudo.
    changer, helper = tmp_path / "changer", tmp_path / "lilux-proc"
    setpriv = shutil.which("setpriv")
    assert setpriv
    shutil.copy(setpriv, changer)
    changer.chmod(0o4755)
    shutil.copy(find_binary(), helper)
    for folder in [tmp_path, *tmp_path.parents]:
        if folder.stat().st_uid == 0 and folder.is_relative_to("/tmp/") and folder != Path("/tmp"):
            folder.chmod(0o755)
    as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    job = [str(changer), "--reuid=0", "--clear-groups", "sleep", "30"]
    done = subprocess.run(
        [*as_nobody, str(helper), "exec", "--timeout", "0.5", "--", *job],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    printed = json.loads(done.stdout)
    assert printed["timed_out"] is True, printed
    assert printed["tree"]["survivors"] == [printed["pid"]]
    os.kill(printed["pid"], signal.SIGKILL)


def test_end_of_one_job_does_not_end_the_daemon_of_another(
    linux: ProcClient, tree: Tree, tmp_path: Path
) -> None:
    running = linux.send("exec", command="sh", args=["-c", tree.script()])
    processes = tree.processes()
    short = linux.send("exec", command="sh", args=["-c", "setsid sleep 600 & exit 0"])
    answer = linux.receive()
    assert (answer.id, answer.header["tree"]["ended"]) == (short, 1)
    assert all(is_alive(process) for process in processes.values())
    linux.send("cancel", target=running)
    linux.receive()
    linux.receive()
    assert_ended(processes)


def test_a_job_that_forks_as_fast_as_it_can_is_ended(linux: ProcClient) -> None:
    # More than any machine forks in half a second, but bounded in case the test fails: in number,
    # and each process ends after a minute.
    storm = "i=0; while [ $i -lt 5000 ]; do (setsid sleep 60 &) ; i=$((i+1)); done"
    answer = linux.exec("sh", "-c", storm, timeout=0.5)
    assert answer.header["timed_out"] is True
    worker = helper_processes(linux.process.pid)[-1]
    assert worker.children(recursive=True) == []


def test_a_supervisor_that_restarts_its_children_is_ended(
    linux: ProcClient, tmp_path: Path
) -> None:
    script = f"while :; do sh -c 'echo $$ > {tmp_path}/pid; exec sleep 600'; done"
    for background in ("end", "keep"):
        answer = linux.exec("sh", "-c", script, timeout=0.5, background=background)
        assert answer.header["timed_out"] is True
        wait_until(lambda: not is_alive_now(tmp_path / "pid"), "the last child has ended")


def test_a_daemon_whose_first_thread_has_ended_is_not_treated_as_a_zombie(
    linux: ProcClient, tmp_path: Path
) -> None:
    daemon = f"""
import ctypes, os, sys, threading, time
if os.fork(): sys.exit()
os.setsid()
if os.fork(): os._exit(0)
threading.Thread(target=time.sleep, args=(600,)).start()
with open("{tmp_path}/pid.new", "w") as file: file.write(f"{{os.getpid()}}\\n")
os.rename("{tmp_path}/pid.new", "{tmp_path}/pid")
ctypes.CDLL(None).pthread_exit(None)
"""
    wait = f"while [ ! -e {tmp_path}/pid ]; do sleep 0.01; done; sleep 0.1"
    answer = linux.exec("sh", "-c", f"{sys.executable} -c '{daemon}'; {wait}")
    assert answer.header["tree"]["ended"] == 1
    assert not psutil.pid_exists(int((tmp_path / "pid").read_text()))


def test_orphans_are_found_whenever_the_worker_is_killed(tree: Tree) -> None:
    # The job dies with the worker, at the same time as the guardian lists the processes.
    for _ in range(30):
        with ProcClient() as client:
            script = "(setsid sleep 600 &); (setsid sleep 600 &); echo up; exec sleep 600"
            client.send("exec", command="sh", args=["-c", script], stream=True)
            assert client.receive().payload == b"up\n"
            own = helper_processes(client.process.pid)
            below = own[-1].children(recursive=True)
            assert len(below) == 3
            own[-1].kill()
            assert_ended({str(process.pid): process for process in [*own, *below]})


def test_daemons_are_counted_for_the_right_job_when_many_jobs_end_at_once(
    linux: ProcClient,
) -> None:
    count = 20
    for _ in range(count):
        linux.send("exec", command="sh", args=["-c", "sleep 600 & sleep 600 & exit 0"])
    trees = [linux.receive().header["tree"] for _ in range(count)]
    assert trees == [{"known_by": "subreaper", "ended": 2, "survivors": []}] * count


def test_interrupted_exec_command_ends_its_tree_and_reports_cancelled(tree: Tree) -> None:
    process = subprocess.Popen(
        [find_binary(), "exec", "--", "sh", "-c", tree.script()], stdout=subprocess.PIPE, text=True
    )
    processes = tree.processes()
    process.send_signal(signal.SIGINT)
    printed, _ = process.communicate(timeout=15)
    assert '"cancelled":true' in printed
    assert process.returncode == 1
    assert_ended(processes)


def test_killing_the_exec_command_ends_its_tree(tree: Tree) -> None:
    argv = [find_binary(), "exec", "--", "sh", "-c", tree.script()]
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    processes = tree.processes()
    process.kill()
    process.wait()
    assert_ended(processes)
