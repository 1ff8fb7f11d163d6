# rye:signed:20261116T195035Z:2359dfcbdf052b43bc5a38979b1d9eab1f9a6b723ae46858743e6bcc513a0a3b:yFa6dodCmRQnsBGOHZIYvki9ni1YrH987ewkwoX3ny7-piwGEsh1WPPBtclKQ3-pW5bDNmF2L3AqnFLH0lh9Cg==:cd7c763470a45766
"""Calls one tool of an MCP server that speaks over stdio, and prints what it answers.

Usage: ``python rye_call_mcp.py < call.json`` where the call is
``{"server": {"command", "args", "env", "cwd", "tool", "start_timeout", "timeout"},
"params": "…"}``; the arguments of the tool are the JSON text ``params``, times are in seconds.

Structured content is printed as JSON, texts as they are, anything else as ``{"content": […]}``. A
tool that reports an error gives its text on stderr and exit code 1; a server that does not start,
breaks the protocol, stays silent or says too much gives exit code 1 and the reason. The server is
ended however the call ends. Only the standard library is used.
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
__tool_description__ = "Talks to an MCP server for mcp_stdio_runtime; not to be run by itself"

PROTOCOLS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
MAX_MESSAGE = 16 * 1024 * 1024
_CHUNK = 65536
_NOT_SUPPORTED = -32601
_FIELDS = {"command", "args", "env", "cwd", "tool", "start_timeout", "timeout"}


class CallError(Exception):
    """The call failed; the message is all that is shown."""


class Server:
    """A running server and the messages to and from it. Never blocks beyond a deadline."""

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
        """The result of a request; raises :class:`CallError` for an error or after ``seconds``."""
        deadline = time.monotonic() + seconds
        self._last_id += 1
        wanted = self._last_id
        self._send({"id": wanted, "method": method, "params": params}, method, deadline)
        while True:
            message = self._receive(method, deadline)
            if message.get("id") == wanted and "method" not in message:
                return self._result(message, method)
            if "method" in message:
                self._attend(message, method, deadline)

    def notify(self, method: str, seconds: float) -> None:
        """Sends a notification."""
        self._send({"method": method}, method, time.monotonic() + seconds)

    def close(self) -> None:
        """Closes stdin, as the protocol asks; then SIGTERM, then SIGKILL."""
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
            told = error if isinstance(error, dict) else {}
            raise CallError(
                f"the MCP server {self.name!r} refused {method}: "
                f"{told.get('message', 'no reason given')} (code {told.get('code', 'unknown')}); "
                "check mcp_server.tool and the parameters"
            )
        result = message.get("result")
        if not isinstance(result, dict):
            raise CallError(f"the MCP server {self.name!r} answered {method} without a result")
        return result

    def _attend(self, message: dict[str, Any], method: str, deadline: float) -> None:
        """Answers what the server asks, and shows what it logs."""
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
            # A server that answers before it has read all would otherwise block on its output.
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
                "ask it for less"
            )

    def _parse(self, line: bytes) -> dict[str, Any]:
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            raise CallError(
                f"the MCP server {self.name!r} wrote a line to stdout that is no JSON-RPC message; "
                "its logs belong on stderr"
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
    """One conversation, from the handshake to the end; gives the exit code."""
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
                f"the MCP server {server.name!r} speaks protocol {hello.get('protocolVersion')!r}; "
                f"known are {', '.join(PROTOCOLS)}"
            )
        server.notify("notifications/initialized", start)
        result = server.request(
            "tools/call", {"name": spec["tool"], "arguments": arguments}, spec["timeout"]
        )
    finally:
        server.close()
    return show(result)


def show(result: dict[str, Any]) -> int:
    """Prints the result of a tool; gives the exit code."""
    content = result.get("content")
    content = content if isinstance(content, list) else []
    texts = [
        part["text"]
        for part in content
        if isinstance(part, dict) and part.get("type") == "text" and isinstance(part["text"], str)
    ]
    if result.get("isError"):
        sys.stderr.write("\n".join(texts) or "the tool reported an error without a text")
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
    """The server and the arguments of a call; raises :class:`CallError` that names the field."""
    try:
        wanted = json.loads(text)
        arguments = json.loads(wanted["params"])
        spec = wanted["server"]
    except (ValueError, TypeError, KeyError):
        spec = arguments = None
    if not isinstance(spec, dict) or not isinstance(arguments, dict):
        raise CallError(
            "the tool's config does not say which server to call; "
            "give it mcp_server: {command, args, env, tool}"
        )
    if spec == arguments.get("mcp_server"):
        # Without one in the tool's config, or with one in its schema, {mcp_server} means this.
        raise CallError(
            "the server was named by the caller, who could have any program run; "
            "only the tool's config may say mcp_server"
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
    _check("args", _all_texts(fields["args"], list), "a list of texts")
    _check("env", _all_texts(fields["env"], dict), "a mapping of texts")
    _check("cwd", fields["cwd"] is None or isinstance(fields["cwd"], str), "a folder")
    for name in ("start_timeout", "timeout"):
        number = fields[name]
        good = isinstance(number, (int, float)) and not isinstance(number, bool) and number > 0
        _check(name, good, "a number of seconds")
    for name in sorted(set(fields) - _FIELDS):
        raise CallError(f"mcp_server.{name}: unknown; known are {', '.join(sorted(_FIELDS))}")
    return fields, arguments


def _all_texts(value: Any, kind: type[list[Any]] | type[dict[str, Any]]) -> bool:
    if not isinstance(value, kind):
        return False
    inner = list(value.values()) if isinstance(value, dict) else list(value)
    return all(isinstance(item, str) for item in inner)


def _check(name: str, good: object, expected: str) -> None:
    if not good:
        raise CallError(f"mcp_server.{name}: expected {expected}; mend the tool's config")


def main() -> int:
    """Reads the call from stdin."""
    try:
        spec, arguments = checked(sys.stdin.read())
        return call(spec, arguments)
    except CallError as error:
        sys.stderr.write(f"{error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
