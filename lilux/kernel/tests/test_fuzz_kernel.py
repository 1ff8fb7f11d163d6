"""Random input from files and helpers gives a value or a typed error. Long runs: torture/."""

from __future__ import annotations

import asyncio
import json
import os
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from lilux.files.toml import load_toml
from lilux.primitives.errors import HelperError
from lilux.primitives.lockfile.format import decode_lockfile
from lilux.primitives.lockfile.manager import LockfileFault
from lilux.primitives.subprocess import SubprocessPrimitive
from lilux.runtime.env_resolver.dotenv import parse_dotenv
from lockfiles import document
from proc_client import ProcClient
from process_transports import Execute

from torture import fuzzing_helper, fuzzing_kernel
from torture.fuzzing import Fuzz, try_out

READERS = fuzzing_kernel.scenarios()
CONNECTIONS = fuzzing_helper.scenarios()


@pytest.mark.parametrize("fuzz", READERS, ids=lambda fuzz: fuzz.name)
def test_any_input_is_read_or_refused(fuzz: Fuzz) -> None:
    assert try_out(fuzz) >= fuzz.few


@pytest.mark.parametrize("fuzz", CONNECTIONS, ids=lambda fuzz: fuzz.name)
def test_any_frames_in_either_direction_are_survived(fuzz: Fuzz) -> None:
    assert try_out(fuzz) >= fuzz.few


def peak_of(call: Any) -> int:
    """Return the peak memory of ``call`` in bytes."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_found_a_long_list_below_a_long_key_of_a_lockfile_takes_little_memory() -> None:
    data = json.dumps(document(unknown={"k" * 20_000: [0] * 20_000})).encode()
    assert peak_of(lambda: decode_lockfile(data)) < 20_000_000


def test_found_a_duplicate_key_deep_in_a_lockfile_is_named_by_its_path() -> None:
    data = json.dumps(document(unknown={"a b": [0, {"c": "X"}]})).encode()
    with pytest.raises(LockfileFault) as raised:
        decode_lockfile(data.replace(b'"c": "X"', b'"c": "X", "c": 1'))
    assert str(raised.value) == "duplicate key in 'unknown[\"a b\"][1].c'"


def test_found_a_toml_key_of_thirty_thousand_parts_is_refused_at_once() -> None:
    text = "[fine]\n" + "a." * 30_000 + "a = 1\n"

    def load() -> None:
        with pytest.raises(ValueError, match=r"^line 2 has more than 200 dots$"):
            load_toml(text)

    assert peak_of(load) < 5_000_000


def test_found_a_dotenv_of_malformed_lines_does_not_fill_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert parse_dotenv("?\n" * 1000 + "A=1\n", ".env") == {"A": "1"}
    assert len(caplog.messages) == 21
    assert caplog.messages[0] == ".env: line 1 is not KEY=value; ignored"
    assert caplog.messages[-1] == ".env: 980 more lines are ignored"


def frame(header: bytes, payload: bytes = b"") -> bytes:
    return struct.pack("<II", 4 + len(header) + len(payload), len(header)) + header + payload


@pytest.fixture
def fake_helper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Replace the helper with one that sends the content of the returned file."""
    answer = tmp_path / "answer"
    binary = tmp_path / "lilux-proc"
    binary.write_text(f"#!/bin/sh\nhead -c 8 >/dev/null\nexec cat {answer}\n")
    binary.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return answer


def test_found_a_deeply_nested_answer_ends_the_call_and_does_not_hang_it(
    fake_helper: Path, execute: Execute
) -> None:
    fake_helper.write_bytes(frame(b"[" * 100_000))
    with pytest.raises(HelperError, match=r"^lilux-proc sent a malformed frame during a call"):
        execute({"command": "true"})


@pytest.mark.parametrize(
    ("op", "header"),
    [
        ("exec", {}),
        ("exec", {"success": True, "stdout_bytes": 0, "tree": {}, "truncated": {}}),
        ("kill", {"success": True}),
        ("status", {"alive": "yes"}),
        ("spawn", {"success": True, "pid": "7"}),
        ("status", {"kind": "error"}),
    ],
)
def test_found_an_answer_of_another_release_is_a_helper_error(
    fake_helper: Path, op: str, header: dict[str, Any]
) -> None:
    fake_helper.write_bytes(frame(json.dumps({"id": 1, "kind": "result"} | header).encode()))

    async def call() -> None:
        primitive = SubprocessPrimitive()
        if op == "exec":
            await primitive.execute({"command": "true"})
        elif op == "kill":
            await primitive.kill(2**31 - 1)
        elif op == "spawn":
            await primitive.spawn("true", [])
        else:
            await primitive.status(1)

    with pytest.raises(HelperError) as raised:
        asyncio.run(call())
    assert str(raised.value) == (
        f"lilux-proc sent an answer to {op} that this version of lilux cannot read; "
        "install lilux and lilux-proc of the same release"
    )


def test_memory_of_the_helper_grows_with_the_bytes_received_not_with_the_announced_length() -> None:
    with ProcClient() as client:
        before = resident(client.process.pid)
        client.socket.sendall(struct.pack("<II", 500_000_000, 2) + b"{}" + b"x" * 1000)
        client.socket.sendall(b"y" * 1000)
        assert resident(client.process.pid) - before < 50_000_000
        assert client.close() == 0


def resident(pid: int) -> int:
    """Return the resident memory of the helper and all its processes, in bytes."""
    import psutil

    process = psutil.Process(pid)
    return sum(one.memory_info().rss for one in [process, *process.children(recursive=True)])
