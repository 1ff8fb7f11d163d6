"""Progress and questions of a tool, over MCP: notifications and elicitation."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import CallToolResult, ElicitRequestFormParams, ElicitResult
from mcp_session import ERAS, HANDSHAKE, STATELESS, connected, over_http, refused, text_of
from processes import assert_ended, pid_in
from rye.mcp.settings import ServerSettings
from rye_project import Project

SECONDS = 30
YES_OR_NO = {"type": "boolean"}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def asking(project: Project, *questions: dict[str, Any]) -> None:
    """Add a tool that asks each question and prints what it reads."""
    steps = []
    for question in questions:
        line = json.dumps({"ask": question}).replace("'", "'\\''")
        steps.append(f"""echo '{line}' >&"$RYE_CHANNEL" """)
        steps.append('read -r answer <&"$RYE_CHANNEL"; echo "$answer"')
    project.command("asks", "/bin/sh", "-c", "\n".join(steps))


class User:
    """The user of a client: answers in order, and remembers the forms."""

    def __init__(self, *answers: ElicitResult) -> None:
        self.forms: list[ElicitRequestFormParams] = []
        self._answers = list(answers)

    async def __call__(self, _context: object, params: Any) -> ElicitResult:
        self.forms.append(params)
        return self._answers.pop(0)


def accept(**content: Any) -> ElicitResult:
    return ElicitResult(action="accept", content=content)


def answers_to(project: Project, era: str, user: User | None) -> list[Any]:
    async def run() -> CallToolResult:
        options: Any = {} if user is None else {"elicitation_callback": user}
        async with connected(project, era, **options) as client, asyncio.timeout(SECONDS):
            return await client.call_tool("execute", {"item_id": "asks"})

    result = asyncio.run(run())
    assert not result.is_error, text_of(result)
    return [json.loads(line) for line in text_of(result).splitlines()]


@pytest.mark.parametrize("era", ERAS)
def test_a_question_of_a_tool_is_asked_through_the_client(project: Project, era: str) -> None:
    asking(project, {"message": "Go on?", "schema": YES_OR_NO}, {"message": "Your name?"})
    user = User(accept(answer=True), ElicitResult(action="decline"))
    assert answers_to(project, era, user) == [{"answer": True}, {"declined": True}]
    assert [form.message for form in user.forms] == ["asks asks: Go on?", "asks asks: Your name?"]
    assert user.forms[0].requested_schema == {
        "type": "object",
        "properties": {"answer": {"type": "boolean"}},
        "required": ["answer"],
    }


@pytest.mark.parametrize("era", ERAS)
def test_a_client_that_cannot_ask_makes_a_question_unavailable(project: Project, era: str) -> None:
    asking(project, {"message": "Go on?"})
    assert answers_to(project, era, None) == [{"unavailable": True}]


def test_an_invalid_answer_is_asked_for_again_with_the_reason(project: Project) -> None:
    asking(project, {"message": "How many?", "schema": {"type": "integer", "minimum": 1}})
    user = User(accept(answer=0), accept(answer=3))
    assert answers_to(project, STATELESS, user) == [{"answer": 3}]
    assert user.forms[1].message.startswith("asks asks: How many?\n\nanswer: ")


def test_a_tool_whose_user_never_answers_validly_reads_that_it_was_declined(
    project: Project,
) -> None:
    asking(project, {"message": "How many?", "schema": {"type": "integer"}})
    user = User(*[accept(answer="many") for _ in range(3)])
    assert answers_to(project, HANDSHAKE, user) == [{"declined": True}]


def test_a_form_has_the_plain_fields_of_a_schema_and_json_for_the_others(project: Project) -> None:
    schema = {
        "type": "object",
        "properties": {
            "kind": {"type": "string", "enum": ["a", "b"], "default": "a"},
            "mail": {"type": "string", "format": "email", "pattern": "@"},
            "level": {"type": "integer", "enum": [1, 2], "title": "Level"},
            "tags": {"type": "array", "items": {"type": "string", "enum": ["x", "y"]}},
            "where": {"type": "object"},
        },
        "required": ["kind", "level"],
    }
    asking(project, {"message": "Details?", "schema": schema})
    user = User(accept(kind="b", level="2", where='{"x": 1}'))
    assert answers_to(project, HANDSHAKE, user) == [
        {"answer": {"kind": "b", "level": 2, "where": {"x": 1}}}
    ]
    shown = user.forms[0].requested_schema
    assert shown["required"] == ["kind", "level"]
    assert shown["properties"] == {
        "kind": {"type": "string", "enum": ["a", "b"], "default": "a"},
        "mail": {"type": "string", "format": "email"},
        "level": {"type": "string", "description": "Level; one of 1, 2; write it as JSON"},
        "tags": {"type": "array", "items": {"type": "string", "enum": ["x", "y"]}},
        "where": {"type": "string", "description": "write it as JSON"},
    }


def test_questions_are_asked_over_http_in_both_revisions(project: Project) -> None:
    asking(project, {"message": "Go on?", "schema": YES_OR_NO})

    async def run() -> list[str]:
        texts = []
        async with over_http(project) as server, asyncio.timeout(SECONDS):
            for era in ERAS:
                user = User(accept(answer=False))
                async with server.client(era, elicitation_callback=user) as client:
                    texts.append(text_of(await client.call_tool("execute", {"item_id": "asks"})))
        return texts

    assert [json.loads(text) for text in asyncio.run(run())] == [{"answer": False}] * 2


@contextlib.asynccontextmanager
async def by_hand(
    project: Project, settings: ServerSettings | None = None
) -> AsyncIterator[Callable[..., Any]]:
    """A client of 2026-07-28 that sends each round of a call itself."""
    user = User()
    async with (
        connected(project, STATELESS, settings, elicitation_callback=user) as client,
        asyncio.timeout(SECONDS),
    ):

        async def call(**more: Any) -> Any:
            given = {"item_id": "asks", **more.pop("arguments", {})}
            return await client.session.call_tool("execute", given, **more)

        yield lambda **more: call(allow_input_required=True, **more)


ADA: Any = {"user_name": {"action": "accept", "content": {"answer": "Ada"}}}
YES: Any = {"question": {"action": "accept", "content": {"answer": True}}}


def test_a_state_continues_one_call_once(project: Project) -> None:
    asking(project, {"message": "Go on?", "schema": YES_OR_NO})

    async def run() -> None:
        async with by_hand(project) as call:
            first = await call()
            assert first.result_type == "input_required"
            state = first.request_state
            changed = call(
                request_state=state, input_responses=YES, arguments={"parameters": {"other": 1}}
            )
            assert "belongs to another call" in (await refused(changed)).message
            forged = call(request_state=state[:-1] + "!", input_responses=YES)
            assert "requestState is unknown" in (await refused(forged)).message
            # A round without the answer is asked again.
            again = await call(request_state=state, input_responses={})
            assert again.request_state == state
            assert '"answer": true' in text_of(await call(request_state=state, input_responses=YES))
            used = call(request_state=state, input_responses=YES)
            assert "was used" in (await refused(used)).message

    asyncio.run(run())


def test_a_question_is_asked_under_the_name_that_the_tool_gives_it(project: Project) -> None:
    asking(
        project,
        {"message": "Who?", "name": "user_name"},
        {"message": "Go on?", "schema": YES_OR_NO},
    )

    async def run() -> None:
        async with by_hand(project) as call:
            first = await call()
            assert list(first.input_requests) == ["user_name"]
            second = await call(request_state=first.request_state, input_responses=ADA)
            assert list(second.input_requests) == ["question"]
            # An answer to another question is none.
            third = await call(request_state=second.request_state, input_responses=ADA)
            assert third.request_state == second.request_state
            last = await call(request_state=third.request_state, input_responses=YES)
            assert text_of(last).startswith('{"answer": "Ada"}\n')

    asyncio.run(run())


def test_an_answer_in_the_first_request_is_for_a_question_that_the_tool_named(
    project: Project,
) -> None:
    asking(project, {"message": "Who?", "name": "user_name"}, {"message": "Who else?"})
    unnamed: Any = {"question": {"action": "accept", "content": {"answer": "Bob"}}}

    async def run() -> None:
        async with by_hand(project) as call:
            first = await call(input_responses={**ADA, **unnamed, "unknown": {"action": "accept"}})
            assert list(first.input_requests) == ["question"]
            last = await call(request_state=first.request_state, input_responses=unnamed)
            assert text_of(last) == '{"answer": "Ada"}\n{"answer": "Bob"}\n'

    asyncio.run(run())


def test_an_answer_in_the_first_request_that_does_not_fit_is_asked_for(project: Project) -> None:
    asking(project, {"message": "Who?", "name": "user_name"})
    empty: Any = {"user_name": {"action": "accept", "content": {}}}

    async def run() -> None:
        async with by_hand(project) as call:
            first = await call(input_responses=empty)
            assert list(first.input_requests) == ["user_name"]
            last = await call(request_state=first.request_state, input_responses=ADA)
            assert text_of(last) == '{"answer": "Ada"}'

    asyncio.run(run())


def test_an_approval_cannot_be_given_in_the_first_request(project: Project) -> None:
    project.command("asks", "/bin/echo", "ran")
    settings = ServerSettings(ask=("asks",))
    accepted: Any = {"question": {"action": "accept", "content": {}}}

    async def run() -> None:
        async with by_hand(project, settings) as call:
            first = await call(input_responses=accepted)
            assert first.result_type == "input_required"
            last = await call(request_state=first.request_state, input_responses=accepted)
            assert text_of(last) == "ran\n"

    asyncio.run(run())


def test_a_call_whose_client_does_not_come_back_is_cancelled(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rye.mcp.open_calls.ANSWER_SECONDS", 0.05)
    line = json.dumps({"ask": {"message": "Go on?"}})
    script = f"""echo $$ >{tmp_path}/pid; echo '{line}' >&"$RYE_CHANNEL"; exec sleep 600"""
    project.command("asks", "/bin/sh", "-c", script)

    async def run() -> None:
        async with by_hand(project) as call:
            state = (await call()).request_state
            tool = pid_in(tmp_path / "pid")
            await asyncio.to_thread(assert_ended, {"tool": tool})
            late = call(request_state=state, input_responses=YES)
            assert "requestState is unknown" in (await refused(late)).message

    asyncio.run(run())


@pytest.mark.parametrize("era", ERAS)
def test_the_progress_of_a_tool_is_sent_as_it_reports_it(project: Project, era: str) -> None:
    lines = [
        {"progress": 0, "total": 100, "message": "begin"},
        {"progress": 50, "total": 100},
        {"progress": 100, "total": 100, "message": "end"},
    ]
    script = "\n".join(f"""echo '{json.dumps(line)}' >&"$RYE_CHANNEL" """ for line in lines)
    project.command("steps", "/bin/sh", "-c", script)
    reported: list[tuple[float, float | None, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        reported.append((progress, total, message))

    async def run() -> None:
        async with connected(project, era) as client, asyncio.timeout(SECONDS):
            call = client.call_tool("execute", {"item_id": "steps"}, progress_callback=on_progress)
            assert not (await call).is_error
            await settled(client)

    asyncio.run(run())
    assert reported == [(0, 100, "begin"), (50, 100, None), (100, 100, "end")]


async def settled(client: Client) -> None:
    """Messages are handled in the order of arrival, so this answer is the last."""
    await client.list_tools()
