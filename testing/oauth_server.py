"""A token endpoint on loopback that records requests, and can delay or fail them."""

import json
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs

DEADLINE_SECONDS = 20.0


@dataclass(frozen=True, kw_only=True)
class TokenRequest:
    """A received request; header names are lower-case."""

    path: str
    headers: dict[str, str]
    form: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A response; the body is sent chunk by chunk."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})
    body: Iterable[bytes] = ()


def json_answer(status: int = 200, **fields: object) -> Answer:
    return Answer(status=status, body=[json.dumps(fields).encode()])


class TokenServer:
    """A server that runs inside a ``with`` block.

    Without an ``answer``, it grants ``access-N`` and ``refresh-N``, and accepts each refresh token
    only once, starting with ``refresh-0``.
    """

    def __init__(self, answer: Callable[[TokenRequest], Answer] | None = None) -> None:
        self.requests: list[TokenRequest] = []
        self._answer = answer or self._rotate
        self._valid_refresh_token = "refresh-0"  # noqa: S105 - a secret of the tests
        self._changed = threading.Condition()
        self._open = threading.Event()
        self._open.set()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.owner = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/token"

    def hold(self) -> None:
        """Delay all answers until :meth:`release`."""
        self._open.clear()

    def release(self) -> None:
        self._open.set()

    def wait_for_requests(self, count: int) -> None:
        with self._changed:
            arrived = self._changed.wait_for(lambda: len(self.requests) >= count, DEADLINE_SECONDS)
        assert arrived, f"{len(self.requests)} of {count} requests arrived"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def respond(self, request: TokenRequest) -> Answer:
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
        self._open.wait(DEADLINE_SECONDS)
        return self._answer(request)

    def _rotate(self, request: TokenRequest) -> Answer:
        with self._changed:
            if request.form.get("refresh_token") != self._valid_refresh_token:
                return json_answer(400, error="invalid_grant")
            count = int(self._valid_refresh_token.removeprefix("refresh-")) + 1
            self._valid_refresh_token = f"refresh-{count}"
            return json_answer(
                access_token=f"access-{count}",
                refresh_token=self._valid_refresh_token,
                token_type="Bearer",  # noqa: S106 - a term of the RFC, not a secret
                expires_in=3600,
            )


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    owner: TokenServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore disconnected clients, which are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        request = TokenRequest(
            path=self.path,
            headers={name.lower(): value for name, value in self.headers.items()},
            form={name: values[0] for name, values in parse_qs(body).items()},
        )
        answer = self.server.owner.respond(request)
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        for chunk in answer.body:
            self.wfile.write(chunk)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as in the base class
        """Log nothing: the tests use the recorded requests."""
