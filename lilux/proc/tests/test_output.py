"""Input and output: concurrent, limited, and complete up to the limit."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from pathlib import Path
from typing import Any

import pytest
from proc_client import ProcClient
from processes import helper_processes, is_alive, pid_in, wait_until

MB = 1_000_000

# Writes to both streams while it reads. If the helper served the streams one after the other, both
# sides would block.
BUSY = """
import hashlib, os, sys, threading
chunk, count = b"0123456789abcdef" * 6250, int(sys.argv[1])
def write(fd):
    for _ in range(count):
        view = memoryview(chunk)
        while view:
            view = view[os.write(fd, view):]
writers = [threading.Thread(target=write, args=(fd,)) for fd in (1, 2)]
for writer in writers: writer.start()
digest = hashlib.sha256()
while data := os.read(0, 65536): digest.update(data)
for writer in writers: writer.join()
os.write(1, digest.hexdigest().encode())
"""


def peak_memory(client: ProcClient) -> int:
    """The sum of the peak resident memory of the helper's processes, in bytes."""
    peaks = []
    for process in helper_processes(client.process.pid):
        status = Path(f"/proc/{process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        peaks.append(int(line.split()[1]) * 1024)
    return sum(peaks)


def test_stdin_and_both_outputs_are_served_concurrently_without_loss(client: ProcClient) -> None:
    fed = bytes(range(256)) * (10 * MB // 256)
    answer = client.exec(
        "python3", "-c", BUSY, "1000", payload=fed, output_limit=200 * MB, timeout=120
    )
    assert answer.header["return_code"] == 0
    assert answer.header["truncated"] == {"stdout": 0, "stderr": 0}
    written = b"0123456789abcdef" * 6250 * 1000
    assert answer.stderr == written
    assert answer.stdout == written + hashlib.sha256(fed).hexdigest().encode()


def test_output_above_the_limit_is_truncated_and_memory_is_bounded(
    client: ProcClient,
) -> None:
    client.exec("true")
    before = peak_memory(client)
    limit = 1024 * 1024
    answer = client.exec(
        "sh", "-c", "echo first; head -c 200000000 /dev/zero; echo last", output_limit=limit
    )
    omitted = answer.header["truncated"]["stdout"]
    mark = f"\n[... {omitted} bytes left out ...]\n".encode()
    assert answer.stdout.startswith(b"first\n")
    assert answer.stdout.endswith(b"last\n")
    assert mark in answer.stdout
    assert omitted + len(answer.stdout) - len(mark) == 200_000_000 + len("first\nlast\n")
    assert len(answer.stdout) - len(mark) == limit
    assert peak_memory(client) - before < 16 * MB


def test_default_limit_is_ten_mebibytes_per_stream(client: ProcClient) -> None:
    answer = client.exec("head", "-c", str(10 * 1024 * 1024), "/dev/zero")
    assert answer.header["truncated"]["stdout"] == 0
    answer = client.exec("head", "-c", str(10 * 1024 * 1024 + 1), "/dev/zero")
    assert answer.header["truncated"]["stdout"] == 1


def test_a_hundred_megabytes_of_stdin_arrive(client: ProcClient) -> None:
    answer = client.exec("sha256sum", payload=b"x" * 100 * MB)
    assert answer.stdout.split()[0].decode() == hashlib.sha256(b"x" * 100 * MB).hexdigest()


def test_a_job_that_does_not_read_its_stdin_still_ends(client: ProcClient) -> None:
    assert client.exec("echo", "done", payload=b"x" * MB).stdout == b"done\n"
    assert client.exec("head", "-c", "3", payload=b"x" * MB).stdout == b"xxx"


def test_chunks_arrive_while_the_job_runs_and_add_up_to_its_output(client: ProcClient) -> None:
    wanted = client.send(
        "exec",
        command="sh",
        args=["-c", "echo one; read line; echo $line; echo err >&2; sleep 600"],
        stdin="two\n",
        stream=True,
    )
    seen = {"stdout": b"", "stderr": b""}
    while seen != {"stdout": b"one\ntwo\n", "stderr": b"err\n"}:
        chunk = client.receive()
        assert chunk.id == wanted
        seen[chunk.kind] += chunk.payload
    # The job is still running, so the chunks were sent before its result.
    client.send("cancel", target=wanted)
    results = [client.receive(), client.receive()]
    result = next(answer for answer in results if answer.id == wanted)
    assert result.header["cancelled"] is True
    assert result.stdout == b"one\ntwo\n"


def test_streamed_output_can_be_omitted_from_the_result(client: ProcClient) -> None:
    client.send(
        "exec", command="head", args=["-c", "5000000", "/dev/zero"], stream=True, capture=False
    )
    received = 0
    while (answer := client.receive()).kind == "stdout":
        received += len(answer.payload)
    assert received == 5_000_000
    assert (answer.kind, answer.payload) == ("result", b"")


def test_a_client_that_stops_reading_blocks_the_job_but_not_its_timeout(
    client: ProcClient, tmp_path: Path
) -> None:
    client.exec("true")
    before = peak_memory(client)
    script = f"echo $$ > {tmp_path}/pid; exec cat /dev/zero"
    client.send("exec", command="sh", args=["-c", script], stream=True, capture=False, timeout=2)
    job = pid_in(tmp_path / "pid")
    wait_until(lambda: not is_alive(job), "the job ends although its output is not read")
    assert peak_memory(client) - before < 16 * MB
    while (answer := client.receive()).kind == "stdout":
        pass
    assert answer.header["timed_out"] is True


def test_complete_output_can_be_written_to_a_file(client: ProcClient, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    answer = client.exec("seq", "100000", output_limit=100, stdout_file=str(whole))
    assert answer.header["truncated"]["stdout"] > 0
    assert whole.read_text().split() == [str(n) for n in range(1, 100001)]
    assert stat.S_IMODE(whole.stat().st_mode) == 0o600


def test_an_output_file_that_cannot_be_written_is_reported(
    client: ProcClient, tmp_path: Path
) -> None:
    answer = client.exec("echo", "x", stdout_file=str(tmp_path / "no" / "file"))
    assert answer.stderr.decode() == (
        f"Failed to spawn: output file {tmp_path}/no/file: No such file or directory"
    )
    answer = client.exec("echo", "x", stdout_file="/dev/full")
    assert answer.stdout == b"x\n"
    assert answer.header["file_error"] == "No space left on device"


def test_output_of_one_job_can_be_paused_while_others_continue(client: ProcClient) -> None:
    held = client.send("exec", command="cat", args=["/dev/zero"], stream=True, capture=False)
    assert client.receive().id == held
    client.send("pause", target=held)
    while (answer := client.receive()).kind == "stdout":
        pass
    assert answer.header["found"] is True
    # At most one chunk was in flight. Then only the other job sends.
    client.send("exec", command="echo", args=["through"])
    while (answer := client.receive()).kind == "stdout":
        pass
    assert answer.stdout == b"through\n"
    client.send("resume", target=held)
    kinds = [client.receive().kind, client.receive().kind]
    assert "stdout" in kinds
    client.send("cancel", target=held)


def test_output_written_while_paused_is_in_the_result(client: ProcClient, tmp_path: Path) -> None:
    go_on = tmp_path / "go-on"
    script = f"echo up; while [ ! -e {go_on} ]; do sleep 0.01; done; head -c 50000 /dev/zero"
    job = client.send("exec", command="sh", args=["-c", script], stream=True)
    assert client.receive().payload == b"up\n"
    client.send("pause", target=job)
    assert client.receive().header["found"] is True
    go_on.touch()
    received = b""
    while (answer := client.receive()).kind == "stdout":
        received += answer.payload
    assert len(received) == 50000
    assert len(answer.stdout) == 50003


@pytest.mark.parametrize("then", ["", "; sleep 600"])
def test_a_line_is_completed_before_the_other_stream_is_read(
    client: ProcClient, tmp_path: Path, then: str
) -> None:
    go_on, written = tmp_path / "go-on", tmp_path / "written"
    script = (
        f"printf start >&2; while [ ! -e {go_on} ]; do sleep 0.01; done; "
        f"echo result; echo ' and end' >&2; touch {written}{then}"
    )
    job = client.send("exec", command="sh", args=["-c", script], stream=True)
    assert client.receive().payload == b"start"
    client.send("pause", target=job)
    assert client.receive().header["found"] is True
    go_on.touch()
    wait_until(written.exists, "both streams are written")
    client.send("resume", target=job)
    chunks: list[bytes | bytearray] = []
    while len(chunks) < 2:
        if (answer := client.receive()).kind in ("stdout", "stderr"):
            chunks.append(answer.payload)
    assert chunks == [b" and end\n", b"result\n"]
    client.send("cancel", target=job)


@pytest.mark.parametrize("field", ["stdout_file", "stderr_file"])
def test_a_named_pipe_as_output_file_is_refused_without_blocking(
    client: ProcClient, tmp_path: Path, field: str
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    fields: dict[str, Any] = {field: str(pipe)}
    answer = client.call("exec", command="true", **fields)
    assert answer.stderr.startswith(f"Failed to spawn: output file {pipe}: ".encode())
    answer = client.call("spawn", command="true", log_file=str(pipe))
    assert answer.header["error"].startswith(f"log file {pipe}: ")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    answer = client.call("exec", command="true", **fields)
    os.close(reader)
    assert answer.stderr.endswith(b": not a regular file or a device")


def test_a_client_that_stops_reading_blocks_a_job_that_keeps_its_background(
    client: ProcClient,
) -> None:
    client.exec("true")
    before = peak_memory(client)
    args: dict[str, Any] = {
        "command": "cat",
        "args": ["/dev/zero"],
        "background": "keep",
        "timeout": 2,
    }
    client.send("exec", stream=True, capture=False, **args)
    assert client.receive().kind == "stdout"
    time.sleep(1)  # time for output to accumulate
    assert peak_memory(client) - before < 32 * MB
    while (answer := client.receive()).kind == "stdout":
        pass
    assert answer.header["timed_out"] is True


def test_truncated_output_of_many_jobs_uses_no_more_memory_than_its_limits(
    client: ProcClient,
) -> None:
    client.exec("true")
    before = peak_memory(client)
    limit, jobs = 1024 * 1024, 20
    for _ in range(jobs):
        args = ["-c", "5000000", "/dev/zero"]
        client.send("exec", command="head", args=args, output_limit=limit)
    time.sleep(1)  # a slow client: all results are queued
    for _ in range(jobs):
        assert client.receive().header["truncated"]["stdout"] > 0
    assert peak_memory(client) - before < jobs * limit + 32 * MB
