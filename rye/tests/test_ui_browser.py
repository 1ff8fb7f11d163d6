"""The page ``rye ui`` in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from browser import chromium, picture, serious_problems, too_wide, window
from rye_project import Project
from ui_session import Visitor, served_page


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("ui"))
    project.command("notes/hello", "/bin/echo", "hi", description="Says hi.")
    _ = project.context
    return project


@pytest.fixture(scope="module")
def visitor(project: Project) -> Iterator[Visitor]:
    with served_page(project, "--run") as page:
        yield page.enter()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
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
