"""`spawn`, and `kill` and `status` of any process by its pid."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from proc_client import ProcClient, find_binary, run_command
from processes import is_alive, pid_in, wait_until


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that is not a child of the helper, in its own process group."""
    process = subprocess.Popen(["sleep", "600"], process_group=0)
    yield process
    process.kill()
    process.wait()


def spawned(client: ProcClient, *command: str, **fields: Any) -> psutil.Process:
    answer = client.call("spawn", command=command[0], args=list(command[1:]), **fields)
    assert answer.header["success"] is True, answer.header
    return psutil.Process(answer.header["pid"])


def does_not_exist(pid: int) -> bool:
    return not psutil.pid_exists(pid)


def test_spawned_process_outlives_the_helper(client: ProcClient) -> None:
    process = spawned(client, "sleep", "600")
    try:
        assert client.close() == 0
        assert is_alive(process)
    finally:
        process.kill()


def test_spawned_process_leads_its_session_and_has_empty_stdin(
    client: ProcClient, tmp_path: Path
) -> None:
    process = spawned(client, "sh", "-c", "read line; echo $$ > pid; sleep 600", cwd=str(tmp_path))
    try:
        assert pid_in(tmp_path / "pid").pid == process.pid
        assert os.getsid(process.pid) == process.pid
    finally:
        client.call("kill", pid=process.pid, grace=0)


def test_pid_is_only_reported_for_a_running_program(client: ProcClient) -> None:
    answer = client.call("spawn", command="no-such-command")
    assert answer.header["success"] is False
    assert answer.header["pid"] is None
    assert answer.header["error"] == "Failed to spawn: no-such-command: No such file or directory"
    assert client.call("spawn").header["error"] == "No command specified"


def test_output_is_appended_to_a_private_log(client: ProcClient, tmp_path: Path) -> None:
    log = tmp_path / "log"
    for _ in range(2):
        spawned_pid = client.call(
            "spawn", command="sh", args=["-c", "echo out; echo err >&2"], log_file=str(log)
        ).header["pid"]
        wait_until(partial(does_not_exist, spawned_pid), "the process ends and is reaped")
    assert log.read_text() == "out\nerr\n" * 2
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_a_log_that_cannot_be_opened_is_an_error(client: ProcClient) -> None:
    answer = client.call("spawn", command="true", log_file="/no/such/folder/log")
    assert answer.header["error"] == "log file /no/such/folder/log: No such file or directory"


def test_orphans_of_a_spawned_process_are_left_alone(client: ProcClient, tmp_path: Path) -> None:
    script = f"(sh -c 'echo $$ > {tmp_path}/pid; exec sleep 600' &)"
    assert client.call("spawn", command="sh", args=["-c", script]).header["success"] is True
    orphan = pid_in(tmp_path / "pid")
    try:
        # The end of a job starts a sweep, which must not find this orphan.
        client.exec("sh", "-c", "sleep 600 & exit 0")
        client.close()
        assert is_alive(orphan)
    finally:
        orphan.kill()


def test_spawn_command_returns_while_the_process_runs() -> None:
    code, printed = run_command("spawn", "--", "sleep", "600")
    process = psutil.Process(printed["pid"])
    try:
        assert code == 0
        assert is_alive(process)
        assert process.ppid() != os.getpid()
    finally:
        process.kill()


def test_status_of_a_running_process_a_zombie_and_a_missing_one(
    client: ProcClient, sleeper: subprocess.Popen[bytes]
) -> None:
    assert client.call("status", pid=sleeper.pid).header["alive"] is True
    sleeper.kill()
    # It is not reaped, so it becomes a zombie.
    wait_until(lambda: not is_alive(psutil.Process(sleeper.pid)), "the process is a zombie")
    assert client.call("status", pid=sleeper.pid).header["alive"] is False
    sleeper.wait()
    assert client.call("status", pid=sleeper.pid).header["alive"] is False


def test_kill_terminates_a_process(client: ProcClient, sleeper: subprocess.Popen[bytes]) -> None:
    answer = client.call("kill", pid=sleeper.pid, grace=0.5)
    assert (answer.header["success"], answer.header["method"]) == (True, "terminated")
    assert sleeper.wait() == -signal.SIGTERM


def test_kill_sends_sigkill_to_a_process_that_ignores_sigterm(
    client: ProcClient, tmp_path: Path
) -> None:
    script = f"trap '' TERM; echo $$ > {tmp_path}/pid; while :; do sleep 1; done"
    process = spawned(client, "sh", "-c", script)
    pid_in(tmp_path / "pid")
    answer = client.call("kill", pid=process.pid, grace=0.2)
    assert (answer.header["success"], answer.header["method"]) == (True, "killed")
    assert not is_alive(process)


def test_kill_of_a_process_that_has_ended_reports_already_dead(client: ProcClient) -> None:
    process = subprocess.Popen(["true"])
    wait_until(lambda: not is_alive(psutil.Process(process.pid)), "the process is a zombie")
    assert client.call("kill", pid=process.pid).header["method"] == "already_dead"
    process.wait()
    answer = client.call("kill", pid=process.pid)
    assert (answer.header["success"], answer.header["method"]) == (True, "already_dead")


