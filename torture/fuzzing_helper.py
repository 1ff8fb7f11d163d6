"""The protocol of ``lilux-proc`` in both directions, with malformed requests and answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from lilux.primitives.errors import HelperError
from lilux.primitives.subprocess import SubprocessPrimitive, SubprocessResult
from proc_client import ProcClient

from torture.fuzzing import Check, Fuzz
from torture.mutations import mixture, mutated

# These requests are really sent: none may end a process, write a file or start more than /bin/true.
_COMMANDS = ("/bin/true", "/nonexistent", "", "a\0b", 5, None, ["/bin/true"], "\udc80", "/")
_NUMBERS: tuple[Any, ...] = (
    0,
    -1,
    1,
    2**31 - 1,
    2**31,
    2**63,
    2**64,
    -(2**63),
    0.5,
    1e300,
    "1",
    None,
    [],
    {},
    True,
)
_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "command": st.sampled_from(_COMMANDS),
    "args": st.lists(st.text(max_size=5) | st.sampled_from((None, 1, "\udc80")), max_size=3)
    | st.sampled_from((None, "x", {})),
    "env": st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2)
    | st.sampled_from((None, [], "x", {"A": 1})),
    "env_mode": st.sampled_from(("exact", "merge", "other", None, 1)),
    "cwd": st.sampled_from(("/", "/nonexistent", "", 5, "a\0b", None)),
    "timeout": st.sampled_from((*_NUMBERS, 0.001)),
    "grace": st.sampled_from((0, 0.001, -1, "x", None)),
    "output_limit": st.sampled_from(_NUMBERS),
    "stream": st.sampled_from((True, False, None, 1)),
    "capture": st.sampled_from((True, False, None, 1)),
    "background": st.sampled_from(("end", "keep", "other", None)),
    "stdin": st.sampled_from(("text", "\udc80", None, 5)),
    "stdout_file": st.sampled_from(("/nonexistent/file", "", None, 5)),
    "target": st.sampled_from(_NUMBERS),
    "pid": st.sampled_from((0, -1, 1, 2**31 - 1, 2**40, "1", None, 1.5)),
    "start_time": st.sampled_from(_NUMBERS),
    "unknown": st.sampled_from(_NUMBERS),
}
_OPS = (
    "exec",
    "spawn",
    "kill",
    "status",
    "cancel",
    "pause",
    "resume",
    "guard",
    "dance",
    "",
    None,
    5,
)
_SENTINEL = 2**40

_RESULT = {
    "id": 1,
    "kind": "result",
    "success": True,
    "return_code": 0,
    "duration_ms": 1.5,
    "timed_out": False,
    "signal": None,
    "stdout_bytes": 3,
    "stderr_bytes": 2,
    "truncated": {"stdout": 0, "stderr": 0},
    "tree": {"known_by": "subreaper", "ended": 0, "survivors": []},
}


def scenarios() -> tuple[Fuzz, ...]:
    """Return the properties of the connection."""
    return (
        Fuzz(
            name="requests to lilux-proc",
            inputs=st.lists(_requests(), min_size=1, max_size=5),
            opened=_helper_that_answers,
        ),
        Fuzz(
            name="bytes to lilux-proc",
            inputs=mutated([_frame(b'{"id":1,"op":"status","pid":1}', b"x" * 9)])
            | st.binary(max_size=60),
            opened=_helpers_that_end,
            few=25,
            many=2_000,
        ),
        Fuzz(
            name="answers of lilux-proc",
            inputs=_wrong_answers(),
            opened=_wrong_helper,
            few=25,
            many=2_000,
        ),
    )


@contextlib.contextmanager
def _helper_that_answers() -> Iterator[Check]:
    with ProcClient() as client:
        yield lambda frames: still_answers(client, frames)


def still_answers(client: ProcClient, frames: list[tuple[bytes, bytes]]) -> None:
    """After any requests, the next valid request is answered."""
    for header, payload in frames:
        client.send_frame(header, payload)
    client.send_frame(json.dumps({"id": _SENTINEL, "op": "status", "pid": os.getpid()}).encode())
    while (answer := client.receive()).id != _SENTINEL:
        assert answer.kind in ("result", "error", "stdout", "stderr"), answer.header
    assert answer.header["alive"] is True, answer.header


@contextlib.contextmanager
def _helpers_that_end() -> Iterator[Check]:
    yield ends_well


def ends_well(data: bytes) -> None:
    """The helper exits with 0 after any bytes and a disconnect."""
    with ProcClient() as client:
        client.socket.sendall(data)
        assert client.close() == 0


@contextlib.contextmanager
def _wrong_helper() -> Iterator[Check]:
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "output")
        binary = Path(folder, "lilux-proc")
        # Waits for a request: otherwise the connection would end before there is a call.
        binary.write_text(f"#!/bin/sh\nhead -c 8 >/dev/null\nexec cat {output}\n")
        binary.chmod(0o755)
        path = os.environ["PATH"]
        os.environ["PATH"] = f"{folder}{os.pathsep}{path}"
        try:
            yield lambda answer: wrong_answer_is_survived(output, answer)
        finally:
            os.environ["PATH"] = path


def wrong_answer_is_survived(output: Path, answer: bytes) -> None:
    """After any answer of the helper, the call returns a result or raises ``HelperError``."""
    output.write_bytes(answer)

    async def call() -> SubprocessResult:
        async with asyncio.timeout(20):
            return await SubprocessPrimitive().execute({"command": "true"})

    with contextlib.suppress(HelperError):
        result = asyncio.run(call())
        assert isinstance(result.stdout, str)
        assert isinstance(result.return_code, int)


def _frame(header: bytes, payload: bytes = b"") -> bytes:
    return struct.pack("<II", 4 + len(header) + len(payload), len(header)) + header + payload


def _requests() -> st.SearchStrategy[tuple[bytes, bytes]]:
    fields = st.fixed_dictionaries(
        {"op": st.sampled_from(_OPS)},
        optional={"id": st.sampled_from((0, 1, 2, -1, 2**64, "1", None, 1.5)), **_FIELDS},
    )
    well_formed = fields.map(lambda one: json.dumps(one).encode())
    harmless = [
        b'{"id":1,"op":"exec","command":"/bin/true","env":{},"env_mode":"exact"}',
        b'{"id":1,"op":"cancel","target":1}',
    ]
    malformed = mixture([b"{", b"}", b"[", b'"', b"\\u0000", b"\\ud800", b"\xff", b":", b",", b"1"])
    return st.tuples(well_formed | mutated(harmless) | malformed, st.binary(max_size=20))


@st.composite
def _wrong_answers(draw: st.DrawFn) -> bytes:
    header: dict[str, Any] = json.loads(json.dumps(_RESULT))
    for key in draw(st.lists(st.sampled_from(sorted(header)), max_size=3)):
        if draw(st.booleans()):
            header.pop(key, None)
        else:
            wrong: tuple[Any, ...] = (
                None,
                -1,
                4,
                10**30,
                "x",
                [],
                {},
                True,
                0.5,
                "error",
                "stdout",
            )
            header[key] = draw(st.sampled_from(wrong))
    if draw(st.booleans()):
        header["message"] = draw(st.sampled_from(("a message", 5, None)))
    frame = _frame(json.dumps(header).encode(), b"outer"[: draw(st.integers(0, 5))])
    deep = _frame(b"[" * 5000, b"")
    return draw(st.just(frame) | mutated([frame]) | st.just(deep) | st.binary(max_size=40))
