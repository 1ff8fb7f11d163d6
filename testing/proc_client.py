"""A minimal client of ``lilux-proc serve``: blocking, one socket, no dependencies.

It exists for tests and benchmarks of the helper itself; programs use ``lilux``.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

_PREFIX = struct.Struct("<II")


def find_binary() -> str:
    """The helper of the running environment, or the one that ``LILUX_PROC`` names."""
    beside = Path(sys.executable).with_name("lilux-proc")
    found = os.environ.get("LILUX_PROC") or (
        str(beside) if beside.exists() else shutil.which("lilux-proc")
    )
    if not found:
        raise RuntimeError("lilux-proc is not installed; run the tests with `uv run pytest`")
    return found


@dataclass
class Answer:
    """One frame from the helper."""

    header: dict[str, Any]
    payload: bytes = field(repr=False)

    @property
    def id(self) -> int:
        return int(self.header["id"])

    @property
    def kind(self) -> str:
        return str(self.header["kind"])

    @property
    def stdout(self) -> bytes:
        return self.payload[: self.header["stdout_bytes"]]

    @property
    def stderr(self) -> bytes:
        return self.payload[self.header["stdout_bytes"] :]


class ProcClient:
    """Owns one helper and its connection; leaving the ``with`` block closes both."""

    def __init__(self, *options: str, env: dict[str, str] | None = None) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self.process: subprocess.Popen[bytes] = subprocess.Popen(
                [find_binary(), *options, "serve"],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                env=env,
            )
        self.socket = ours
        self._buffer = bytearray()
        self._next_id = 0

    def __enter__(self) -> ProcClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> int:
        """Closes the connection and waits for the helper; gives its exit code."""
        self.socket.close()
        return self.process.wait(timeout=10)

    def send(self, op: str, payload: bytes = b"", **fields: Any) -> int:
        """Sends a request and gives its id."""
        self._next_id += 1
        header = json.dumps({"id": self._next_id, "op": op, **fields}).encode()
        self.send_frame(header, payload)
        return self._next_id

    def send_frame(self, header: bytes, payload: bytes = b"") -> None:
        """Sends a frame as it is, sensible or not."""
        length = len(header)
        message = _PREFIX.pack(4 + length + len(payload), length) + header
        if len(payload) < 65536:
            self.socket.sendall(message + payload)
        else:
            self.socket.sendall(message)
            self.socket.sendall(payload)

    def receive(self, timeout: float | None = 30) -> Answer:
        """The next frame; ``EOFError`` if the helper is gone."""
        self.socket.settimeout(timeout)
        total, header = _PREFIX.unpack(self._exactly(8))
        body = self._exactly(total - 4)
        return Answer(json.loads(bytes(body[:header])), bytes(body[header:]))

    def call(self, op: str, payload: bytes = b"", **fields: Any) -> Answer:
        """Sends a request and waits for its answer; nothing else may be in flight."""
        wanted = self.send(op, payload, **fields)
        answer = self.receive()
        assert answer.id == wanted, answer
        return answer

    def exec(self, *command: str, payload: bytes = b"", **fields: Any) -> Answer:
        """Runs a command to its end."""
        return self.call("exec", payload, command=command[0], args=list(command[1:]), **fields)

    def _exactly(self, count: int) -> memoryview:
        if count > 65536 and len(self._buffer) < count:
            return self._large(count)
        while len(self._buffer) < count:
            received = self.socket.recv(262144)
            if not received:
                raise EOFError("lilux-proc closed the connection")
            self._buffer += received
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return memoryview(taken)

    def _large(self, count: int) -> memoryview:
        whole = bytearray(count)
        view = memoryview(whole)
        filled = len(self._buffer)
        view[:filled] = self._buffer
        self._buffer.clear()
        while filled < count:
            received = self.socket.recv_into(view[filled:])
            if not received:
                raise EOFError("lilux-proc closed the connection")
            filled += received
        return view


def run_command(*args: str, stdin: str = "", timeout: float = 30) -> tuple[int, dict[str, Any]]:
    """Runs a one-shot command; its exit code and the JSON object it printed."""
    done = subprocess.run(
        [find_binary(), *args],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    printed: dict[str, Any] = {}
    with contextlib.suppress(json.JSONDecodeError):
        printed = json.loads(done.stdout)
    return done.returncode, printed