def test_kill_of_a_leader_ends_its_group(linux: ProcClient, tmp_path: Path) -> None:
    member = f"trap '' TERM; echo $$ > {tmp_path}/member; while :; do sleep 0.05; done"
    leader = spawned(linux, "sh", "-c", f'sh -c "{member.replace("$", chr(92) + "$")}" & sleep 600')
    stubborn = pid_in(tmp_path / "member")
    answer = linux.call("kill", pid=leader.pid)
    assert answer.header["method"] == "terminated"
    # It ignores SIGTERM, so it was killed after the leader had ended and before the answer.
    assert not is_alive(stubborn)


def test_kill_of_a_leader_ends_processes_that_its_group_starts_meanwhile(
    linux: ProcClient, tmp_path: Path
) -> None:
    script = f"trap '' TERM; echo $$ > {tmp_path}/pid; while :; do sleep 600 & sleep 0.1; done"
    leader = spawned(linux, "sh", "-c", script)
    pid_in(tmp_path / "pid")
    answer = linux.call("kill", pid=leader.pid, grace=0.5)
    assert answer.header["method"] == "killed"
    members = [p for p in psutil.process_iter() if group_of(p.pid) == leader.pid]
    assert [member for member in members if is_alive(member)] == []


def group_of(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return 0


def test_the_first_process_of_the_system_cannot_be_killed(client: ProcClient) -> None:
    answer = client.call("kill", pid=1)
    assert answer.kind == "error"
    assert answer.header["message"] == (
        "pid 1 is the first process of the system and cannot be killed"
    )
    assert run_command("kill", "1")[0] == 2


def test_kill_command_survives_ending_its_own_group(tmp_path: Path) -> None:
    # The shell leads the process group of lilux-proc.
    script = f"{find_binary()} kill $$ > {tmp_path}/printed; true"
    subprocess.run(["sh", "-c", script], process_group=0, check=False)
    wait_until(lambda: (tmp_path / "printed").read_text() != "", "the result is printed")
    assert '"method":"terminated"' in (tmp_path / "printed").read_text()


def test_kill_of_a_member_does_not_end_its_group(client: ProcClient, tmp_path: Path) -> None:
    leader = spawned(
        client, "sh", "-c", f"sh -c 'echo $$ > {tmp_path}/member; exec sleep 600' & sleep 600"
    )
    try:
        member = pid_in(tmp_path / "member")
        client.call("kill", pid=member.pid, grace=0.5)
        assert not is_alive(member)
        assert is_alive(leader)
    finally:
        client.call("kill", pid=leader.pid, grace=0)


def test_kill_terminates_a_stopped_process(
    client: ProcClient, sleeper: subprocess.Popen[bytes]
) -> None:
    sleeper.send_signal(signal.SIGSTOP)
    answer = client.call("kill", pid=sleeper.pid, grace=0.5)
    assert answer.header["method"] == "terminated"


def test_kill_returns_as_soon_as_the_process_has_ended(client: ProcClient) -> None:
    process = spawned(client, "sleep", "600")
    # The grace is longer than the client waits for an answer.
    answer = client.call("kill", pid=process.pid, grace=3600)
    assert answer.header["method"] == "terminated"


def test_a_process_that_has_reused_a_pid_is_left_alone(
    client: ProcClient, sleeper: subprocess.Popen[bytes]
) -> None:
    # As if `sleeper` had reused the pid of the process that the caller means.
    earlier = 1
    assert client.call("status", pid=sleeper.pid, start_time=earlier).header["alive"] is False
    answer = client.call("kill", pid=sleeper.pid, start_time=earlier)
    assert answer.header["method"] == "already_dead"
    assert sleeper.poll() is None


def test_start_time_from_spawn_identifies_the_process(client: ProcClient) -> None:
    header = client.call("spawn", command="sleep", args=["600"]).header
    identity = {"pid": header["pid"], "start_time": header["start_time"]}
    assert client.call("status", **identity).header["alive"] is True
    assert client.call("kill", **identity, grace=1).header["method"] == "terminated"
    assert client.call("status", **identity).header["alive"] is False


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a helper as another user")
def test_kill_of_a_process_of_another_user_is_refused(sleeper: subprocess.Popen[bytes]) -> None:
    nobody = 65534
    done = subprocess.run(
        ["setpriv", f"--reuid={nobody}", f"--regid={nobody}", "--clear-groups", "/proc/self/fd/9",
         "kill", str(sleeper.pid)],
        capture_output=True, text=True, check=False, pass_fds=[], close_fds=False,
        preexec_fn=lambda: os.dup2(os.open(find_binary(), os.O_RDONLY), 9),
    )  # fmt: skip
    assert f"not permitted to signal process {sleeper.pid}" in done.stdout, done
    assert sleeper.poll() is None


def test_kill_and_status_commands_print_json(sleeper: subprocess.Popen[bytes]) -> None:
    pid = str(sleeper.pid)
    assert run_command("status", pid) == (0, {"pid": sleeper.pid, "alive": True})
    code, printed = run_command("kill", pid, "--grace", "1")
    assert (code, printed["method"]) == (0, "terminated")
    assert run_command("status", pid) == (1, {"pid": sleeper.pid, "alive": False})
