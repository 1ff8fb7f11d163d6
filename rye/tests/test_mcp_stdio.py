"""The stdio transport of ``rye mcp``, and how the server stops."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp_session import ERAS, Wired, command, environment, over_stdio, text_of, wired
from processes import Tree, assert_ended
from rye.mcp import stdio_streams
from rye.mcp.process import StopSignals
from rye.mcp.settings import ServerSettings
from rye_project import Project

SECRET = "hunter2-very-secret"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def shell(project: Project, item_id: str, script: str) -> None:
    project.command(item_id, "/bin/sh", "-c", script)


async def execute(client: Wired, number: int, **arguments: Any) -> None:
    params = {"name": "execute", "arguments": arguments}
    await client.send(id=number, method="tools/call", params=params)


@pytest.mark.parametrize("era", ERAS)
def test_a_client_starts_lists_and_calls(tmp_path: Path, era: str) -> None:
    project = Project(tmp_path, shipped_system=True)

    async def run() -> tuple[list[str], str]:
        async with over_stdio(project, era) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            arguments = {"item_id": "rye/bash/bash", "parameters": {"command": "echo 1.10"}}
            return tools, text_of(await client.call_tool("execute", arguments))

    assert asyncio.run(run()) == (["search", "show", "execute", "output"], "1.10\n")


def test_stdout_contains_only_the_protocol(project: Project, tmp_path: Path) -> None:
    # A library writes to stdout inside the server process, through Python and directly.
    (tmp_path / "sitecustomize.py").write_text(
        "import atexit, os\n"
        "atexit.register(lambda: (print('printed', flush=True), os.write(1, b'written\\n')))\n"
    )
    done = subprocess.run(
        command(project),
        env=environment(project, PYTHONPATH=str(tmp_path)),
        input='{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n',
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] in ([1], [])
    assert "printed\nwritten\n" in done.stderr


async def start_tree(client: Wired, tree: Tree) -> dict[str, Any]:
    await client.initialize()
    await execute(client, 1, item_id="tree")
    return dict(await asyncio.to_thread(tree.processes))


def test_a_disconnect_stops_the_server_and_everything_it_runs(
    project: Project, tmp_path: Path
) -> None:
    tree = Tree(tmp_path / "tree")
    shell(project, "tree", tree.script())

    async def run() -> tuple[dict[str, Any], object]:
        async with wired(project) as client:
            running = await start_tree(client, tree)
            client.disconnect()
            return running, await asyncio.wait_for(client.serving, 15)

    running, ended_by = asyncio.run(run())
    assert ended_by is None
    assert_ended(running)


@pytest.fixture(params=[signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def number(request: pytest.FixtureRequest) -> Iterator[signal.Signals]:
    """A signal that this process does not ignore, even if the tests were started so."""
    before = signal.signal(request.param, signal.SIG_DFL)
    yield request.param
    signal.signal(request.param, before)


def test_a_signal_that_was_ignored_stays_ignored(number: signal.Signals) -> None:
    signal.signal(number, signal.SIG_IGN)
    stopped: list[bool] = []

    async def run() -> object:
        with StopSignals(lambda: stopped.append(True)) as signals:
            os.kill(os.getpid(), number)
            await asyncio.sleep(0)
        return signals.received

    assert asyncio.run(run()) is None
    assert stopped == []
    assert signal.getsignal(number) is signal.SIG_IGN


def test_a_signal_stops_the_server_while_a_client_is_connected(
    project: Project, tmp_path: Path, number: signal.Signals
) -> None:
    tree = Tree(tmp_path / "tree")
    shell(project, "tree", tree.script())

    async def run() -> tuple[dict[str, Any], object]:
        async with wired(project) as client:
            running = await start_tree(client, tree)
            os.kill(os.getpid(), number)
            return running, await asyncio.wait_for(asyncio.shield(client.serving), 15)

    running, ended_by = asyncio.run(run())
    assert ended_by is number
    assert_ended(running)


def test_a_client_that_stops_reading_does_not_block_the_stop_of_the_server(
    project: Project,
) -> None:
    project.settings(mcp={"max_output": 4_000_000})
    shell(project, "big", "head -c 2000000 /dev/zero | tr '\\0' x")

    async def run() -> object:
        async with wired(project) as client:
            await client.initialize()
            await execute(client, 1, item_id="big")
            # The answer has started, and does not fit into the pipe.
            assert await asyncio.to_thread(os.read, client.from_server, 1) == b"{"
            os.kill(os.getpid(), signal.SIGTERM)
            return await asyncio.wait_for(asyncio.shield(client.serving), 15)

    assert asyncio.run(run()) is signal.SIGTERM


def test_closing_the_output_pipe_is_treated_as_a_disconnect(project: Project) -> None:
    async def run() -> object:
        async with wired(project) as client:
            await client.initialize()
            os.dup2(os.open(os.devnull, os.O_RDONLY), client.from_server)
            await client.send(id=1, method="ping")
            return await asyncio.wait_for(asyncio.shield(client.serving), 15)

    assert asyncio.run(run()) is None


def test_a_large_answer_arrives_complete(project: Project) -> None:
    project.settings(mcp={"max_output": 4_000_000})
    shell(project, "big", "head -c 3000000 /dev/zero | tr '\\0' x")

    async def run() -> str:
        async with wired(project) as client:
            await client.initialize()
            await execute(client, 1, item_id="big")
            (content,) = (await client.answer_to(1))["result"]["content"]
            return str(content["text"])

    assert asyncio.run(run()) == "x" * 3_000_000


def test_malformed_lines_are_skipped(
    project: Project, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(stdio_streams, "_MAX_MESSAGE", 100_000)

    async def run() -> list[dict[str, Any]]:
        async with wired(project) as client:
            for line in ("nonsense", "", '{"jsonrpc": "2.0"}', "[]", "\x00"):
                await client.send_line(line)
            await client.initialize()
            await client.send_line("x" * 1_000_000)
            first = await client.ask(1, "ping")
            await client.send_line('{"half":')
            return [first, await client.ask(2, "ping")]

    assert [answer["result"] for answer in asyncio.run(run())] == [{}, {}]
    assert "skipped a message of more than 100000 bytes" in caplog.text


@pytest.mark.parametrize(
    "rest",
    [
        r'"method": "tools/call", "params": {"name": "search", "arguments": {"query": "\ud83d"}}',
        '"method": "tools/call", "params": [1]',
        '"method": 7',
    ],
    ids=["unpaired surrogate", "list", "no method"],
)
@pytest.mark.parametrize("number", ["1", '"one"'])
def test_a_request_that_cannot_be_parsed_is_answered(
    project: Project, number: str, rest: str
) -> None:
    async def run() -> tuple[dict[str, Any], dict[str, Any]]:
        async with wired(project) as client, asyncio.timeout(30):
            await client.initialize()
            await client.send_line(f'{{"jsonrpc": "2.0", "id": {number}, {rest}}}')
            return await client.answer_to(json.loads(number)), await client.ask(2, "ping")

    refused, pong = asyncio.run(run())
    assert refused["error"]["message"].startswith("the request cannot be parsed; send ")
    assert pong["result"] == {}


def test_messages_and_logs_do_not_repeat_values(
    project: Project, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    shell(project, "fails", "exit 1")
    project.environ["MY_TOKEN"] = SECRET
    calls: list[dict[str, Any]] = [
        {"name": "execute", "arguments": {"item_id": "fails", "parameters": {"k": SECRET}}},
        {"name": "execute", "arguments": {"item_id": 7, "parameters": SECRET}},
        {"name": "fails", "arguments": {"k": SECRET}},
        {"name": "execute", "arguments": SECRET},
        {"name": "execute", "arguments": {"item_id": "fails", SECRET: 1}},
    ]

    async def run() -> list[dict[str, Any]]:
        async with wired(project, ServerSettings(all_tools=True)) as client:
            await client.initialize()
            return [
                await client.ask(number, "tools/call", **params)
                for number, params in enumerate(calls, start=1)
            ]

    answers = asyncio.run(run())
    assert all("error" in answer or answer["result"]["isError"] for answer in answers)
    # The name of an argument is reported, its value never.
    assert SECRET not in json.dumps(answers[:-1])
    assert SECRET not in caplog.text
    assert SECRET not in "".join(capfd.readouterr())


def test_log_lines_contain_no_exception_values_and_no_control_characters() -> None:
    code = """
