# rye:signed:20261118T125305Z:9a1a64d23356901aabbdc14a8bc6d61dbfbd2177660a628721e55e62962f4e8d:D4oVXio0YonHOFgcbWKD7ABWkKol9Q4e3Y6EfmONtVskksROr_kVW0g8RBuYkpjQyq0sPWzgTKfcl7u8rQhPDw==:0cdadc7a57fefd2c
"""Call one tool of an MCP server over stdio, and print its answer.

Usage: ``python rye_call_mcp.py < call.json`` with the call
``{"server": {"command", "args", "env", "cwd", "tool", "start_timeout", "timeout"},
"params": "…"}``. ``params`` is the JSON text of the tool's arguments; timeouts are in seconds.

Structured content is printed as JSON, text content unchanged, other content as
``{"content": […]}``. If the tool reports an error, its text is printed on stderr and the exit code is
1. If the server does not start, breaks the protocol, does not answer in time or sends too much, the
reason is printed and the exit code is 1. The server is always ended. Uses only the standard library.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import time
from typing import Any, NoReturn

__version__ = "1.0.0"
__tool_type__ = "library"
__executor_id__ = "rye/core/runtimes/mcp_stdio_runtime"
__category__ = "runtimes"
__tool_description__ = "Calls an MCP server for mcp_stdio_runtime; not a tool itself"

PROTOCOLS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
MAX_MESSAGE = 16 * 1024 * 1024
_CHUNK = 65536
_NOT_SUPPORTED = -32601
_FIELDS = {"command", "args", "env", "cwd", "tool", "start_timeout", "timeout"}


class CallError(Exception):
    """The call failed; only the message is shown."""


class Server:
    """A running server. No method blocks longer than its deadline."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.name = spec["command"]
        try:
            self._process = subprocess.Popen(
                [spec["command"], *spec["args"]],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, **spec["env"]},
                cwd=spec["cwd"],
            )
        except OSError as error:
            raise CallError(
                f"the MCP server {self.name!r} could not be started: {error.strerror}; "
                "check mcp_server.command in the tool"
            ) from None
        assert self._process.stdin is not None  # noqa: S101 - for the type checker: it is a pipe
        assert self._process.stdout is not None  # noqa: S101 - the same
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        self._received = bytearray()
        self._searched = 0
        self._last_id = 0

    def request(self, method: str, params: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Send a request and return its result. Raises :class:`CallError`, at latest in ``seconds``."""
        deadline = time.monotonic() + seconds
        self._last_id += 1
        wanted = self._last_id
        self._send({"id": wanted, "method": method, "params": params}, method, deadline)
        while True:
            message = self._receive(method, deadline)
            if message.get("id") == wanted and "method" not in message:
                return self._result(message, method)
            if "method" in message:
                self._handle(message, method, deadline)

    def notify(self, method: str, seconds: float) -> None:
        """Send a notification."""
        self._send({"method": method}, method, time.monotonic() + seconds)

    def close(self) -> None:
        """End the server: close stdin, as the protocol requires, then SIGTERM, then SIGKILL."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        for end, patience in ((None, 1.0), (self._process.terminate, 1.0)):
            if end is not None:
                end()
            try:
                self._process.wait(patience)
                return
            except subprocess.TimeoutExpired:
                continue
        self._process.kill()
        self._process.wait()

    def _result(self, message: dict[str, Any], method: str) -> dict[str, Any]:
        error = message.get("error")
        if error is not None:
            details = error if isinstance(error, dict) else {}
            raise CallError(
                f"the MCP server {self.name!r} refused {method}: "
                f"{details.get('message', 'no reason given')} (code {details.get('code', 'unknown')}); "
                "check mcp_server.tool and the parameters"
            )
        result = message.get("result")
        if not isinstance(result, dict):
            raise CallError(f"the MCP server {self.name!r} answered {method} without a result")
        return result

    def _handle(self, message: dict[str, Any], method: str, deadline: float) -> None:
        """Answer a request of the server, and print its log messages."""
        params = message.get("params")
        if message["method"] == "notifications/message" and isinstance(params, dict):
            data = params.get("data")
            text = data if isinstance(data, str) else json.dumps(data)
            sys.stderr.write(f"{params.get('level', 'info')}: {text}\n")
        if "id" not in message:
            return
        answer: dict[str, Any] = {"id": message["id"]}
        if message["method"] == "ping":
            answer["result"] = {}
        else:
            answer["error"] = {"code": _NOT_SUPPORTED, "message": "not supported by this client"}
        self._send(answer, method, deadline)

    def _send(self, message: dict[str, Any], method: str, deadline: float) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message}, allow_nan=False).encode("ascii") + b"\n"
        rest = memoryview(line)
        with selectors.DefaultSelector() as selector:
            selector.register(self._in, selectors.EVENT_WRITE)
            # Otherwise a server that writes before it has read everything would block.
            selector.register(self._out, selectors.EVENT_READ)
            while rest:
                for key, _ in self._wait(selector, method, deadline):
                    if key.fd == self._out:
                        self._read(method)
                        continue
                    try:
                        rest = rest[os.write(self._in, rest) :]
                    except BlockingIOError:
                        continue
                    except BrokenPipeError:
                        self._ended(method)

    def _receive(self, method: str, deadline: float) -> dict[str, Any]:
        with selectors.DefaultSelector() as selector:
            selector.register(self._out, selectors.EVENT_READ)
            while True:
                end = self._received.find(b"\n", self._searched)
                if end >= 0:
                    line = bytes(self._received[:end])
                    del self._received[: end + 1]
                    self._searched = 0
                    if line.strip():
                        return self._parse(line)
                    continue
                self._searched = len(self._received)
                self._wait(selector, method, deadline)
                self._read(method)

    def _read(self, method: str) -> None:
        try:
            data = os.read(self._out, _CHUNK)
        except BlockingIOError:
            return
        if not data:
            self._ended(method)
        self._received += data
        if len(self._received) > MAX_MESSAGE:
            raise CallError(
                f"the MCP server {self.name!r} sent more than {MAX_MESSAGE} bytes during {method}; "
                "request less data"
            )

    def _parse(self, line: bytes) -> dict[str, Any]:
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            raise CallError(
                f"the MCP server {self.name!r} wrote a line to stdout that is not a JSON-RPC message; "
                "it must log to stderr"
            )
        return message

    def _wait(self, selector: selectors.BaseSelector, method: str, deadline: float) -> list[Any]:
        events = selector.select(max(0.0, deadline - time.monotonic()))
        if not events and time.monotonic() >= deadline:
            raise CallError(
                f"the MCP server {self.name!r} did not answer {method} in time; "
                "raise mcp_server.timeout or mcp_server.start_timeout in the tool"
            )
        return events

    def _ended(self, method: str) -> NoReturn:
        try:
            code: object = self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            code = "unknown"
        raise CallError(
            f"the MCP server {self.name!r} ended during {method} (exit code {code}); "
            "see its messages above"
        )


