"""Notifications while a tool runs: progress and log messages."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import CallToolResult, LoggingMessageNotificationParams
from mcp_session import ERAS, HANDSHAKE, STATELESS, connected
from rye_project import Project

SECONDS = 30


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def shell(project: Project, item_id: str, script: str) -> None:
    project.command(item_id, "/bin/sh", "-c", script)


@pytest.mark.parametrize("era", ERAS)
def test_progress_is_reported_while_a_tool_runs(project: Project, tmp_path: Path, era: str) -> None:
    shell(
        project,
        "steps",
        f"echo step one; while [ ! -e {tmp_path}/go ]; do sleep 0.01; done; echo step two",
    )
    reported: list[tuple[float, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        reported.append((progress, message))
        (tmp_path / "go").touch()

    async def run() -> CallToolResult:
        async with connected(project, era) as client, asyncio.timeout(SECONDS):
            arguments = {"item_id": "steps"}
            return await client.call_tool("execute", arguments, progress_callback=on_progress)

    # The tool waits for the first progress message: without one the call would not end.
    assert not asyncio.run(run()).is_error
    assert reported[0][1] == "step one"
    assert [progress for progress, _ in reported] == sorted({progress for progress, _ in reported})


@pytest.mark.parametrize("printed", [r"\n  ", r"a\377b\n"], ids=["a lone newline", "not UTF-8"])
def test_what_is_no_line_of_text_does_not_replace_the_last_one(
    project: Project, tmp_path: Path, printed: str
) -> None:
    waits = "while [ ! -e {} ]; do sleep 0.01; done"
    first, second = (waits.format(tmp_path / name) for name in ("1", "2"))
    # What has begun after it does not replace it either.
    shell(project, "steps", f"echo step one; {first}; printf '{printed}'; {second}")
    reported: list[str | None] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        reported.append(message)
        (tmp_path / str(len(reported))).touch()

    async def run() -> None:
        async with connected(project) as client, asyncio.timeout(SECONDS):
            await client.call_tool("execute", {"item_id": "steps"}, progress_callback=on_progress)

    asyncio.run(run())
    assert len(reported) >= 2
    assert set(reported) == {"step one"}


def test_progress_of_a_silent_tool_is_reported_as_well(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rye.mcp.notifications._FIRST_HEARTBEAT_SECONDS", 0.05)
    shell(project, "silent", f"while [ ! -e {tmp_path}/go ]; do sleep 0.01; done")
    reported: list[str | None] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        reported.append(message)
        (tmp_path / "go").touch()

    async def run() -> None:
        async with connected(project) as client, asyncio.timeout(SECONDS):
            await client.call_tool("execute", {"item_id": "silent"}, progress_callback=on_progress)

    asyncio.run(run())
    assert reported[0] == "running for 0 s"


class LogCollector:
    """Collects the log messages of a client."""

    def __init__(self) -> None:
        self.messages: list[LoggingMessageNotificationParams] = []

    async def __call__(self, params: LoggingMessageNotificationParams) -> None:
        self.messages.append(params)


def messages_of(
    project: Project, era: str, level: str | None, **options: Any
) -> list[LoggingMessageNotificationParams]:
    collector = LogCollector()

    async def run() -> None:
        async with connected(project, era, logging_callback=collector, **options) as client:
            if level is not None:
                await set_level(client, level)
            await client.call_tool("execute", {"item_id": "talk"})
            # Messages are handled in the order of arrival, so this answer is the last.
            await client.list_tools()

    asyncio.run(run())
    return collector.messages


async def set_level(client: Client, level: str) -> None:
    """Set the level like ``Client.set_logging_level``, which emits a deprecation warning."""
    from mcp.types import EmptyResult, SetLevelRequest, SetLevelRequestParams

    params = SetLevelRequestParams.model_validate({"level": level})
    await client.session.send_request(SetLevelRequest(params=params), EmptyResult)


def test_lines_of_stderr_are_sent_as_log_messages(project: Project) -> None:
    shell(project, "talk", "echo out; echo one >&2; echo two >&2; printf three >&2")
    messages = messages_of(project, HANDSHAKE, None)
    assert [(one.level, one.logger, one.data) for one in messages] == [
        ("info", "talk", "one"),
        ("info", "talk", "two"),
        ("info", "talk", "three"),
    ]


@pytest.mark.parametrize(("level", "count"), [("debug", 1), ("info", 1), ("warning", 0)])
def test_the_level_that_a_client_sets_is_used(project: Project, level: str, count: int) -> None:
    shell(project, "talk", "echo one >&2")
    assert len(messages_of(project, HANDSHAKE, level)) == count


@pytest.mark.parametrize(("level", "count"), [(None, 0), ("info", 1), ("error", 0)])
def test_a_stateless_client_requests_messages_with_each_call(
    project: Project, level: str | None, count: int
) -> None:
    shell(project, "talk", "echo one >&2")
    assert len(messages_of(project, STATELESS, None, log_level=level)) == count


def test_too_many_lines_are_dropped_and_counted(project: Project) -> None:
    code = "import sys; sys.stderr.write(''.join(f'line {n}\\n' for n in range(5000)))"
    project.command("talk", sys.executable, "-c", code)
    lines = [str(one.data) for one in messages_of(project, HANDSHAKE, None)]
    assert len(lines) < 5000
    assert lines[-1] == "line 4999"
    assert any("lines of stderr omitted" in line for line in lines)