import logging
from rye.mcp.process import log_to_stderr

log_to_stderr()
try:
    raise ValueError("hunter2")
except ValueError:
    logging.getLogger("mcp").exception("it failed \\x1b[31m\\n")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == ""
    assert done.stderr == r"rye mcp: it failed \x1b[31m\nValueError at <string>:7" + "\n"


def test_unencodable_values_do_not_end_the_server(project: Project) -> None:
    deep = "[" * 700 + "]" * 700
    shell(project, "deep", f"echo '{deep}'")
    shell(project, "half", r"""printf '{"half": "\\ud800"}'""")
    name = os.fsdecode(b"odd\xff.yaml")
    (project.path / ".ai" / "tools" / name).write_text("executor_id: null\n")

    async def run() -> list[dict[str, Any]]:
        async with wired(project, ServerSettings(all_tools=True)) as client:
            await client.initialize()
            calls = [
                ("deep", {}),
                ("half", {}),
                ("search", {"query": ""}),
                ("search", {"query": "odd"}),
            ]
            return [
                await client.ask(number, "tools/call", name=name, arguments=arguments)
                for number, (name, arguments) in enumerate(calls, start=1)
            ]

    called_deep, called_half, *searched = asyncio.run(run())
    assert called_deep["result"]["content"][0]["text"] == deep
    assert "ud800" in called_half["result"]["content"][0]["text"]
    assert [one["result"]["isError"] for one in searched] == [False, False]
