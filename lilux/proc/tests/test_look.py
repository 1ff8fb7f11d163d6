"""`look`: the output of a running job, for a client that did not ask to stream it."""

from __future__ import annotations

from typing import Any

from proc_client import Answer, ProcClient


def shell(client: ProcClient, script: str, **fields: Any) -> int:
    return client.send("exec", command="bash", args=["-c", script], input=True, **fields)


def looked(client: ProcClient, target: int, **fields: Any) -> tuple[Answer, bytes, bytes]:
    answer = client.call("look", target=target, **fields)
    size = answer.header["stdout"]["bytes"]
    return answer, bytes(answer.payload[:size]), bytes(answer.payload[size:])


def until(client: ProcClient, target: int, wanted: bytes, **fields: Any) -> Answer:
    """Look until stdout, as it was asked for, ends with ``wanted``."""
    while True:
        answer, stdout, _ = looked(client, target, **fields)
        if stdout.endswith(wanted):
            return answer


def finish(client: ProcClient, job: int) -> Answer:
    client.send("input", b"\n", target=job, last=True)
    while True:
        answer = client.receive()
        if answer.id == job:
            return answer


def test_a_job_that_does_not_stream_is_looked_at_while_it_runs(client: ProcClient) -> None:
    job = shell(client, "echo $$; echo oops >&2; echo ready; read -r line; echo after")
    answer = until(client, job, b"ready\n")
    _, stdout, stderr = looked(client, job)
    assert stdout == f"{answer.header['pid']}\nready\n".encode()
    assert stderr == b"oops\n"
    part = answer.header["stdout"]
    assert part == {"start": 0, "bytes": len(stdout), "total": len(stdout)}
    _, rest, _ = looked(client, job, stdout_from=part["total"], stderr_from=-2)
    assert rest == b""
    assert finish(client, job).stdout == stdout + b"after\n"


def test_a_look_does_not_take_anything_from_the_result_or_the_stream(client: ProcClient) -> None:
    job = shell(client, "echo one; read -r line", stream=True)
    assert client.receive().payload == b"one\n"
    assert looked(client, job)[1] == b"one\n"
    assert finish(client, job).stdout == b"one\n"


def test_what_was_left_out_is_skipped_and_counted(client: ProcClient) -> None:
    script = "head -c 1000 /dev/zero | tr '\\0' a; echo end; read -r line"
    job = shell(client, script, output_limit=100)
    answer = until(client, job, b"end\n", stdout_from=-20)
    assert answer.header["stdout"] == {"start": 984, "bytes": 20, "total": 1004}
    answer, stdout, _ = looked(client, job, stdout_from=50)
    assert (answer.header["stdout"]["start"], stdout) == (954, b"a" * 46 + b"end\n")
    assert len(looked(client, job, limit=7)[1]) == 7
    finish(client, job)


def test_a_job_that_has_ended_is_not_found(client: ProcClient) -> None:
    assert client.call("look", target=99).header["found"] is False
    job = client.send("exec", command="true")
    assert client.receive().id == job
    assert client.call("look", target=job).header["found"] is False


def test_a_job_that_keeps_its_background_processes_is_found(client: ProcClient) -> None:
    job = shell(client, "echo kept; read -r line", background="keep")
    until(client, job, b"kept\n")
    finish(client, job)
