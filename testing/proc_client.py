"""A minimal client of ``lilux-proc serve``: blocking, one socket, no dependencies.

It is for tests and benchmarks of the helper; programs use ``lilux``.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
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
_READ_AHEAD = 4096


def find_binary() -> str:
    """Return the helper in ``LILUX_PROC``, or the one of the running environment."""
    beside = Path(sys.executable).with_name("lilux-proc")
    found = os.environ.get("LILUX_PROC") or (
        str(beside) if beside.exists() else shutil.which("lilux-proc")
    )
    if not found:
        raise RuntimeError("lilux-proc is not installed; run the tests with `uv run pytest`")
    return found


@dataclass
class Answer:
    """A frame from the helper."""

    header: dict[str, Any]
    payload: bytes | bytearray = field(repr=False)

    @property
    def id(self) -> int:
        return int(self.header["id"])

    @property
    def kind(self) -> str:
        return str(self.header["kind"])

    @property
    def stdout(self) -> bytes | bytearray:
        return self.payload[: self.header["stdout_bytes"]]

    @property
    def stderr(self) -> bytes | bytearray:
        return self.payload[self.header["stdout_bytes"] :]


class ProcClient:
    """A helper process and its connection; the end of the ``with`` block closes both."""

    def __init__(
        self,
        *options: str,
        env: dict[str, str] | None = None,
        timeout: float | None = 30,
        user: int | None = None,
        binary: str | None = None,
    ) -> None:
        account = None if user in (None, os.geteuid()) else pwd.getpwuid(user)
        ours, theirs = socket.socketpair()
        with theirs:
            self.process: subprocess.Popen[bytes] = subprocess.Popen(
                [binary or find_binary(), *options, "serve"],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                env=env,
                user=account and account.pw_uid,
                group=account and account.pw_gid,
                extra_groups=None if account is None else (),
            )
        self.socket = ours
        self.socket.settimeout(timeout)
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
        """Close the connection and wait for the helper; return its exit code."""
        self.socket.close()
        return self.process.wait(timeout=10)

    def send(self, op: str, payload: bytes = b"", **fields: Any) -> int:
        """Send a request; return its id."""
        self._next_id += 1
        header = json.dumps({"id": self._next_id, "op": op, **fields}).encode()
        self.send_frame(header, payload)
        return self._next_id

    def send_frame(self, header: bytes, payload: bytes = b"") -> None:
        """Send a frame, valid or not."""
        length = len(header)
        message = _PREFIX.pack(4 + length + len(payload), length) + header
        if len(payload) < 65536:
            self.socket.sendall(message + payload)
        else:
            self.socket.sendall(message)
            self.socket.sendall(payload)

    def receive(self) -> Answer:
        """Return the next frame.

        Raises ``EOFError`` if the helper has ended, and ``TimeoutError`` if it sends nothing.
        """
        total, header = _PREFIX.unpack(self._exactly(8))
        head = json.loads(self._exactly(header))
        return Answer(head, self._exactly(total - 4 - header))

    def call(self, op: str, payload: bytes = b"", **fields: Any) -> Answer:
        """Send a request and return its answer; no other request may be pending."""
        wanted = self.send(op, payload, **fields)
        answer = self.receive()
        assert answer.id == wanted, answer
        return answer

    def exec(self, *command: str, payload: bytes = b"", **fields: Any) -> Answer:
        """Run a command and wait for its end."""
        return self.call("exec", payload, command=command[0], args=list(command[1:]), **fields)

    def _exactly(self, count: int) -> bytes | bytearray:
        buffer = self._buffer
        if count > _READ_AHEAD:
            return self._large(count)
        while len(buffer) < count:
            received = self.socket.recv(_READ_AHEAD)
            if not received:
                raise EOFError("lilux-proc closed the connection")
            buffer += received
        taken = bytes(buffer[:count])
        del buffer[:count]
        return taken

    def _large(self, count: int) -> bytearray:
        whole = self._buffer[:count]
        del self._buffer[:count]
        filled = len(whole)
        whole.extend(bytes(count - filled))
        with memoryview(whole) as view:
            while filled < count:
                received = self.socket.recv_into(view[filled:])
                if not received:
                    raise EOFError("lilux-proc closed the connection")
                filled += received
        return whole


def run_command(*args: str, stdin: str = "", timeout: float = 30) -> tuple[int, dict[str, Any]]:
    """Run a one-shot command; return its exit code and the JSON object that it printed."""
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
