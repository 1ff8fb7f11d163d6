"""A small HTTP/1.1 server on 127.0.0.1 with scripted answers, valid or broken.

::

    with LoopbackServer() as server:
        server.on("/items", respond(503), respond(200, json={"ok": True}))
        ...  # the first request gets the 503, each later one the 200
        assert server.requests[0].headers["accept"] == "*/*"

Each connection has a thread; the end of the ``with`` block closes all connections.
"""

import contextlib
import json as jsonlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self

Answer = Callable[["Connection"], bool]
"""Writes to a connection; returns true if the connection can be used again."""


@dataclass(frozen=True, kw_only=True)
class SeenRequest:
    """A received request; header names are lower-case, repeated headers joined by commas."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


class Connection:
    """A connection to a client, as answers use it."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._received = b""

    def send(self, data: bytes) -> None:
        """Write all of ``data``; raises ``OSError`` if the client has disconnected."""
        self._sock.sendall(data)

    def wait_for_disconnect(self) -> None:
        """Wait until the client closes the connection, or the server is stopped."""
        with contextlib.suppress(OSError):
            while self._sock.recv(4096):
                pass

    def reset(self) -> None:
        """Close the connection with an RST, as a crashed peer would."""
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._sock.close()

    def next_request(self) -> SeenRequest | None:
        """Read one request; ``None`` if the client has closed the connection."""
        while b"\r\n\r\n" not in self._received:
            if not self._receive():
                return None
        head, _, self._received = self._received.partition(b"\r\n\r\n")
        start, *lines = head.decode("latin-1").split("\r\n")
        method, target, _ = start.split(" ", 2)
        headers: dict[str, str] = {}
        for line in lines:
            name, _, value = line.partition(":")
            key = name.lower()
            headers[key] = f"{headers[key]}, {value.strip()}" if key in headers else value.strip()
        length = int(headers.get("content-length", "0"))
        while len(self._received) < length:
            if not self._receive():
                return None
        body, self._received = self._received[:length], self._received[length:]
        return SeenRequest(method=method, target=target, headers=headers, body=body)

    def _receive(self) -> bool:
        data = self._sock.recv(65536)
        self._received += data
        return bool(data)


class LoopbackServer:
    """The server. ``requests`` has what it received; ``url`` is its origin, without a slash."""

    def __init__(self) -> None:
        self.requests: list[SeenRequest] = []
        self.connections_made = 0
        self._answers: dict[str, list[Answer]] = {}
        self._open: dict[socket.socket, threading.Thread] = {}
        self._changed = threading.Condition()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._acceptor = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        self._acceptor.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # shutdown() wakes the thread in accept(); close() alone would not.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._acceptor.join()
        self._listener.close()
        with self._changed:
            threads = dict(self._open)
        for sock, thread in threads.items():
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            thread.join()

    def on(self, path: str, *answers: Answer) -> str:
        """Answer requests for ``path`` with ``answers`` in turn, then always with the last one.

        The query is ignored. Returns the full URL.
        """
        self._answers[path] = list(answers)
        return self.url + path

    def wait_until(
        self, condition: Callable[["LoopbackServer"], bool], seconds: float = 10
    ) -> None:
        """Wait until ``condition(self)`` is true; raises ``TimeoutError`` after ``seconds``."""
        with self._changed:
            if not self._changed.wait_for(lambda: condition(self), timeout=seconds):
                raise TimeoutError("the server did not reach the expected state")

    @property
    def open_connections(self) -> int:
        """The number of connections that neither side has closed."""
        return len(self._open)

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            thread = threading.Thread(target=self._serve, args=(sock,), daemon=True)
            with self._changed:
                self.connections_made += 1
                self._open[sock] = thread
                self._changed.notify_all()
            thread.start()

    def _serve(self, sock: socket.socket) -> None:
        connection = Connection(sock)
        try:
            with sock, contextlib.suppress(OSError):
                while (request := connection.next_request()) is not None:
                    answer = self._record(request)
                    if not answer(connection):
                        break
        finally:
            with self._changed:
                del self._open[sock]
                self._changed.notify_all()

    def _record(self, request: SeenRequest) -> Answer:
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
            answers = self._answers.get(request.target.partition("?")[0])
            if not answers:
                return respond(404)
            return answers.pop(0) if len(answers) > 1 else answers[0]


def head(status: int, headers: Mapping[str, str], reason: str | None = None) -> bytes:
    """Return the status line and the headers, including the blank line."""
    phrase = HTTPStatus(status).phrase if reason is None else reason
    lines = [f"HTTP/1.1 {status} {phrase}", *(f"{k}: {v}" for k, v in headers.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1")


def respond(
    status: int = 200,
    body: bytes | str = b"",
    *,
    json: Any = None,
    headers: Mapping[str, str] | None = None,
    reason: str | None = None,
) -> Answer:
    """A complete response; ``headers`` may override the correct Content-Length."""
    data = body.encode() if isinstance(body, str) else body
    all_headers: dict[str, str] = {}
    if json is not None:
        data = jsonlib.dumps(json).encode()
        all_headers["Content-Type"] = "application/json"
    all_headers |= {"Content-Length": str(len(data)), **(headers or {})}
    whole = head(status, all_headers, reason) + data
    reusable = all_headers["Content-Length"] == str(len(data))

    def answer(connection: Connection) -> bool:
        connection.send(whole)
        return reusable

    return answer


def redirect(location: str, status: int = 302) -> Answer:
    """A redirect to ``location``."""
    return respond(status, headers={"Location": location})


def raw(data: bytes) -> Answer:
    """Send exactly these bytes, then close the connection."""

    def answer(connection: Connection) -> bool:
        connection.send(data)
        return False

    return answer


def drop() -> Answer:
    """Close the connection without an answer."""
    return raw(b"")


def reset() -> Answer:
    """Reset the connection without an answer."""

    def answer(connection: Connection) -> bool:
        connection.reset()
        return False

    return answer


def hang(first: bytes = b"") -> Answer:
    """Send ``first``, then nothing until the client disconnects."""

    def answer(connection: Connection) -> bool:
        connection.send(first)
        connection.wait_for_disconnect()
        return False

    return answer


def drip(first: bytes, piece: bytes, *, every: float) -> Answer:
    """Send ``first``, then ``piece`` every ``every`` seconds until the client disconnects."""

    def answer(connection: Connection) -> bool:
        connection.send(first)
        while True:
            connection.send(piece)
            time.sleep(every)

    return answer


def chunked(
    pieces: Iterable[bytes],
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    then: Answer | None = None,
) -> Answer:
    """A chunked response with one chunk per piece; ``then`` replaces the last chunk."""
    frames = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces if piece]
    start = head(status, {"Transfer-Encoding": "chunked", **(headers or {})})

    def answer(connection: Connection) -> bool:
        connection.send(start)
        for frame in frames:
            connection.send(frame)
        if then is not None:
            return then(connection)
        connection.send(b"0\r\n\r\n")
        return True

    return answer


def sse(pieces: Iterable[bytes], *, then: Answer | None = None) -> Answer:
    """An event stream with one chunk per piece."""
    return chunked(pieces, headers={"Content-Type": "text/event-stream"}, then=then)


@contextlib.contextmanager
def refused_port() -> Iterator[int]:
    """A port without a listener, inside a ``with`` block."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        yield sock.getsockname()[1]
