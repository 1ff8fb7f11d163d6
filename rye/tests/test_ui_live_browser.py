"""Calls under way in a real browser: output appears while it comes, and questions are answered."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from browser import chromium, picture, serious_problems, too_wide, window
from live_session import command
from mcp_session import HANDSHAKE, over_stdio, text_of
from rye_project import Project
from ui_session import Visitor, served_page

STEPS = """
echo '<b>first</b>'
echo '{"progress": 1, "total": 2, "message": "halfway"}' >&$RYE_CHANNEL
until [ -e on ]; do sleep 0.02; done
echo second; echo problem >&2
until [ -e go ]; do sleep 0.02; done
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.command("notes/steps", "/bin/bash", "-c", STEPS)
    schema = {"properties": {"text": {"type": "string"}}}
    project.command("notes/add", "/bin/echo", "added", "{text}", config_schema=schema)
    rule = {"tools": ["notes/add"], "allow": "ask"}
    project.settings(agents=[rule], permissions={"unenforced": "allow"})
    _ = project.context
    return project


@pytest.fixture
def visitor(project: Project) -> Iterator[Visitor]:
    with served_page(project, "--run") as page:
        yield page.enter()


@pytest.fixture
def browser(visitor: Visitor) -> Iterator[Any]:
    with chromium() as browser:
        yield browser


def checked(shown: Any, name: str) -> None:
    assert serious_problems(shown) == []
    assert not too_wide(shown)
    picture(shown, name)


def test_a_call_appears_with_its_output_while_it_comes_and_is_cancelled(
    project: Project, visitor: Visitor, browser: Any
) -> None:
    with window(browser, visitor) as shown:
        shown.goto("/live")
        shown.get_by_text("No call is under way.").wait_for()
        with command(project, "run", "notes/steps") as run:
            # The page loads itself again when a call begins.
            shown.get_by_role("link", name="notes/steps").wait_for()
            shown.get_by_text("1 of 2 (50%), halfway").wait_for()
            checked(shown, "live")
            shown.get_by_role("link", name="notes/steps").click()
            output = shown.get_by_role("log", name="stdout")
            output.get_by_text("<b>first</b>").wait_for()
            shown.evaluate("document.body.dataset.mark = 'same document'")
            (project.path / "on").touch()
            output.get_by_text("second").wait_for()
            shown.get_by_role("log", name="stderr").get_by_text("problem").wait_for()
            shown.get_by_role("region", name="Processes").get_by_text("bash").wait_for()
            assert shown.evaluate("document.body.dataset.mark") == "same document"
            checked(shown, "live-call")
            shown.get_by_role("button", name="Cancel the call").click()
            assert run.wait(30) == 130
            shown.get_by_text("cancelled").first.wait_for()


def test_an_approval_is_answered_with_a_click_also_without_scripts(
    project: Project, visitor: Visitor, browser: Any
) -> None:
    async def call() -> str:
        async with over_stdio(project, HANDSHAKE) as client:
            given = {"item_id": "notes/add", "parameters": {"text": "<i>"}}
            return text_of(await client.call_tool("execute", given))

    with ThreadPoolExecutor(1) as thread:
        with window(browser, visitor) as shown:
            shown.goto("/live")
            result = thread.submit(asyncio.run, call())
            question = shown.get_by_role("region", name="A question that waits")
            question.get_by_text("May the agent run notes/add?").wait_for()
            assert 'text: "<i>"' in question.inner_text()
            checked(shown, "live-question")
            question.get_by_role("button", name="Decline").click()
            assert "the user declined to run 'notes/add'" in result.result(30)
        result = thread.submit(asyncio.run, call())
        with window(browser, visitor, javascript=False) as shown:
            shown.goto("/live")
            while not shown.get_by_role("button", name="Allow").count():
                shown.get_by_role("link", name="Load the page again").click()
            shown.get_by_role("button", name="Allow").click()
            assert result.result(30) == "added <i>\n"


HIDDEN_OR_NOT = """state => {
    Object.defineProperty(document, "visibilityState", {value: state, configurable: true});
    document.dispatchEvent(new Event("visibilitychange"));
}"""


def test_many_tabs_do_not_keep_another_one_from_loading_and_go_on_when_they_are_seen(
    project: Project, visitor: Visitor, browser: Any
) -> None:
    with window(browser, visitor) as shown, command(project, "run", "notes/steps"):
        shown.goto("/live")
        shown.get_by_role("link", name="notes/steps").click()
        output = shown.get_by_role("log", name="stdout")
        output.get_by_text("<b>first</b>").wait_for()
        shown.evaluate(HIDDEN_OR_NOT, "hidden")
        # A browser opens six connections to one place.
        for _ in range(6):
            tab = shown.context.new_page()
            tab.goto("/live")
            tab.evaluate(HIDDEN_OR_NOT, "hidden")
        (project.path / "on").touch()
        last = shown.context.new_page()
        last.goto("/live")
        last.get_by_role("link", name="notes/steps").wait_for()
        shown.evaluate(HIDDEN_OR_NOT, "visible")
        output.get_by_text("second").wait_for()
        shown.evaluate(HIDDEN_OR_NOT, "hidden")
        shown.evaluate(HIDDEN_OR_NOT, "visible")
        (project.path / "go").touch()
        shown.get_by_role("heading", name="Receipt").wait_for()
        assert output.inner_text() == "<b>first</b>\nsecond\n"