def call(spec: dict[str, Any], arguments: dict[str, Any]) -> int:
    """Start the server, call the tool and end the server; return the exit code."""
    server = Server(spec)
    try:
        start = spec["start_timeout"]
        hello = server.request(
            "initialize",
            {
                "protocolVersion": PROTOCOLS[0],
                "capabilities": {},
                "clientInfo": {"name": "rye", "version": __version__},
            },
            start,
        )
        if hello.get("protocolVersion") not in PROTOCOLS:
            raise CallError(
                f"the MCP server {server.name!r} uses protocol {hello.get('protocolVersion')!r}; "
                f"supported are {', '.join(PROTOCOLS)}"
            )
        server.notify("notifications/initialized", start)
        result = server.request(
            "tools/call", {"name": spec["tool"], "arguments": arguments}, spec["timeout"]
        )
    finally:
        server.close()
    return show(result)


def show(result: dict[str, Any]) -> int:
    """Print the result of a tool; return the exit code."""
    content = result.get("content")
    content = content if isinstance(content, list) else []
    texts = [
        part["text"]
        for part in content
        if isinstance(part, dict) and part.get("type") == "text" and isinstance(part["text"], str)
    ]
    if result.get("isError"):
        sys.stderr.write("\n".join(texts) or "the tool reported an error without text")
        sys.stderr.write("\n")
        return 1
    if result.get("structuredContent") is not None:
        sys.stdout.write(json.dumps(result["structuredContent"]) + "\n")
    elif len(texts) == len(content):
        sys.stdout.write("\n".join(texts) + "\n")
    else:
        sys.stdout.write(json.dumps({"content": content}) + "\n")
    return 0


def checked(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parse a call into server and arguments. Raises :class:`CallError`, which names the field."""
    try:
        wanted = json.loads(text)
        arguments = json.loads(wanted["params"])
        spec = wanted["server"]
    except (ValueError, TypeError, KeyError):
        spec = arguments = None
    if not isinstance(spec, dict) or not isinstance(arguments, dict):
        raise CallError(
            "the tool's config does not name a server; add mcp_server: {command, args, env, tool}"
        )
    if spec == arguments.get("mcp_server"):
        # The config does not set mcp_server, or the schema declares it as a parameter.
        raise CallError(
            "the caller passed mcp_server and could run any program with it; "
            "set mcp_server in the tool's config"
        )
    fields: dict[str, Any] = {
        "args": [],
        "env": {},
        "cwd": None,
        "start_timeout": 30,
        "timeout": 240,
        **spec,
    }
    _check("command", isinstance(fields.get("command"), str) and fields["command"], "a program")
    _check("tool", isinstance(fields.get("tool"), str) and fields["tool"], "the name of a tool")
    _check("args", _all_strings(fields["args"], list), "a list of strings")
    _check("env", _all_strings(fields["env"], dict), "a mapping of strings")
    _check("cwd", fields["cwd"] is None or isinstance(fields["cwd"], str), "a folder")
    for name in ("start_timeout", "timeout"):
        number = fields[name]
        good = isinstance(number, (int, float)) and not isinstance(number, bool) and number > 0
        _check(name, good, "a number of seconds")
    for name in sorted(set(fields) - _FIELDS):
        raise CallError(f"mcp_server.{name}: unknown key; known are {', '.join(sorted(_FIELDS))}")
    return fields, arguments


def _all_strings(value: Any, kind: type[list[Any]] | type[dict[str, Any]]) -> bool:
    if not isinstance(value, kind):
        return False
    inner = list(value.values()) if isinstance(value, dict) else list(value)
    return all(isinstance(item, str) for item in inner)


def _check(name: str, good: object, expected: str) -> None:
    if not good:
        raise CallError(f"mcp_server.{name}: expected {expected}; fix the tool's config")


def main() -> int:
    """Read the call from stdin and run it."""
    try:
        spec, arguments = checked(sys.stdin.read())
        return call(spec, arguments)
    except CallError as error:
        sys.stderr.write(f"{error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
