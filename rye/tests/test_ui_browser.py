"""The page ``rye ui`` in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from browser import chromium, picture, serious_problems, too_wide, window
from processes import wait_until
from rye_project import Project
from ui_session import Visitor, served_page


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("ui"), shipped_system=True)
    schema = {
        "type": "object",
        "properties": {"count": {"type": "integer", "minimum": 2, "description": "How often."}},
        "required": ["count"],
    }
    project.command("notes/hello", "/bin/echo", "hi", description="Says hi.", config_schema=schema)
    assert project.run("notes/hello", {"count": 2}).success
    _ = project.context
    return project


@pytest.fixture(scope="module")
def visitor(project: Project) -> Iterator[Visitor]:
    with served_page(project, "--run") as page:
        yield page.enter()


@pytest.fixture(scope="module")
def browser(project: Project) -> Iterator[Any]:  # made before: the browser has an event loop
    with chromium() as browser:
        yield browser


def test_the_link_opens_the_page_and_does_not_stay_in_the_address(
    browser: Any, project: Project
) -> None:
    with served_page(project) as page, window(browser, Visitor(page, "unused=")) as shown:
        shown.goto(page.link)
        shown.wait_for_url(f"http://{page.host}/")
        assert shown.get_by_role("heading", level=1).inner_text() == "Tools"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1200, 360], ids=["wide", "narrow"])
def test_the_list_of_tools_is_readable(
    browser: Any, visitor: Visitor, dark: bool, width: int
) -> None:
    with window(browser, visitor, dark=dark, width=width) as shown:
        shown.goto("/")
        assert shown.get_by_role("heading", level=1).inner_text() == "Tools"
        assert serious_problems(shown) == []
        assert not too_wide(shown)
        picture(shown, f"tools-{'dark' if dark else 'light'}-{width}")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1200, 360], ids=["wide", "narrow"])
def test_the_page_of_a_tool_is_readable(
    browser: Any, visitor: Visitor, dark: bool, width: int
) -> None:
    with window(browser, visitor, dark=dark, width=width) as shown:
        shown.goto("/tools/notes/hello")
        for name in ("What it may do", "Who signed it", "What it did last", "What a call runs"):
            assert shown.get_by_role("region", name=name).is_visible()
        assert serious_problems(shown) == []
        assert not too_wide(shown)
        picture(shown, f"tool-{'dark' if dark else 'light'}-{width}", whole=True)


def test_the_keyboard_reaches_the_search_and_the_content(browser: Any, visitor: Visitor) -> None:
    with window(browser, visitor) as shown:
        shown.goto("/")
        shown.keyboard.press("Tab")
        assert shown.evaluate("document.activeElement.textContent") == "Skip to content"
        shown.keyboard.press("/")
        shown.keyboard.type("hello")
        shown.keyboard.press("Enter")
        shown.wait_for_url("**/?q=hello*")
        shown.get_by_role("link", name="notes/hello").click()
        assert shown.get_by_role("heading", level=1).inner_text() == "notes/hello"


@pytest.mark.parametrize("javascript", [False, True], ids=["without scripts", "with scripts"])
def test_a_tool_is_called_from_its_form(browser: Any, visitor: Visitor, javascript: bool) -> None:
    with window(browser, visitor, javascript=javascript, refused=True) as shown:
        shown.goto("/tools/notes/hello")
        shown.get_by_label("count").fill("x")
        shown.get_by_role("button", name="Run").click()
        shown.get_by_text("expected an integer").wait_for()
        shown.get_by_label("count").fill("3")
        shown.get_by_role("button", name="Run").click()
        shown.wait_for_url("**/runs/*")
        steps = shown.get_by_role("heading", name="Steps")  # of a run that has ended
        if javascript:
            steps.wait_for()
        else:
            wait_until(lambda: shown.reload() and steps.is_visible(), "the run has ended")
        assert shown.get_by_role("log", name="stdout").inner_text() == "hi\n"
