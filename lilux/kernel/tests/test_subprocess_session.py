"""The protocol with the helper, without a process: bytes and times in, bytes and events out."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from lilux.primitives.errors import HelperError
from lilux.primitives.subprocess import session as protocol
from lilux.primitives.subprocess.session import (
    Call,
    Ended,
    Event,
    InputTaken,
    Output,
    Session,
    connection_lost,
)

PING = {"id": 0, "op": "cancel", "target": 0}
RESULT = {
    "kind": "result",
    "success": True,
    "return_code": 0,
    "duration_ms": 1.5,
    "timed_out": False,
    "signal": None,
    "stdout_bytes": 0,
    "truncated": {"stdout": 0, "stderr": 0},
    "tree": {"known_by": "subreaper", "ended": 0, "survivors": []},
}
INTERVAL = protocol.SILENCE_SECONDS / 3


def frame(header: object, payload: bytes = b"") -> bytes:
    head = json.dumps(header).encode()
    return struct.pack("<II", 4 + len(head) + len(payload), len(head)) + head + payload


def sent(session: Session) -> list[dict[str, Any]]:
    """The headers of all requests that wait to be written; they are written now."""
    data = bytes(session.outgoing)
    session.sent(len(data))
    headers = []
    while data:
        total, head = struct.unpack_from("<II", data)
        headers.append(json.loads(data[8 : 8 + head]))
        data = data[4 + total :]
    return headers


def start(session: Session, now: float = 0, **fields: Any) -> Call:
    return session.start({"op": "exec", "command": "true", **fields}, b"", now)


def events(session: Session, data: bytes) -> list[Event]:
    return list(session.receive(data))


def message_of(call: Call) -> str:
    with pytest.raises(HelperError) as raised:
        call.result()
    return str(raised.value)


def test_requests_are_numbered_and_answers_may_come_in_any_order() -> None:
    session = Session()
    first, second = start(session), start(session)
    assert [header["id"] for header in sent(session)] == [1, 2]
    answer = frame({"id": 2, **RESULT}, b"")
    assert events(session, answer) == [Ended(second)]
    assert second.result().header["return_code"] == 0
    assert (first.ended, second.ended) == (False, True)
    assert events(session, frame({"id": 1, **RESULT})) == [Ended(first)]
    assert session.next_tick is None


@pytest.mark.parametrize("size", [1, 7, 50, 10_000])
def test_events_are_the_same_for_any_size_of_reads(size: int) -> None:
    session = Session()
    call = start(session)
    data = (
        frame({"id": 1, "kind": "stdout"}, b"out")
        + frame({"id": 1, "kind": "stderr"}, b"err")
        + frame({"id": 1, **RESULT, "stdout_bytes": 3}, b"outerr")
    )
    seen = []
    for at in range(0, len(data), size):
        seen += events(session, data[at : at + size])
    assert seen == [Output(call, "stdout", b"out"), Output(call, "stderr", b"err"), Ended(call)]
    assert call.result().payload == b"outerr"


def test_events_after_an_interrupted_read_are_not_lost() -> None:
    session = Session()
    call = start(session)
    both = frame({"id": 1, "kind": "stdout"}, b"a") + frame({"id": 1, **RESULT})
    assert next(session.receive(both)) == Output(call, "stdout", b"a")
    assert events(session, b"") == [Ended(call)]


def test_a_request_that_cannot_be_sent_starts_no_call() -> None:
    session = Session()
    with pytest.raises(ValueError, match=r"^the request has a number that is not finite$"):
        start(session, timeout=float("inf"))
    assert not session.calls
    assert not session.outgoing


def test_an_answer_of_another_release_is_an_error_of_its_call_only() -> None:
    session = Session()
    old, other = start(session), start(session)
    assert events(session, frame({"id": 1, "kind": "result"})) == [Ended(old)]
    assert message_of(old) == (
        "lilux-proc sent an answer to exec that this version of lilux cannot read; "
        "install lilux and lilux-proc of the same release"
    )
    assert not session.closed
    assert events(session, frame({"id": 2, **RESULT})) == [Ended(other)]


@pytest.mark.parametrize(
    "autopsy",
    [
        [],
        {},
        {"processes": [], "unexamined": 0, "output": {}},
        {
            "processes": [{"pid": 1}],
            "unexamined": 0,
            "output": {"stdout": "", "stderr": ""},
        },
    ],
)
def test_an_autopsy_of_another_form_is_refused(autopsy: object) -> None:
    session = Session()
    call = start(session)
    events(session, frame({"id": 1, **RESULT, "autopsy": autopsy}))
    assert "cannot read" in message_of(call)


@pytest.mark.parametrize(
    "data",
    [
        struct.pack("<II", 5, 3_000) + b"{}",
        frame([]),
        frame({}),
        frame({"id": [], "kind": "result"}),
        frame({"id": 0, "kind": "error", "message": "the helper could not read a frame"}),
        struct.pack("<II", 5, 3) + b"{]}",
    ],
)
def test_malformed_data_ends_the_connection(data: bytes) -> None:
    session = Session()
    call = start(session)
    with pytest.raises(HelperError) as raised:
        events(session, data)
    assert str(raised.value) == (
        "lilux-proc sent a malformed frame during a call; its processes are being ended; "
        "try again: the next call starts a new helper"
    )
    assert session.close(raised.value) == [call]
    assert message_of(call) == str(raised.value)


def test_a_closed_session_accepts_no_request() -> None:
    session = Session()
    session.close(connection_lost(protocol.ENDED))
    with pytest.raises(HelperError, match=r"^lilux-proc has ended during a call"):
        start(session)


def test_a_silent_helper_is_pinged_and_given_up_after_five_seconds() -> None:
    session = Session()
    start(session, now=0)
    sent(session)
    for _ in range(2):
        due = session.next_tick
        assert due is not None
        session.tick(due - 0.001)
        assert not session.outgoing
        session.tick(due)
        assert sent(session) == [PING]
    assert session.next_tick == pytest.approx(5)
    with pytest.raises(HelperError) as raised:
        session.tick(5.001)
    assert str(raised.value) == (
        "lilux-proc did not answer during a call; its processes are being ended; "
        "try again: the next call starts a new helper"
    )
    assert session.silent


def test_a_helper_that_answers_pings_is_never_given_up() -> None:
    session = Session()
    start(session)
    for _ in range(1000):
        due = session.next_tick
        assert due is not None
        session.tick(due)
        assert sent(session)[-1] == PING
        assert events(session, frame({"id": 0, "kind": "result", "found": False})) == []


def test_a_long_pause_of_this_process_is_not_silence_of_the_helper() -> None:
    session = Session()
    start(session)
    sent(session)
    session.tick(1_000_000)
    assert sent(session) == [PING]
    # The ping has its time to be answered.
    assert session.next_tick == pytest.approx(1_000_000 + INTERVAL)


def test_a_helper_without_a_call_is_not_pinged() -> None:
    session = Session()
    start(session)
    events(session, frame({"id": 1, **RESULT}))
    sent(session)
    session.tick(50)
    assert not session.outgoing
    start(session, now=60)
    assert session.next_tick == pytest.approx(60 + INTERVAL)


def test_a_helper_that_reads_a_long_request_is_not_silent() -> None:
    session = Session()
    session.start({"op": "exec"}, b"x" * 1000, 0)
    session.sent(10)
    for turn in range(1, 20):
        session.tick(turn * INTERVAL)
        session.sent(10)
    # Without progress, it is.
    session.tick(20 * INTERVAL)
    session.tick(21 * INTERVAL)
    with pytest.raises(HelperError):
        session.tick(22 * INTERVAL)


def test_pings_that_are_written_are_not_progress_of_the_helper() -> None:
    session = Session()
    start(session)
    sent(session)
    for turn in (1, 2):
        session.tick(turn * INTERVAL)
        sent(session)
    with pytest.raises(HelperError):
        session.tick(3 * INTERVAL)


def test_a_cancelled_call_ends_with_its_answer() -> None:
    session = Session()
    call = start(session)
    session.cancel(call, 1)
    assert sent(session)[1] == {"id": 2, "op": "cancel", "target": 1}
    assert events(session, frame({"id": 2, "kind": "result", "found": True})) == []
    assert not call.ended
    assert events(session, frame({"id": 1, **RESULT})) == [Ended(call)]


def test_a_cancelled_job_that_the_helper_does_not_know_has_ended() -> None:
    session = Session()
    call, other = start(session), start(session)
    session.cancel(call, 0)
    assert events(session, frame({"id": 3, "kind": "result", "found": False})) == [Ended(call)]
    assert message_of(call) == "the call was cancelled"
    # Its answer may still arrive.
    assert events(session, frame({"id": 1, **RESULT})) == []
    assert not other.ended


def test_a_cancelled_request_that_is_not_a_job_waits_for_its_answer() -> None:
    session = Session()
    call = session.start({"op": "kill", "pid": 7, "grace": 3}, b"", 0)
    session.cancel(call, 0)
    assert events(session, frame({"id": 2, "kind": "result", "found": False})) == []
    assert not call.ended


@pytest.mark.parametrize("grace", [0, 3, None])
def test_a_helper_that_does_not_end_a_cancelled_call_is_given_up(grace: float | None) -> None:
    session = Session()
    call = start(session, grace=grace)
    session.cancel(call, 10)
    limit = 10 + (grace or 0) + protocol.CANCEL_SECONDS
    for now in range(11, int(limit)):
        session.tick(now)
        events(session, frame({"id": 0, "kind": "result", "found": False}))
    with pytest.raises(HelperError, match=r"^lilux-proc did not answer"):
        session.tick(limit + INTERVAL)


def test_output_of_one_job_can_be_paused() -> None:
    session = Session()
    call = start(session)
    sent(session)
    session.pause(call, paused=True)
    session.pause(call, paused=False)
    assert [(header["op"], header["target"]) for header in sent(session)] == [
        ("pause", 1),
        ("resume", 1),
    ]
    events(session, frame({"id": 1, **RESULT}))
    session.pause(call, paused=True)
    assert not session.outgoing


def test_closing_ends_all_calls_with_the_error() -> None:
    session = Session()
    calls = [start(session) for _ in range(3)]
    assert session.close(connection_lost(protocol.ENDED)) == calls
    message = (
        "lilux-proc ended unexpectedly during a call; its processes are being ended; "
        "try again: the next call starts a new helper"
    )
    assert [message_of(call) for call in calls] == [message] * 3
    assert not session.outgoing
    assert session.next_tick is None


def test_input_is_taken_piece_by_piece_and_its_answer_is_not_the_answer_of_the_call() -> None:
    session = Session()
    call = start(session)
    session.sent(len(session.outgoing))
    session.feed(call, "stdin", b"text", last=True)
    assert sent(session) == [{"id": 2, "op": "input", "target": 1, "stream": "stdin", "last": True}]
    answer = frame({"id": 2, "kind": "result", "found": True})
    assert events(session, answer) == [InputTaken(call, "stdin", wants_more=True)]
    assert not call.ended


def test_input_for_a_call_that_has_ended_is_not_sent() -> None:
    session = Session()
    call = start(session)
    assert events(session, frame({"id": 1, **RESULT})) == [Ended(call)]
    session.sent(len(session.outgoing))
    session.feed(call, "channel", b"late", last=False)
    assert not session.outgoing
