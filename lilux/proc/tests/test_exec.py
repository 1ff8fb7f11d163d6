"""`exec`: what a job inherits, and its result."""

from __future__ import annotations

import json
import os
import resource
import signal
from pathlib import Path

import pytest
from proc_client import ProcClient


def test_result_has_output_exit_code_and_duration(client: ProcClient) -> None:
    answer = client.exec("sh", "-c", "echo out; echo err >&2; exit 3")
    assert answer.kind == "result"
    assert (answer.stdout, answer.stderr) == (b"out\n", b"err\n")
    header = answer.header
    assert (header["success"], header["return_code"]) == (False, 3)
    assert header["duration_ms"] > 0
    assert (header["timed_out"], header["cancelled"], header["signal"]) == (False, False, None)
    assert header["truncated"] == {"stdout": 0, "stderr": 0}
    assert client.exec("true").header["success"] is True


def test_no_command_is_a_failed_result(client: ProcClient) -> None:
    for answer in (client.call("exec"), client.call("exec", command="")):
        assert answer.header["return_code"] == -1
        assert answer.stderr == b"No command specified"
        assert answer.header["tree"]["known_by"] == "not_started"


@pytest.mark.parametrize("command", ["no-such-command", "/no/such/command"])
def test_a_missing_command_is_named(client: ProcClient, command: str) -> None:
    answer = client.exec(command)
    assert (answer.header["success"], answer.header["return_code"]) == (False, -1)
    assert answer.stderr.decode() == f"Failed to spawn: {command}: No such file or directory"
    assert answer.header["pid"] is None


def test_a_missing_working_directory_is_not_reported_as_a_missing_command(
    client: ProcClient,
) -> None:
    answer = client.exec("true", cwd="/no/such/folder")
    assert answer.stderr.decode() == (
        "Failed to spawn: working directory /no/such/folder: No such file or directory"
    )


def test_file_without_execute_permission_is_refused(client: ProcClient, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    answer = client.exec(str(script))
    assert answer.stderr.decode() == f"Failed to spawn: {script}: Permission denied"


def test_a_missing_interpreter_is_reported(client: ProcClient, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    assert client.exec(str(script)).stderr.decode() == (
        f"Failed to spawn: {script}: the interpreter in its first line does not exist"
    )


def test_death_by_a_signal_is_distinguished_from_an_exit_code(client: ProcClient) -> None:
    header = client.exec("sh", "-c", "kill -SEGV $$").header
    assert (header["signal"], header["return_code"]) == (signal.SIGSEGV, 128 + signal.SIGSEGV)
    header = client.exec("sh", "-c", f"exit {128 + signal.SIGSEGV}").header
    assert (header["signal"], header["return_code"]) == (None, 128 + signal.SIGSEGV)


def test_arguments_are_passed_unchanged(client: ProcClient) -> None:
    args = ["$HOME", "a b", "'; rm -rf x", "--flag", "", "*", "ü\n"]
    answer = client.exec("printf", "%s|", *args)
    assert answer.stdout.decode() == "".join(f"{arg}|" for arg in args)


def test_spaces_in_a_command_are_part_of_its_path(client: ProcClient, tmp_path: Path) -> None:
    script = tmp_path / "my tool"
    script.write_text("#!/bin/sh\necho ran\n")
    script.chmod(0o755)
    assert client.exec(str(script)).stdout == b"ran\n"
    assert client.exec("echo hello").stderr.startswith(b"Failed to spawn: echo hello:")


def test_bytes_that_are_not_utf8_survive_in_arguments_environment_and_paths(
    client: ProcClient, tmp_path: Path
) -> None:
    odd = os.fsdecode(b"\xff\xfe\x80")
    folder = tmp_path / odd
    folder.mkdir()
    answer = client.exec(
        "sh",
        "-c",
        'printf "%s %s %s" "$1" "$ODD" "$PWD"',
        "sh",
        odd,
        cwd=str(folder),
        env={"ODD": odd},
    )
    assert answer.stdout == b"\xff\xfe\x80 \xff\xfe\x80 " + os.fsencode(folder)


def test_output_that_is_not_utf8_is_returned_unchanged(client: ProcClient) -> None:
    assert client.exec("printf", r"\377\200a\000b").stdout == b"\xff\x80a\x00b"


def test_environment_is_merged_or_exact(platform: str) -> None:
    with ProcClient(
        "--platform", platform, env={"KEPT": "1", "PATH": os.environ["PATH"]}
    ) as client:
        merged = client.exec("env", env={"GIVEN": "2", "PATH": "/usr/bin:/bin"}).stdout.split()
        assert {b"KEPT=1", b"GIVEN=2", b"PATH=/usr/bin:/bin"} <= set(merged)
        assert len([line for line in merged if line.startswith(b"PATH=")]) == 1
        exact = client.exec("/usr/bin/env", env={"GIVEN": "2"}, env_mode="exact").stdout
        assert exact == b"GIVEN=2\n"


def test_command_is_looked_up_on_the_path_of_the_job(client: ProcClient, tmp_path: Path) -> None:
    tool = tmp_path / "special-tool"
    tool.write_text("#!/bin/sh\necho special\n")
    tool.chmod(0o755)
    answer = client.exec("special-tool", env={"PATH": f"/nowhere:{tmp_path}:/bin"})
    assert answer.stdout == b"special\n"


def test_job_starts_in_its_working_directory(client: ProcClient, tmp_path: Path) -> None:
    assert client.exec("pwd", cwd=str(tmp_path)).stdout.decode().strip() == str(tmp_path)


def test_stdin_is_the_payload(client: ProcClient) -> None:
    assert client.exec("cat", payload=b"some\x00bytes").stdout == b"some\x00bytes"
    assert client.exec("cat", stdin="text").stdout == b"text"


def test_stdin_without_input_is_empty(client: ProcClient) -> None:
    assert client.exec("cat").stdout == b""


def test_stdin_given_twice_is_refused(client: ProcClient) -> None:
    answer = client.exec("cat", payload=b"a", stdin="b")
    assert answer.header["message"] == (
        "stdin is given both in the header and as payload; give one of them"
    )


def test_job_inherits_only_three_descriptors(platform: str) -> None:
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    try:
        with ProcClient("--platform", platform) as client:
            answer = client.exec("python3", "-c", "import os; print(os.listdir('/proc/self/fd'))")
    finally:
        os.close(reading)
        os.close(writing)
    # The fourth is the directory that is being listed.
    assert len(json.loads(answer.stdout.replace(b"'", b'"'))) == 4


def test_job_starts_with_no_signal_blocked_or_ignored(client: ProcClient) -> None:
    lines = client.exec("grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status").stdout.split()
    assert lines[1::2] == [b"0000000000000000"] * 2


def test_job_has_the_callers_limit_of_open_files(client: ProcClient) -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert int(client.exec("sh", "-c", "ulimit -Sn").stdout) == soft


def test_job_leads_its_process_group_in_a_session_without_terminal(client: ProcClient) -> None:
    shown = client.exec("sh", "-c", "echo $$ $(ps -o pgid=,sid=,tty= -p $$)").stdout.split()
    assert shown[0] == shown[1]
    assert int(shown[2]) != os.getsid(0)
    assert shown[3] == b"?"
