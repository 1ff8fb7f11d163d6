"""Questions of agents and tools wait on the page ``rye ui``; the first answer is used."""

from __future__ import annotations

import asyncio
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from live_session import live_run, wait_for
from mcp.types import CallToolResult, ElicitResult
from mcp_session import ERAS, HANDSHAKE, STATELESS, over_stdio, text_of
from processes import wait_until
from rye.live.folder import PresentPage, a_page_answers
from rye.ui.access import form_token
from rye_command import COMMAND, environment
from rye_project import Project
from ui_session import Answer, Visitor, served_page

ASKS = """
import json, os, socket
channel = socket.socket(fileno=int(os.environ["RYE_CHANNEL"]))
lines = channel.makefile()
for message in ("First?", "Second?"):
    fields = {"name": {"type": "string"}, "n": {"type": "integer"}}
    schema = {"type": "object", "properties": fields}
    channel.sendall(json.dumps({"ask": {"message": message, "schema": schema}}).encode() + b"\\n")
    print(lines.readline().strip())
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    key = {"type": "string", "writeOnly": True}
    schema = {"properties": {"text": {"type": "string"}, "key": key}}
    project.command("notes/add", "/bin/echo", "added", "{text}", config_schema=schema)
    project.command("notes/ask", "/usr/bin/env", "python3", "-c", ASKS)
    rule = {"tools": ["notes/add"], "allow": "ask"}
    project.settings(agents=[rule], permissions={"unenforced": "allow"})
    _ = project.context
    return project


class User:
    """Sees a question in the client, and answers it when told to."""

    def __init__(self, answer: ElicitResult) -> None:
        self.asked: list[str] = []
        self.may_answer = asyncio.Event()
        self._answer = answer

    async def __call__(self, _context: object, params: Any) -> ElicitResult:
        self.asked.append(params.message)
        await self.may_answer.wait()
        return self._answer


class Waiting:
    """The question that waits on a page."""

    def __init__(self, visitor: Visitor, message: str) -> None:
        self.visitor = visitor
        self.run = live_run(visitor)
        self.text = wait_for(visitor, "/live", message)
        found = re.search(r'action="(/live/\w{20}/answer/\w+)"', self.text)
        self.address = "" if found is None else found[1]

    def answer(self, **fields: str) -> Answer:
        token = form_token(self.visitor.cookie.partition("=")[2])
        return self.visitor.post(self.address, {"csrf": token, **fields})


async def waiting(visitor: Visitor, message: str = "May the agent run notes/add?") -> Waiting:
    return await asyncio.to_thread(Waiting, visitor, message)


async def add(client: Any) -> CallToolResult:
    parameters = {"text": "<b>", "key": "hunter2"}
    given = {"item_id": "notes/add", "parameters": parameters}
    result: CallToolResult = await client.call_tool("execute", given)
    return result


def gone(visitor: Visitor) -> None:
    wait_until(lambda: "waits for an answer" not in visitor.get("/live").text, "nothing waits")


@pytest.mark.parametrize("era", ERAS)
def test_an_approval_is_answered_on_the_page_while_the_client_still_asks(
    project: Project, era: str
) -> None:
    async def run(visitor: Visitor) -> None:
        user = User(ElicitResult(action="decline"))
        async with over_stdio(project, era, elicitation_callback=user) as client:
            calling = asyncio.create_task(add(client))
            asked = await waiting(visitor)
            assert "text: &#34;&lt;b&gt;&#34;" in asked.text
            assert "key: (secret, not shown)" in asked.text
            assert "everything that you can do (unconfined)" in asked.text
            assert "Signed by: you (" in asked.text
            assert "hunter2" not in asked.text
            assert asked.answer(action="accept").status == 303
            await asyncio.to_thread(gone, visitor)
            if era == STATELESS:
                # This client comes back when its user has answered, which is too late.
                user.may_answer.set()
            result = await calling
            assert not result.is_error
            assert text_of(result) == "added <b>\n"
            assert len(user.asked) == 1
            again = asked.answer(action="accept")
            assert again.status in (404, 409)

    with served_page(project, "--run") as page:
        asyncio.run(run(page.enter()))


def test_an_answer_of_the_client_closes_the_question_on_the_page(project: Project) -> None:
    async def run(visitor: Visitor) -> None:
        user = User(ElicitResult(action="decline"))
        async with over_stdio(project, HANDSHAKE, elicitation_callback=user) as client:
            calling = asyncio.create_task(add(client))
            asked = await waiting(visitor)
            user.may_answer.set()
            assert "the user declined to run 'notes/add'" in text_of(await calling)
            late = asked.answer(action="accept")
            assert late.status == 409
            assert "the question has been answered" in late.text

    with served_page(project, "--run") as page:
        asyncio.run(run(page.enter()))


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("action", ["accept", "decline"])
def test_a_client_that_cannot_ask_is_served_by_a_page_that_can_answer(
    project: Project, era: str, action: str
) -> None:
    async def run(visitor: Visitor) -> None:
        async with over_stdio(project, era) as client:
            calling = asyncio.create_task(add(client))
            asked = await waiting(visitor)
            assert asked.answer(action=action, **{"from": "live"}).headers["location"] == "/live"
            text = text_of(await calling)
            declined = "the user declined to run 'notes/add'"
            assert text == "added <b>\n" if action == "accept" else declined in text

    with served_page(project, "--run") as page:
        asyncio.run(run(page.enter()))


def test_a_call_is_refused_if_the_only_page_that_can_answer_is_closed(project: Project) -> None:
    async def run() -> None:
        async with over_stdio(project, HANDSHAKE) as client:
            with served_page(project, "--run") as page:
                calling = asyncio.create_task(add(client))
                await waiting(page.enter())
            text = text_of(await calling)
            assert "the page that could ask the user was closed" in text

    asyncio.run(run())


def test_a_read_only_page_shows_a_question_and_cannot_answer_it(project: Project) -> None:
    async def run(visitor: Visitor) -> None:
        user = User(ElicitResult(action="accept", content={}))
        async with over_stdio(project, HANDSHAKE, elicitation_callback=user) as client:
            calling = asyncio.create_task(add(client))
            asked = await waiting(visitor)
            assert "To answer here, start: <code>rye ui --run</code>" in asked.text
            assert asked.address == ""
            user.may_answer.set()
            assert not (await calling).is_error

    with served_page(project) as page:
        assert not a_page_answers(project.user)
        asyncio.run(run(page.enter()))


@pytest.mark.parametrize("era", ERAS)
def test_questions_of_a_tool_are_answered_with_a_form(project: Project, era: str) -> None:
    """An answer of the client to the first question, which is late, does not answer the second."""

    async def run(visitor: Visitor) -> None:
        user = User(ElicitResult(action="accept", content={"name": "client", "n": 0}))
        async with over_stdio(project, era, elicitation_callback=user) as client:
            given = {"item_id": "notes/ask"}
            calling = asyncio.create_task(client.call_tool("execute", given))
            asked = await waiting(visitor, "First?")
            fields = {"field-name": "ada", "field-n": "many"}
            assert asked.answer(action="accept", **fields).status == 303
            asked = await waiting(visitor, "First?\n\n")
            fields["field-n"] = "3"
            assert asked.answer(action="accept", **fields).status == 303
            await waiting(visitor, "Second?")
            user.may_answer.set()
            result = text_of(await calling)
            first, second = result.splitlines()
            assert first == '{"answer": {"name": "ada", "n": 3}}'
            assert second == '{"answer": {"name": "client", "n": 0}}'
            assert user.asked[-1] == "notes/ask asks: Second?"

    with served_page(project, "--run") as page:
        asyncio.run(run(page.enter()))


def test_a_page_that_was_killed_answers_nothing(project: Project) -> None:
    with subprocess.Popen(
        [*COMMAND, "ui", "--run", "--no-open"],
        cwd=project.path,
        env=environment(project.user),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    ) as page:
        wait_until(lambda: a_page_answers(project.user), "the page can answer")
        page.kill()
    assert not a_page_answers(project.user)


def test_a_page_says_that_it_can_answer_until_it_ends(project: Project) -> None:
    assert not a_page_answers(project.user)
    page = PresentPage(project.user)
    assert a_page_answers(project.user)
    page.close()
    assert not a_page_answers(project.user)
