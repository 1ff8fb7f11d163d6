"""One connection: many requests at once, malformed input, and the end."""

from __future__ import annotations

import json
import os
import pty
import socket
import struct
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from proc_client import ProcClient, find_binary
from processes import helper_processes, pid_in, wait_until


def test_concurrent_requests_get_their_own_answers(client: ProcClient) -> None:
    count = 200
    wanted = {}
    for n in range(count):
        text = f"request {n}"
        wanted[client.send("exec", text.encode(), command="cat")] = text
    got = {}
    for _ in range(count):
        answer = client.receive()
        got[answer.id] = answer.stdout.decode()
    assert got == wanted


def test_a_long_job_does_not_delay_a_short_one(client: ProcClient) -> None:
    long = client.send("exec", command="sleep", args=["600"])
    assert client.call("exec", command="echo", args=["short"]).stdout == b"short\n"
    client.send("cancel", target=long)


@pytest.mark.parametrize(
    ("header", "kind", "message"),
    [
        (b"{", "invalid_request", "request cannot be read: EOF while parsing"),
        (b"[]", "invalid_request", "request cannot be read: invalid"),
        (b"\xff\xfe", "invalid_request", "request cannot be read: "),
        (b'{"id": 9}', "invalid_request", "request cannot be read: missing field `op`"),
        (
            b'{"id": 9, "op": "dance"}',
            "unknown_operation",
            "unknown operation; use one of exec, spawn, kill, status, probe, cancel, pause, resume",
        ),
        (
            b'{"id": 9, "op": "exec", "command": "true", "timeout": -1}',
            "invalid_request",
            "timeout must be a number of seconds above 0 and at most 31622400, got -1",
        ),
        (
            b'{"id": 9, "op": "exec", "command": "true", "timeout": 1e18}',
            "invalid_request",
            "timeout must be a number of seconds above 0 and at most 31622400",
        ),
        (
            b'{"id": 9, "op": "exec", "command": "true", "args": ["a\\u0000b"]}',
            "invalid_request",
            "args[0] contains a NUL byte; remove it",
        ),
        (
            b'{"id": 9, "op": "exec", "command": "true", "comand": 1}',
            "invalid_request",
            "exec request: unknown field `comand`",
        ),
        (
            b'{"id": 9, "op": "kill", "pid": 0}',
            "invalid_request",
            "pid must be a positive number, got 0",
        ),
        (b'{"id": 9, "op": "status"}', "invalid_request", "status request: missing field `pid`"),
        (b'{"id": 9, "op": "exec", "env": {"A=B": "x"}}', "invalid_request", "env name"),
        (b'{"id": 9, "op": "cancel"}', "invalid_request", "cancel request: missing field"),
    ],
)
def test_an_invalid_request_is_refused_and_other_jobs_continue(
    client: ProcClient, header: bytes, kind: str, message: str
) -> None:
    job = client.send("exec", command="sh", args=["-c", "read x; echo $x"], stdin="alive\n")
    client.send_frame(header)
    answers = [client.receive(), client.receive()]
    refused = next(answer for answer in answers if answer.kind == "error")
    finished = next(answer for answer in answers if answer.kind == "result")
    assert refused.header["error"] == kind
    assert refused.header["message"].startswith(message)
    assert refused.id == (9 if b'"id"' in header else 0)
    assert (finished.id, finished.stdout) == (job, b"alive\n")


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (struct.pack("<I", 3) + b"abc", "frame of 3 bytes has no room for its header length"),
        (struct.pack("<I", 0), "frame of 0 bytes has no room for its header length"),
        (struct.pack("<II", 8, 5) + b"abcd", "header length 5 is beyond the frame's 4 bytes"),
        (
            struct.pack("<II", 17_000_004, 17_000_000) + b" " * 17_000_000,
            "header of 17000000 bytes is over the limit of 16777216",
        ),
    ],
)
def test_a_malformed_frame_is_reported_and_skipped(
    client: ProcClient, frame: bytes, message: str
) -> None:
    client.socket.sendall(frame)
    answer = client.receive()
    assert (answer.kind, answer.id, answer.header["error"]) == ("error", 0, "invalid_frame")
    assert answer.header["message"] == message
    assert client.exec("echo", "on").stdout == b"on\n"


def test_a_refusal_does_not_quote_a_value_of_the_wrong_type(client: ProcClient) -> None:
    answer = client.call("exec", command="true", args="TOP-S3CRET")
    assert answer.kind == "error"
    assert "S3CRET" not in json.dumps(answer.header)


@pytest.mark.parametrize(
    "fields",
    [{"env": {"TOKEN=S3CRET": ""}}, {"env_mode": "S3CRET"}, {"background": "S3CRET"}],
)
def test_a_refusal_does_not_quote_possible_secrets(
    client: ProcClient, fields: dict[str, Any]
) -> None:
    answer = client.call("exec", command="true", **fields)
    assert answer.kind == "error"
    assert "S3CRET" not in json.dumps(answer.header)


def test_callers_cannot_use_operations_between_worker_and_keeper(
    client: ProcClient, tmp_path: Path
) -> None:
    with subprocess.Popen(["sleep", "600"], process_group=0) as stranger:
        for op in ("guard", "unguard"):
            answer = client.call(op, pid=stranger.pid)
            assert (answer.kind, answer.header["error"]) == ("error", "unknown_operation")
        client.close()
        assert stranger.poll() is None
        stranger.kill()


