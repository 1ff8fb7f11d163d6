"""Input of the kernel from files and connections: lockfiles, .env, TOML, event streams, frames."""

from __future__ import annotations

import contextlib
import json
import logging
import re
import struct
from collections.abc import Iterator

from hypothesis import strategies as st
from lilux.files.toml import load_toml
from lilux.primitives.http_client.sse import SseEvent, SseEventTooLargeError, SseParser
from lilux.primitives.lockfile import Lockfile
from lilux.primitives.lockfile.format import decode_lockfile, encode_lockfile
from lilux.primitives.lockfile.manager import LockfileFault
from lilux.primitives.subprocess.wire import Answer, Decoder
from lilux.runtime.env_resolver.dotenv import parse_dotenv
from lockfiles import DOCUMENTED, document

from torture.fuzzing import Check, Fuzz, plain
from torture.mutations import cut_up, mixture, mutated

_LOCKFILES = [
    DOCUMENTED.encode(),
    json.dumps(document()).encode(),
    json.dumps(document(extra={"a": [1, {"b": None}]}, verified_deps=...)).encode(),
]
_JSON_PIECES = [
    b'"integrity": "",', b'"integrity"', b"null", b"[", b"]", b"{", b"}", b",", b":", b'"',
    b"\\u0022", b"\\ud800", b"1e999", b"-0", b"9" * 30, b'"a": 1, "a": 2,', b"\xff",
    b"\xef\xbb\xbf", b"NaN",
]  # fmt: skip
_DOTENV_PIECES = [
    b"A=1", b"export ", b"KEY", b"=", b"'", b'"', b"\\", b"\n", b"\r", b"#", b" ", b"${A}", b"\0",
    b"LD_PRELOAD=x\n", b"ld_preload=x\n", b"PYTHONPATH", b"\xc3\xa9", b"\xe2\x80\xa8", b"\\n",
    b"`id`",
]  # fmt: skip
_TOML_PIECES = [
    b"a", b".", b"a.", b" = ", b"1", b"'", b'"', b"[", b"]", b"[[", b"]]", b"{", b"}", b"\n", b",",
    b"2026-01-01", b"inf", b"nan", b"0x", b"_", b'"""', b"\\U0010ffff", b"a={", b"#",
]  # fmt: skip
_SSE_PIECES = [
    b"data: x\n\n", b"data", b":", b"id: 1\0\n", b"event: e\r", b"retry: 5\r\n", b"\n", b"\r",
    b"\xff", b"\xef\xbb\xbf", b"\xf0\x9f", b"data:" + b"x" * 100, b"retry: " + b"9" * 30,
    b": comment\n",
]  # fmt: skip
_EVENT_LIMIT = 256


def scenarios() -> tuple[Fuzz, ...]:
    """Return the properties of these readers."""
    frames = st.lists(_frames(), max_size=4).map(b"".join)
    return (
        Fuzz(
            name="lockfiles",
            inputs=mutated(_LOCKFILES, _JSON_PIECES) | mixture(_JSON_PIECES),
            opened=plain(lockfile_is_read_or_refused),
        ),
        Fuzz(
            name=".env files",
            inputs=mixture(_DOTENV_PIECES) | st.binary(max_size=100),
            opened=_without_log,
        ),
        Fuzz(
            name="TOML files",
            inputs=mixture(_TOML_PIECES),
            opened=plain(toml_is_read_or_refused),
        ),
        Fuzz(
            name="event streams",
            inputs=cut_up(mixture(_SSE_PIECES) | st.binary(max_size=200)),
            opened=plain(events_do_not_depend_on_the_pieces),
        ),
        Fuzz(
            name="frames from a helper",
            inputs=cut_up(frames | mutated([_frame(b'{"id":1}', b"x")]) | st.binary(max_size=60)),
            opened=plain(frames_do_not_depend_on_the_pieces),
        ),
    )


def lockfile_is_read_or_refused(data: bytes) -> None:
    """A lockfile can be written and read again, or is refused with a message."""
    try:
        lockfile = decode_lockfile(data)
    except LockfileFault as fault:
        assert str(fault)
        return
    assert isinstance(lockfile, Lockfile)
    assert all(entry["integrity"] for entry in lockfile.resolved_chain)
    assert decode_lockfile(encode_lockfile(lockfile)) == lockfile


_NAME = r"[A-Za-z_][A-Za-z0-9_]*"


def dotenv_gives_plain_variables(data: bytes) -> None:
    """All names and values are valid for a process, and none is a loader variable."""
    text = data.decode("utf-8", "replace")
    for name, value in parse_dotenv(text, ".env").items():
        assert re.fullmatch(_NAME, name), name
        assert "\0" not in value, name
        assert not name.upper().startswith("LD_"), name
        assert name.upper() != "PYTHONPATH"


@contextlib.contextmanager
def _without_log() -> Iterator[Check]:
    log = logging.getLogger("lilux.runtime.env_resolver.dotenv")
    before, log.disabled = log.disabled, True
    try:
        yield dotenv_gives_plain_variables
    finally:
        log.disabled = before


def toml_is_read_or_refused(data: bytes) -> None:
    """The text is a table, or is refused with a ``ValueError``."""
    with contextlib.suppress(ValueError):
        assert isinstance(load_toml(data.decode()), dict)


def events_do_not_depend_on_the_pieces(pieces: tuple[bytes, ...]) -> None:
    """Any pieces, one piece and single bytes result in the same events and the same error."""
    whole = b"".join(pieces)
    expected = _events((whole,))
    assert _events(pieces) == expected
    assert _events(tuple(bytes([byte]) for byte in whole)) == expected


def _events(pieces: tuple[bytes, ...]) -> list[SseEvent | None]:
    parser = SseParser(_EVENT_LIMIT)
    events: list[SseEvent | None] = []
    try:
        for piece in pieces:
            events += parser.feed(piece)
    except SseEventTooLargeError:
        events.append(None)
    return events


def frames_do_not_depend_on_the_pieces(pieces: tuple[bytes, ...]) -> None:
    """Any pieces result in the same frames, up to the first malformed one."""
    assert _answers(pieces) == _answers((b"".join(pieces),))


def _answers(pieces: tuple[bytes, ...]) -> list[Answer | None]:
    decoder = Decoder()
    answers: list[Answer | None] = []
    try:
        for piece in pieces:
            for answer in decoder.feed(piece):
                answers.append(answer)  # noqa: PERF402 - keeps the answers before an error
    except ValueError:
        answers.append(None)
    return answers


def _frame(header: bytes, payload: bytes = b"") -> bytes:
    return struct.pack("<II", 4 + len(header) + len(payload), len(header)) + header + payload


def _frames() -> st.SearchStrategy[bytes]:
    headers = mixture([b"{", b"}", b"[", b'"id"', b":", b"1", b",", b'"kind"', b"\xff", b"null"])
    return st.builds(_frame, headers, st.binary(max_size=20))
