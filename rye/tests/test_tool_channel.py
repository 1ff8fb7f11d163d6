"""The channel of a tool: progress and questions, in every kind of call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest
from rye.executor.run.blocking import BlockingExecutor
from rye.executor.run.channel import (
    DECLINED,
    ChannelLines,
    Progress,
    Question,
    Reply,
    Unreadable,
    answered,
)
from rye.executor.run.result import ExecutionResult
from rye_command import Terminal, rye
from rye_project import Project

YES_OR_NO = {"type": "boolean"}
BAD_NAME = "the `name` of `ask` is not a letter followed by up to 63 letters, digits and `_.-`"
ASK = json.dumps({"ask": {"message": "Go on?", "schema": YES_OR_NO}})


def asking(project: Project, *lines: str) -> str:
    """A tool that writes each line to its channel and prints one answer for each question."""
    steps = []
    for line in lines:
        steps.append(f"""echo '{line}' >&"$RYE_CHANNEL" """)
        if "ask" in line or "progress" not in line:
            steps.append('read -r answer <&"$RYE_CHANNEL"; echo "$answer"')
    project.command("tools/asks", "/bin/sh", "-c", "\n".join(steps))
    return "tools/asks"


class Recorder:
    """Answers what it was given, in order."""

    def __init__(self, *replies: Reply | Awaitable[Reply]) -> None:
        self.heard: list[Progress | Question] = []
        self._replies = list(replies)

    def progress(self, progress: Progress) -> None:
        self.heard.append(progress)

    def ask(self, question: Question) -> Reply | Awaitable[Reply]:
        self.heard.append(question)
        return self._replies.pop(0)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, shipped_system=True)


def printed(result: ExecutionResult) -> list[Any]:
    """The lines that a tool printed; a single line of JSON is already parsed."""
    assert result.success, result.error
    if isinstance(result.data, dict) and "stdout" in result.data:
        return [json.loads(line) for line in result.data["stdout"].splitlines()]
    return [result.data]


def ask_in_a_loop(project: Project, item_id: str, listener: Recorder | None) -> list[Any]:
    async def call() -> Any:
        async with project.executor() as executor:
            return await executor.execute(item_id, listener=listener)

    result = asyncio.run(call())
    return printed(result)


def ask_blocking(project: Project, item_id: str, listener: Recorder | None) -> list[Any]:
    with BlockingExecutor(project.context) as executor:
        result = executor.execute(item_id, listener=listener)
    return printed(result)


@pytest.mark.parametrize("call", [ask_in_a_loop, ask_blocking])
def test_a_tool_reports_progress_and_gets_answers(project: Project, call: Any) -> None:
    progress = json.dumps({"progress": 3, "total": 10, "message": "third"})
    listener = Recorder(answered(True), DECLINED)
    item_id = asking(project, progress, ASK, ASK)
    assert call(project, item_id, listener) == [{"answer": True}, {"declined": True}]
    question = Question("Go on?", YES_OR_NO)
    assert listener.heard == [Progress(3, 10, "third"), question, question]


@pytest.mark.parametrize("call", [ask_in_a_loop, ask_blocking])
def test_without_a_listener_nobody_can_be_asked(project: Project, call: Any) -> None:
    assert call(project, asking(project, ASK), None) == [{"unavailable": True}]


def test_questions_wait_for_a_slow_answer_and_are_answered_in_order(project: Project) -> None:
    async def slowly(reply: Reply) -> Reply:
        await asyncio.sleep(0.01)
        return reply

    async def call() -> Any:
        listener = Recorder(slowly(answered(1)), slowly(answered(2)))
        async with project.executor() as executor:
            return await executor.execute("tools/asks", listener=listener)

    script = f"""printf '%s\\n' '{ASK}' '{ASK}' >&"$RYE_CHANNEL"
    for n in 1 2; do read -r answer <&"$RYE_CHANNEL"; echo "$answer"; done"""
    project.command("tools/asks", "/bin/sh", "-c", script)
    result = asyncio.run(call())
    assert printed(result) == [{"answer": 1}, {"answer": 2}]


def test_a_listener_that_fails_does_not_keep_the_tool_waiting(project: Project) -> None:
    async def failing() -> Reply:
        raise RuntimeError("s3cret")

    assert ask_in_a_loop(project, asking(project, ASK), Recorder(failing())) == [
        {"unavailable": True}
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("hello", "a line is not JSON"),
        ("[]", "a line needs a number `progress`, or `ask`"),
        ('{"progres": "much"}', "a line needs a number `progress`, or `ask`"),
        ('{"ask": "x"}', "`ask` needs a text `message`"),
        ('{"ask": {"message": "x", "schema": 3}}', "the `schema` of `ask` is not an object"),
        (
            '{"ask": {"message": "x", "schema": {"type": "strnig"}}}',
            "the `schema` of `ask` is not a valid JSON Schema",
        ),
        *[
            (
                json.dumps({"ask": {"message": "x", "name": name}}),
                BAD_NAME,
            )
            for name in ("", 3, None, "_x", "user name", "x\n", "é", "x" * 65)
        ],
    ],
)
def test_a_line_that_means_nothing_is_answered_with_an_error(
    project: Project, line: str, reason: str
) -> None:
    assert list(ChannelLines().feed(f"{line}\n".encode())) == [Unreadable(reason)]


def test_a_question_has_the_name_that_the_tool_gives_it() -> None:
    line = json.dumps({"ask": {"message": "Who?", "name": "user_name"}}).encode()
    (heard,) = ChannelLines().feed(line + b"\n")
    assert heard == Question("Who?", {"type": "string"}, "user_name")


def test_the_tool_reads_the_error(project: Project) -> None:
    assert ask_blocking(project, asking(project, "hello"), Recorder()) == [
        {"error": "a line is not JSON"}
    ]


def test_an_endless_line_is_refused_once_and_memory_stays_bounded() -> None:
    lines = ChannelLines()
    heard = [message for _ in range(40) for message in lines.feed(b"x" * 100_000)]
    assert heard == [Unreadable("a line is longer than 1048576 bytes")]
    assert list(lines.feed(b'rest of it\n{"progress": 1}\n')) == [Progress(1, None, "")]


def test_a_variable_of_the_caller_does_not_become_the_channel(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RYE_CHANNEL", "1")
    assert ask_in_a_loop(project, asking(project, ASK), None) == [{"unavailable": True}]


def test_a_confined_tool_can_ask(project: Project) -> None:
    script = f"""echo '{ASK}' >&"$RYE_CHANNEL"; read -r answer <&"$RYE_CHANNEL"; echo "$answer" """
    result = project.run("rye/bash/bash", {"command": script})
    assert printed(result) == [{"unavailable": True}]


def test_a_pipe_cannot_be_asked(project: Project) -> None:
    done = rye("run", asking(project, ASK), cwd=project.path, user=project.user, input="y\n")
    assert (done.code, done.stdout) == (0, '{"unavailable": true}\n')


def test_a_person_answers_on_the_terminal(project: Project) -> None:
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "title": "Your name"},
            "size": {"type": "integer", "minimum": 1, "default": 2},
            "color": {"enum": ["red", "blue"]},
            "sure": YES_OR_NO,
            "note": {"type": "string"},
        },
        "required": ["name", "sure"],
    }
    item_id = asking(project, json.dumps({"ask": {"message": "Order?", "schema": schema}}))
    with Terminal("run", item_id, cwd=project.path, user=project.user) as terminal:
        terminal.wait_for("the tool asks: Order?\n  Your name: ")
        terminal.type("Ada\n")
        terminal.wait_for("size [2]: ")
        terminal.type("0\n")
        terminal.wait_for("size: expected a number of at least 1")
        terminal.type("\n")
        terminal.wait_for("color (red, blue): ")
        terminal.type("blue\n")
        terminal.wait_for("sure (y/n): ")
        terminal.type("y\n")
        terminal.wait_for("note: ")
        terminal.type("\n")
        assert terminal.finish() == 0
    answer = {"name": "Ada", "size": 2, "color": "blue", "sure": True}
    assert json.loads(terminal.shown[terminal.shown.rindex('{\n  "answer"') :]) == {
        "answer": answer
    }


def test_the_end_of_the_input_declines(project: Project) -> None:
    with Terminal("run", asking(project, ASK), cwd=project.path, user=project.user) as terminal:
        terminal.wait_for("answer (y/n): ")
        terminal.type("\x04")
        assert terminal.finish() == 0
    assert '"declined": true' in terminal.shown


def test_progress_is_a_bar_that_the_output_replaces(project: Project) -> None:
    script = """echo '{"progress": 5, "total": 10, "message": "half"}' >&"$RYE_CHANNEL"
    read -r go; echo done"""
    project.command("tools/works", "/bin/sh", "-c", script.replace("read -r go; ", "sleep 0.5; "))
    with Terminal("run", "tools/works", cwd=project.path, user=project.user) as terminal:
        terminal.wait_for("[##########          ] 5/10 half")
        assert terminal.finish() == 0
    assert terminal.shown.endswith("\r\x1b[2Kdone\n")