def test_a_non_blocking_connection_is_served() -> None:
    with ProcClient() as client:
        client.exec("true")
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.setblocking(False)
        process = subprocess.Popen(
            [find_binary(), "serve"], stdin=theirs.fileno(), stdout=theirs.fileno()
        )
        theirs.close()
        header = b'{"id": 1, "op": "status", "pid": 1}'
        ours.settimeout(30)
        ours.sendall(struct.pack("<II", 4 + len(header), len(header)) + header)
        assert b'"alive":true' in ours.recv(65536)
        ours.close()
        assert process.wait(timeout=10) == 0


def test_idle_threads_end_after_a_burst(linux: ProcClient) -> None:
    for _ in range(150):
        linux.send("exec", command="sleep", args=["0.5"])
    for _ in range(150):
        linux.receive()
    worker = helper_processes(linux.process.pid)[-1]
    wait_until(lambda: worker.num_threads() < 50, "idle threads have ended")
    assert linux.exec("echo", "on").stdout == b"on\n"


def test_an_id_in_use_is_refused(client: ProcClient) -> None:
    client.send("exec", command="sleep", args=["600"])
    client.send_frame(b'{"id": 1, "op": "exec", "command": "true"}')
    answer = client.receive()
    assert answer.header["message"] == (
        "id 1 belongs to a job that is still running; give each request its own id"
    )


def contains(path: Path, text: str) -> bool:
    return text in path.read_text()


def test_command_lines_and_environments_of_the_helper_contain_no_secrets_of_jobs(
    client: ProcClient, tmp_path: Path
) -> None:
    script = f"echo $$ > {tmp_path}/pid; exec sleep 600"
    for background in ("end", "keep"):
        client.send(
            "exec",
            b"S3CRET-stdin",
            command="sh",
            args=["-c", script, "S3CRET-argument"],
            env={"TOKEN": "S3CRET-variable"},
            background=background,
        )
        job = pid_in(tmp_path / "pid")
        (tmp_path / "pid").unlink()
        # Empty while the kernel replaces the shell with sleep.
        environment = Path(f"/proc/{job.pid}/environ")
        wait_until(partial(contains, environment, "S3CRET-variable"), "the job has its secret")
    for process in helper_processes(client.process.pid):
        shown = Path(f"/proc/{process.pid}/cmdline").read_bytes()
        shown += Path(f"/proc/{process.pid}/environ").read_bytes()
        assert b"S3CRET" not in shown


def test_nothing_polls_while_jobs_wait(linux: ProcClient, tmp_path: Path) -> None:
    stubborn = f"trap '' TERM; echo $$ > {tmp_path}/pid; exec sleep 600"
    linux.send("exec", command="sh", args=["-c", stubborn], stream=True)
    victim = pid_in(tmp_path / "pid")
    linux.send("kill", pid=victim.pid, grace=600)

    def switches() -> dict[str, int]:
        found = {}
        for process in helper_processes(linux.process.pid):
            for status in Path(f"/proc/{process.pid}/task").glob("*/status"):
                fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
                found[str(status)] = int(fields["voluntary_ctxt_switches"])
        return found

    def settled() -> bool:
        states = {task for p in helper_processes(linux.process.pid) for task in [p.status()]}
        return states == {"sleeping"}

    wait_until(settled, "every process of the helper is asleep")
    before = switches()
    # Another process waits, so that this one cannot wake the helper.
    subprocess.run(["sleep", "1"], check=True)
    assert switches() == before


def test_closing_the_connection_ends_the_helper_with_success(client: ProcClient) -> None:
    client.exec("true")
    client.send("exec", command="sleep", args=["600"])
    own = helper_processes(client.process.pid)
    assert client.close() == 0
    wait_until(
        lambda: not any(process.is_running() for process in own),
        "all processes of the helper have ended",
    )


def test_ctrl_c_at_the_terminal_of_the_caller_does_not_reach_the_helper(client: ProcClient) -> None:
    client.exec("true")
    groups = {os.getpgid(process.pid) for process in helper_processes(client.process.pid)}
    assert os.getpgrp() not in groups


def test_an_inherited_socket_can_be_the_connection() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        number = theirs.fileno()
        process = subprocess.Popen([find_binary(), "serve", "--fd", str(number)], pass_fds=[number])
        theirs.close()
        header = b'{"id": 1, "op": "exec", "command": "echo", "args": ["hi"]}'
        ours.sendall(struct.pack("<II", 4 + len(header), len(header)) + header)
        ours.settimeout(30)
        assert b'"success":true' in ours.recv(65536)
        # No other process of the helper keeps the socket open.
        process.kill()
        process.wait()
        assert ours.recv(1) == b""


def test_pipes_can_be_the_connection() -> None:
    header = b'{"id": 1, "op": "status", "pid": 1}'
    with subprocess.Popen(
        [find_binary(), "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(struct.pack("<II", 4 + len(header), len(header)) + header)
        process.stdin.flush()
        size, _ = struct.unpack("<II", process.stdout.read(8))
        assert json.loads(process.stdout.read(size - 4))["alive"] is True
        process.stdin.close()
        assert process.wait(timeout=10) == 0


def test_a_terminal_is_refused_with_a_hint() -> None:
    controller, terminal = pty.openpty()
    done = subprocess.run(
        [find_binary(), "serve"],
        stdin=terminal,
        capture_output=True,
        text=True,
        timeout=10,
        check=False,
    )
    os.close(controller)
    os.close(terminal)
    assert done.returncode == 1
    assert done.stderr == (
        "lilux-proc: serve needs a pipe or a socket, not a terminal; see lilux-proc serve --help\n"
    )
