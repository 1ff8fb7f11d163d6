"""mcp_stdio_runtime with real servers, correct and broken."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from processes import assert_ended, pid_in
from rye_project import Project

# The code of every server; TOOL is replaced by its handler of tools/call.
SERVER = """
import json, os, signal, sys, time

def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

def receive():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)

open(sys.argv[1], "w").write(f"{os.getpid()}\\n")
hello = receive()
assert hello["method"] == "initialize", hello
send(id=hello["id"], result={"protocolVersion": VERSION or hello["params"]["protocolVersion"],
                             "capabilities": {}, "serverInfo": {"name": "demo", "version": "1"}})
assert receive() == {"jsonrpc": "2.0", "method": "notifications/initialized"}
BEFORE
while True:
    call = receive()
    assert call["method"] == "tools/call", call
    arguments = call["params"]["arguments"]
    name = call["params"]["name"]
    TOOL
"""


class World:
    def __init__(self, folder: Path) -> None:
        self.project = Project(folder, shipped_system=True)
        self.pid_file = folder / "pid"
        self._script = folder / "server.py"

    def serve(self, body: str, /, *, version: str = "", before: str = "", **server: Any) -> None:
        """Create a tool ``tool`` that calls ``echo`` of a server with the handler ``body``."""
        script = SERVER.replace("TOOL", body.replace("\n", "\n    ") or "pass")
        script = script.replace("VERSION", repr(version)).replace("BEFORE", before)
        self._script.write_text(script)
        self.project.yaml(
            "tool",
            executor_id="mcp_stdio_runtime",
            config={
                "mcp_server": {
                    "command": sys.executable,
                    "args": [str(self._script), str(self.pid_file)],
                    "tool": "echo",
                    **server,
                }
            },
        )

    def server(self) -> dict[str, psutil.Process]:
        try:
            return {"server": pid_in(self.pid_file)}
        except psutil.NoSuchProcess:
            return {}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def answer(result: str) -> str:
    return f"send(id=call['id'], result={result})"


def test_structured_content_is_the_data(world: World) -> None:
    world.serve(answer("{'content': [], 'structuredContent': {'got': arguments, 'name': name}}"))

    result = world.project.run("tool", {"a": [1, '"quotes" {mcp_server} ${HOME}']})

    assert result.error is None
    assert result.data == {"got": {"a": [1, '"quotes" {mcp_server} ${HOME}']}, "name": "echo"}
    assert_ended(world.server())


def test_text_content_is_printed_unchanged(world: World) -> None:
    world.serve(answer("{'content': [{'type': 'text', 'text': t} for t in ('one', 'two')]}"))

    assert world.project.run("tool").data["stdout"] == "one\ntwo\n"


def test_other_content_is_json(world: World) -> None:
    image = {"type": "image", "data": "AA==", "mimeType": "image/png"}
    world.serve(answer(f"{{'content': [{image!r}]}}"))

    assert world.project.run("tool").data == {"content": [image]}


def test_an_error_of_the_tool_is_a_failure_with_its_text(world: World) -> None:
    world.serve(answer("{'isError': True, 'content': [{'type': 'text', 'text': 'no disk'}]}"))

    assert world.project.run("tool").error == "'tool' ended with exit code 1: no disk"


def test_a_protocol_error_is_reported(world: World) -> None:
    world.serve("send(id=call['id'], error={'code': -32602, 'message': 'no tool echo'})")

    assert world.project.run("tool").data["stderr"] == (
        f"the MCP server {sys.executable!r} refused tools/call: no tool echo (code -32602); "
        "check mcp_server.tool and the parameters\n"
    )


def test_the_server_may_send_requests_and_notifications_before_it_answers(world: World) -> None:
    world.serve(
        "send(method='notifications/message', params={'level': 'warning', 'data': 'busy'})\n"
        "send(method='notifications/progress', params={'progress': 1})\n"
        "send(id='p', method='ping')\n"
        "assert receive() == {'jsonrpc': '2.0', 'id': 'p', 'result': {}}\n"
        "send(id=call['id'], method='roots/list')\n"
        "assert receive()['error']['code'] == -32601\n" + answer("{'structuredContent': {'ok': 1}}")
    )

    result = world.project.run("tool")

    assert result.data == {"ok": 1}
    assert result.metadata["stderr"] == "warning: busy\n"


def test_an_older_protocol_is_used_and_an_unknown_one_refused(world: World) -> None:
    world.serve(answer("{'structuredContent': {'ok': 1}}"), version="2025-03-26")
    assert world.project.run("tool").data == {"ok": 1}

    world.serve(answer("{}"), version="1999-01-01")
    world.project.lockfile("tool").unlink()
    assert world.project.run("tool").data["stderr"] == (
        f"the MCP server {sys.executable!r} uses protocol '1999-01-01'; "
        "supported are 2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05\n"
    )


def test_a_silent_server_that_ignores_sigterm_is_killed_after_the_timeout(world: World) -> None:
    world.serve("signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)", timeout=0.5)

    result = world.project.run("tool")

    assert result.data["stderr"] == (
        f"the MCP server {sys.executable!r} did not answer tools/call in time; "
        "raise mcp_server.timeout or mcp_server.start_timeout in the tool\n"
    )
    assert_ended(world.server())


def test_a_server_that_does_not_read_stdin_does_not_block_the_call(world: World) -> None:
    world.serve("", before="time.sleep(600)", timeout=0.5)

    result = world.project.run("tool", {"big": "x" * 1_000_000})

    assert "did not answer tools/call in time" in result.data["stderr"]
    assert_ended(world.server())


def test_a_server_that_exits_or_breaks_the_protocol_is_reported(world: World) -> None:
    world.serve("sys.exit(9)")
    assert (
        "ended during tools/call (exit code 9); see its messages above\n"
        in (world.project.run("tool").data["stderr"])
    )

    world.serve("print('hello there', flush=True); time.sleep(600)")
    assert (
        world.project.run("tool")
        .data["stderr"]
        .endswith("wrote a line to stdout that is not a JSON-RPC message; it must log to stderr\n")
    )


def test_a_server_that_sends_too_much_is_ended(world: World) -> None:
    world.serve("while True: sys.stdout.write('x' * 65536)")

    assert (
        world.project.run("tool")
        .data["stderr"]
        .endswith("sent more than 16777216 bytes during tools/call; request less data\n")
    )
    assert_ended(world.server())


def test_a_server_that_is_not_installed_is_reported(world: World) -> None:
    world.serve("", command="no-such-server")

    assert world.project.run("tool").data["stderr"] == (
        "the MCP server 'no-such-server' could not be started: No such file or directory; "
        "check mcp_server.command in the tool\n"
    )


def test_a_secret_reaches_the_server_unchanged_and_is_on_no_command_line(world: World) -> None:
    secret = 'pa"ss\\word'
    world.project.environ["MY_KEY"] = secret
    world.serve(
        "lines = [open(f'/proc/{pid}/cmdline').read() for pid in (os.getpid(), os.getppid())]\n"
        + answer("{'structuredContent': {'key': os.environ['KEY'], 'seen': os.environ['KEY'] in "
                 "''.join(lines)}}"),
        env={"KEY": "${MY_KEY}"},
    )  # fmt: skip

    assert world.project.run("tool").data == {"key": secret, "seen": False}


@pytest.mark.parametrize("name", ["mcp_server", "input_data"])
def test_a_caller_cannot_override_the_server(world: World, name: str) -> None:
    world.serve(answer("{'structuredContent': arguments}"))
    evil = {"command": "touch", "args": [str(world.project.path / "pwned")], "tool": "x"}

    result = world.project.run("tool", {name: evil})

    assert result.data == {name: evil}
    assert not (world.project.path / "pwned").exists()


@pytest.mark.parametrize(
    ("server", "problem"),
    [
        ({"tool": ""}, "tool: expected the name of a tool; fix the tool's config"),
        ({"args": "x"}, "args: expected a list of strings; fix the tool's config"),
        ({"env": {"A": 1}}, "env: expected a mapping of strings; fix the tool's config"),
        ({"timeout": 0}, "timeout: expected a number of seconds; fix the tool's config"),
        (
            {"name": "x"},
            "name: unknown key; known are args, command, cwd, env, start_timeout, timeout, tool",
        ),
    ],
)
def test_an_invalid_config_is_reported_with_its_field(
    world: World, server: dict[str, Any], problem: str
) -> None:
    world.serve("", **server)

    assert world.project.run("tool").data["stderr"] == f"mcp_server.{problem}\n"


def test_a_tool_without_a_server_is_refused(world: World) -> None:
    world.project.yaml("tool", executor_id="mcp_stdio_runtime")

    assert world.project.run("tool").data["stderr"] == (
        "the tool's config does not name a server; add mcp_server: {command, args, env, tool}\n"
    )


@pytest.mark.parametrize("schema", [None, {"type": "object", "properties": {"mcp_server": {}}}])
def test_a_caller_cannot_name_the_server(tmp_path: Path, schema: dict[str, Any] | None) -> None:
    project = Project(tmp_path, shipped_system=True)
    fields: dict[str, Any] = {} if schema is None else {"config_schema": schema}
    project.yaml("tool", executor_id="mcp_stdio_runtime", **fields)
    mark = tmp_path / "planted"
    server = {"command": "/bin/sh", "args": ["-c", f"touch {mark}"], "tool": "x"}

    result = project.run("tool", {"mcp_server": server})

    assert result.data["stderr"] == (
        "the caller passed mcp_server and could run any program with it; "
        "set mcp_server in the tool's config\n"
    )
    assert not mark.exists()
