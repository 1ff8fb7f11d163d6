"""A call that times out says what the processes of the tool waited for."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from mcp.types import CallToolResult
from mcp_session import HANDSHAKE, connected, text_of
from rye.executor.run.autopsy import MAX_LINES, autopsy_lines
from rye.mcp.settings import ServerSettings
from rye_command import InProcessRye
from rye_project import SUBPROCESS, Project

SECRET = "hunter2-xyzzy"
# Long enough for a tool to start on a busy machine.
SECONDS = 3
# More than the default, so that a busy machine does not decide a test.
BUDGET = 10
NO_OUTPUT = {"stdout": "", "stderr": ""}
TIMED_OUT = "Command timed out after 3 seconds; raise the timeout, or reduce the work"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, shipped_system=True, environ={"TOKEN": SECRET})


@pytest.fixture
def run(
    project: Project, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> InProcessRye:
    return InProcessRye(project.path, project.user, monkeypatch, capfd)


def python_tool(project: Project, body: str) -> None:
    header = '__version__ = "1.0.0"\n__executor_id__ = "rye/core/runtimes/python_runtime"\n'
    header += f'CONFIG = {{"autopsy_budget": {BUDGET}}}\n'
    project.tool("tool.py", header + body)


def command(project: Project, item_id: str, *argv: str, **config: Any) -> None:
    settings = {"command": argv[0], "args": list(argv[1:]), "autopsy_budget": BUDGET, **config}
    project.yaml(item_id, executor_id=SUBPROCESS, config=settings)


def process(pid: int, **fields: Any) -> dict[str, Any]:
    return {"pid": pid, "command": "x", "waits_for": "sleeping", **fields}


def test_the_error_says_what_each_process_waits_for(project: Project) -> None:
    command(project, "tool", "bash", "-c", "echo begun; echo $$ > root; sleep 300 | cat")
    result = project.run("tool", timeout=SECONDS)
    assert result.error is not None
    first, when, shell, *pipeline, output = result.error.splitlines()
    assert first == f"'tool': {TIMED_OUT}"
    assert when == "when the time was over:"
    root = (project.path / "root").read_text().strip()
    assert shell.startswith(f"  {root} bash -c …: waiting for one of 2 children, such as ")
    (sleep,) = [line for line in pipeline if "sleep 300: " in line]
    (cat,) = [line for line in pipeline if " cat: " in line]
    pid = sleep.split()[0]
    assert sleep == f"  {pid} sleep 300: sleeping for 300 s"
    assert cat.endswith(f" cat: reading a pipe whose writer is {pid} sleep 300")
    assert output == "last output: begun"
    autopsy = result.metadata["autopsy"]
    assert [one["command"] for one in autopsy["processes"]].count("sleep 300") == 1
    assert "missing" not in autopsy


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ("import time\n\ndef fetch():\n    time.sleep(300)\n", "fetch (tool.py:8)"),
        ("import re\n\ndef fetch():\n    re.match('(a*)*b', 'a' * 99)\n", "match (__init__.py:"),
    ],
    ids=["blocked", "inside a regular expression"],
)
def test_the_stack_of_a_python_tool_is_shown(project: Project, body: str, place: str) -> None:
    python_tool(project, f"{body}\n\ndef main():\n    print('begun')\n    fetch()\n")
    result = project.run("tool", timeout=SECONDS)
    assert result.error is not None
    (stack,) = [line for line in result.error.splitlines() if "Python: " in line]
    assert stack.startswith(f"    Python: {place}")
    assert stack.endswith("called by main (tool.py:13)")
    (one,) = result.metadata["autopsy"]["processes"]
    assert "line 13 in main" in one["stack"]
    # The stack is not part of the tool's output.
    assert result.data["stderr"] == "begun\nCommand timed out after 3 seconds"
    assert result.data["stdout"] == ""


def test_a_python_tool_that_handles_sigusr2_itself_keeps_its_handler(project: Project) -> None:
    body = (
        "import os, signal\n\ndef main():\n"
        "    caught = []\n"
        "    signal.signal(signal.SIGUSR2, lambda *_: caught.append(1))\n"
        "    os.kill(os.getpid(), signal.SIGUSR2)\n"
        "    return caught\n"
    )
    python_tool(project, body)
    assert project.run("tool").data == [1]


def test_a_program_that_a_python_tool_starts_does_not_inherit_the_memory_file(
    project: Project,
) -> None:
    python_tool(
        project,
        "import subprocess as s\n\ndef main():\n"
        "    return s.run(['ls', '-l', '/proc/self/fd'], capture_output=True, text=True,"
        " close_fds=False).stdout\n",
    )
    listed = project.run("tool").data
    assert "/proc/" in listed
    assert "lilux-stack" not in listed


def test_no_secret_is_in_the_autopsy_of_a_call(project: Project) -> None:
    project.yaml(
        "tools/leaky",
        executor_id=SUBPROCESS,
        env_config={"env": {"TOKEN": "${TOKEN}"}},
        config={
            "autopsy_budget": BUDGET,
            "command": "sh",
            "args": ["-c", 'mkfifo "$1"; cat "$1" & sleep 300; :', "{password}", "${TOKEN}"],
        },
        config_schema={"type": "object", "properties": {"password": {"type": "string"}}},
    )
    result = project.run("tools/leaky", {"password": f"parameter-{SECRET}"}, timeout=SECONDS)
    assert result.metadata["timed_out"] is True
    assert SECRET not in f"{result.error}{result.metadata}"
    assert result.error is not None
    assert "opening the FIFO ${TOKEN}, whose other end nobody opens" in result.error


def test_an_author_can_turn_the_autopsy_off(project: Project) -> None:
    command(project, "slow", "sleep", "300", autopsy="never")
    result = project.run("slow", timeout=0.3)
    assert "autopsy" not in result.metadata
    assert result.error == f"'slow': {TIMED_OUT.replace('3', '0.3')}"


def test_rye_run_shows_the_autopsy(project: Project, run: InProcessRye) -> None:
    command(project, "tools/slow", "sleep", "300")
    done = run("run", "tools/slow", "--timeout", "3")
    assert done.code == 124
    first, when, sleep = done.stderr.splitlines()
    assert first == f"rye: 'tools/slow': {TIMED_OUT}"
    assert when == "when the time was over:"
    assert sleep.endswith(" sleep 300: sleeping for 300 s")


def test_an_agent_gets_the_autopsy_as_text(project: Project) -> None:
    command(project, "slow", "sleep", "300")

    async def call() -> CallToolResult:
        async with connected(project, HANDSHAKE, ServerSettings()) as client:
            return await client.call_tool("execute", {"item_id": "slow", "timeout": SECONDS})

    result = asyncio.run(call())
    assert result.is_error
    assert text_of(result).endswith(" sleep 300: sleeping for 300 s")


def test_the_text_has_at_most_twelve_lines() -> None:
    stack = 'Current thread 0x1 (most recent call first):\n  File "/a/t.py", line 3 in main'
    autopsy = {
        "missing": "only 100 of 151 processes were examined",
        "processes": [process(1, waits_for="waiting for child 2 x")]
        + [process(pid, stack=stack, waits_for="y" * 999) for pid in range(2, 101)],
        "unexamined": 51,
        "output": {"stdout": "1\n2\n3", "stderr": ""},
    }
    lines = list(autopsy_lines(autopsy))
    assert len(lines) == MAX_LINES == 11
    assert max(map(len, lines)) == 200
    assert lines[1].startswith("  2 x: yyy")
    assert lines[2] == "    Python: main (t.py:3)"
    assert lines[-4:] == [
        "  and 146 more processes",
        "what it waited for is not fully known: only 100 of 151 processes were examined",
        "last output: 2",
        "last output: 3",
    ]


def test_the_absence_of_an_autopsy_is_stated() -> None:
    reason = "this platform does not say what processes wait for"
    absent = {"missing": reason, "processes": [], "unexamined": 0, "output": NO_OUTPUT}
    assert list(autopsy_lines(absent)) == [f"what it waited for is not known: {reason}"]


def test_much_cpu_time_and_memory_are_shown() -> None:
    one = process(7, cpu_seconds=12.34, memory_bytes=512_000_000, waits_for="busy on the CPU")
    autopsy = {"processes": [one], "unexamined": 0, "output": NO_OUTPUT}
    assert list(autopsy_lines(autopsy))[1] == "  7 x (12.3 s CPU, 512 MB): busy on the CPU"
