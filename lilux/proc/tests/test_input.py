"""`input`: writing to a running job, to its stdin and to its channel."""

from __future__ import annotations

from typing import Any

import pytest
from proc_client import Answer, ProcClient, run_command

ECHO_CHANNEL = 'while read -r line <&"$CHANNEL"; do echo "got $line" >&"$CHANNEL"; done'


def shell(client: ProcClient, script: str, **fields: Any) -> int:
    return client.send("exec", command="bash", args=["-c", script], **fields)


def fed(client: ProcClient, target: int, data: bytes, **fields: Any) -> bool:
    """Send input, and return whether the job took it; no other answer may arrive before."""
    answer = client.call("input", data, target=target, **fields)
    return bool(answer.header["found"])


def until_end(client: ProcClient, job: int) -> list[Answer]:
    answers = [client.receive()]
    while answers[-1].id != job or answers[-1].kind not in {"result", "error"}:
        answers.append(client.receive())
    return answers


def test_stdin_stays_open_until_the_last_piece(client: ProcClient) -> None:
    job = shell(client, "cat", input=True)
    assert fed(client, job, b"one ")
    assert fed(client, job, b"two", last=True)
    assert client.receive().stdout == b"one two"


def test_the_payload_of_the_request_comes_before_later_pieces(client: ProcClient) -> None:
    job = client.send("exec", b"first ", command="cat", input=True)
    assert fed(client, job, b"second", last=True)
    assert client.receive().stdout == b"first second"


def test_a_piece_is_answered_only_when_the_job_has_taken_it(client: ProcClient) -> None:
    job = shell(client, "echo ready >&2; read -r line; cat >/dev/null", input=True, stream=True)
    assert client.receive().payload == b"ready\n"
    large = b"x" * 1_000_000
    piece = client.send("input", large, target=job)
    # A pipe holds 64 KiB, so an answer now would be too early; a call behind it is answered first.
    assert client.call("status", pid=1).kind == "result"
    newline = client.send("input", b"\n", target=job, last=True)
    order = [client.receive(), client.receive()]
    assert [(answer.id, answer.header["found"]) for answer in order] == [
        (piece, True),
        (newline, True),
    ]
    assert until_end(client, job)[-1].header["success"] is True


def test_input_for_a_stream_that_the_job_closed_is_not_found(client: ProcClient) -> None:
    job = shell(client, "exec <&-; echo closed; sleep 60", input=True, stream=True)
    assert client.receive().payload == b"closed\n"
    assert not fed(client, job, b"unread")
    client.send("cancel", target=job)
    assert until_end(client, job)[-1].header["cancelled"] is True


@pytest.mark.parametrize("stream", ["stdin", "channel"])
def test_a_job_without_that_stream_takes_no_input(client: ProcClient, stream: str) -> None:
    job = shell(client, "echo started; sleep 60", stream=True)
    assert client.receive().payload == b"started\n"
    assert not fed(client, job, b"text", stream=stream)
    assert not fed(client, 4711, b"no such job", stream=stream)
    client.send("cancel", target=job)
    until_end(client, job)


def test_input_that_a_job_left_is_answered_when_it_ends(client: ProcClient) -> None:
    job = shell(client, "read -r line; echo $line", input=True)
    pieces = [client.send("input", text, target=job) for text in (b"go\n", b"y" * 200_000)]
    answers = {answer.id: answer for answer in (client.receive() for _ in range(3))}
    assert [answers[piece].header["found"] for piece in pieces] == [True, False]
    assert answers[job].stdout == b"go\n"


def test_a_channel_carries_messages_both_ways_beside_the_output(client: ProcClient) -> None:
    job = shell(client, f"{ECHO_CHANNEL}; echo out", channel="CHANNEL")
    for text in (b"a\n", b"b\n"):
        piece = client.send("input", text, target=job, stream="channel")
        pair = {answer.id: answer for answer in (client.receive(), client.receive())}
        assert pair[piece].header["found"] is True
        assert (pair[job].kind, pair[job].payload) == ("channel", b"got " + text)
    assert fed(client, job, b"", stream="channel", last=True)
    assert client.receive().stdout == b"out\n"


def test_a_channel_is_read_to_the_end_when_the_job_ends(client: ProcClient) -> None:
    job = shell(client, 'head -c 100000 /dev/zero >&"$CHANNEL"', channel="CHANNEL")
    *pieces, last = until_end(client, job)
    assert last.header["success"] is True
    assert sum(len(piece.payload) for piece in pieces) == 100_000


def test_a_channel_has_a_number_that_every_shell_can_name(linux: ProcClient) -> None:
    job = linux.send(
        "exec",
        command="sh",
        args=["-c", 'echo "$CHANNEL" >&3; ls /proc/self/fd'],
        channel="CHANNEL",
    )
    message, end = until_end(linux, job)
    assert message.payload == b"3\n"
    # The three streams, the channel, and what `ls` itself opened.
    assert end.stdout.split() == [b"0", b"1", b"2", b"3", b"4"]


def test_a_confined_job_keeps_its_channel(linux: ProcClient) -> None:
    job = shell(
        linux,
        'echo hello >&"$CHANNEL"',
        channel="CHANNEL",
        confinement={"read": ["/"], "execute": ["/"], "net": "none"},
    )
    message, end = until_end(linux, job)
    assert (message.payload, end.header["success"]) == (b"hello\n", True)


def test_the_name_of_a_channel_is_checked(client: ProcClient) -> None:
    answer = client.call("exec", command="true", channel="A=B")
    assert answer.header["message"] == ("env name \"A\" is empty or contains '=' or NUL; rename it")


@pytest.mark.parametrize("request_json", ['{"input": true}', '{"channel": "CHANNEL"}'])
def test_a_one_shot_command_refuses_input_that_nobody_can_send(request_json: str) -> None:
    code, printed = run_command("exec", "--request", stdin=request_json)
    field = "input" if "input" in request_json else "channel"
    assert (code, printed["error"]) == (
        2,
        f"{field} needs a connection that can send more; use `lilux-proc serve`",
    )
