"""Every page of ``rye ui`` in a real browser, and the pictures of ``docs/ui.md``.

To make the pictures again: ``RYE_UI_PICTURES=docs/pictures uv run --group browser pytest -n 0
rye/tests/test_ui_browser.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from browser import chromium, picture, serious_problems, too_wide, window
from page_story import ASKS, SLOW, story
from processes import wait_until
from rye.ui.app import MODULES, sections_of
from rye_project import Project, says
from ui_session import Visitor, served_page

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"
SECTIONS = sections_of(
    [route for name in MODULES for route in import_module(f"rye.ui.pages.{name}").ROUTES]
)
FIRST_BATCH = "/batches/*"
PAGES = {
    **{f"ui-{name.lower()}": path for name, path in SECTIONS.items()},
    "ui-tool": "/tools/notes/add",
    "ui-changed": "/tools/notes/weekly#files",
    "ui-run": "/runs/last",
    "ui-batch": FIRST_BATCH,
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = story(tmp_path_factory.mktemp("ui"))
    says(project, f"echo '{HOSTILE}'; printf '\\033[31mred'", "zz/hostile")
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


def opened(shown: Any, path: str) -> None:
    """Load a page, and wait until it does not load itself again."""
    shown.goto(path.removesuffix("/*"))
    if path == FIRST_BATCH:
        shown.get_by_role("link", name="notes/find").click()
        shown.wait_for_url(path)
    elif path == "/machine":
        shown.get_by_role("heading", name="What can be enforced").wait_for()


def seen_in_both(shown: Any, name: str) -> None:
    """Look for problems of a page in light and dark, and make pictures of it if it has a name."""
    for scheme, rules in (("light", None), ("dark", ["color-contrast"])):
        shown.emulate_media(color_scheme=scheme)
        assert serious_problems(shown, rules) == []
        if name:
            picture(shown, f"{name}-{scheme}")


def test_the_link_opens_the_page_and_does_not_stay_in_the_address(
    browser: Any, project: Project
) -> None:
    with served_page(project) as page, window(browser, Visitor(page, "unused=")) as shown:
        shown.goto(page.link)
        shown.wait_for_url(f"http://{page.host}/")
        assert shown.get_by_role("heading", level=1).inner_text() == "Tools"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_readable_in_light_dark_and_narrow_windows(
    browser: Any, visitor: Visitor, name: str
) -> None:
    """A window also fails if the page reports an error or asks another place for something."""
    with window(browser, visitor, width=1120, height=700) as shown:
        opened(shown, PAGES[name])
        assert shown.get_by_role("heading", level=1).count() == 1
        seen_in_both(shown, name if name != "ui-live" else "")  # nothing runs yet
        shown.set_viewport_size({"width": 360, "height": 700})
        assert not too_wide(shown)
        for link in shown.get_by_role("navigation", name="Sections").get_by_role("link").all():
            place = link.bounding_box()
            assert place["x"] + place["width"] <= 360


@pytest.mark.parametrize("name", PAGES)
def test_a_page_can_be_read_without_scripts(browser: Any, visitor: Visitor, name: str) -> None:
    with window(browser, visitor, javascript=False) as shown:
        shown.goto(PAGES[name].removesuffix("/*"))
        assert shown.get_by_role("heading", level=1).is_visible()
        assert shown.get_by_role("navigation", name="Sections").get_by_role("link").count() > 3


def test_the_keyboard_reaches_the_search_and_the_content(browser: Any, visitor: Visitor) -> None:
    with window(browser, visitor) as shown:
        shown.goto("/")
        shown.keyboard.press("Tab")
        assert shown.evaluate("document.activeElement.textContent") == "Skip to content"
        assert shown.get_by_role("link", name="Skip to content").is_visible()
        shown.keyboard.press("/")
        shown.keyboard.type("longest")
        shown.keyboard.press("Enter")
        shown.wait_for_url("**/?q=longest*")
        shown.get_by_role("link", name="notes/longest").click()
        assert shown.get_by_role("heading", level=1).inner_text() == "notes/longest"


def test_the_keyboard_fills_in_and_sends_a_form_and_its_place_is_visible(
    browser: Any, visitor: Visitor
) -> None:
    with window(browser, visitor) as shown:
        shown.goto("/tools/notes/find")
        for _ in range(40):
            shown.keyboard.press("Tab")
            place = shown.evaluate(
                "(() => { const at = document.activeElement, style = getComputedStyle(at);"
                " return [at.name || '', style.outlineStyle, style.outlineWidth]; })()"
            )
            assert place[1:] not in (["none", "0px"], ["none", "3px"]), place
            if place[0] == "p.text":
                break
        shown.keyboard.type("flour")
        shown.keyboard.press("Tab")
        shown.keyboard.press("Enter")
        shown.wait_for_url("**/runs/*")
        shown.get_by_role("heading", name="Steps").wait_for()
        assert "buy rye flour #shop" in shown.locator("main").inner_text()


@pytest.mark.parametrize("javascript", [False, True], ids=["without scripts", "with scripts"])
def test_a_tool_is_called_from_its_form(browser: Any, visitor: Visitor, javascript: bool) -> None:
    with window(browser, visitor, javascript=javascript, refused=True) as shown:
        shown.goto("/tools/notes/add")
        shown.get_by_label("tags").fill('["NO"]')
        shown.get_by_role("button", name="Run").click()
        shown.get_by_text("The call was not started.").wait_for()
        assert shown.get_by_label("text").get_attribute("aria-invalid") == "true"
        assert shown.locator(".fault").all_inner_texts() == [
            "required",
            'tags[0]: expected a match of the pattern "^[a-z]+$"',
        ]
        shown.get_by_label("text").fill("seen in a browser")
        shown.get_by_label("tags").fill('["ok"]')
        shown.get_by_role("button", name="Run").click()
        shown.wait_for_url("**/runs/*")
        steps = shown.get_by_role("heading", name="Steps")  # of a run that has ended
        if javascript:
            steps.wait_for()
        else:
            wait_until(lambda: shown.reload() and steps.is_visible(), "the run has ended")
        assert '{"notes": ' in shown.get_by_role("region", name="stdout").inner_text()


def test_output_appears_while_a_call_runs_and_the_call_can_be_cancelled(
    browser: Any, visitor: Visitor
) -> None:
    with window(browser, visitor, width=1120, height=520) as shown:
        shown.goto(f"/tools/{SLOW}")
        shown.get_by_role("button", name="Run").click()
        shown.get_by_role("log", name="stdout").get_by_text("exported notes/3.html").wait_for()
        address = shown.url
        seen_in_both(shown, "ui-call")
        shown.goto("/live")
        assert shown.get_by_text("note 3 of 8").is_visible()
        seen_in_both(shown, "ui-live")
        shown.goto(address)
        shown.get_by_role("button", name="Cancel").click()
        shown.get_by_text("cancelled").first.wait_for()


def test_a_question_of_a_tool_is_answered_on_the_page(browser: Any, visitor: Visitor) -> None:
    with window(browser, visitor, width=1120, height=520) as shown:
        shown.goto(f"/tools/{ASKS}")
        shown.get_by_role("button", name="Run").click()
        shown.wait_for_url("**/runs/*")
        shown.get_by_text("Remove 3 notes that are older than a year?").wait_for()
        seen_in_both(shown, "ui-question")
        shown.get_by_role("button", name="Decline").click()
        shown.get_by_role("heading", name="Steps").wait_for()
        assert '{"declined": true}' in shown.locator("main").inner_text()


def test_markup_and_colours_in_output_stay_text(browser: Any, visitor: Visitor) -> None:
    with window(browser, visitor) as shown:
        shown.on("dialog", lambda dialog: pytest.fail(dialog.message))
        shown.goto("/tools/zz/hostile")
        shown.get_by_role("button", name="Run").click()
        shown.get_by_role("heading", name="Steps").wait_for()
        assert f"{HOSTILE}\n\\x1b[31mred" in shown.get_by_role("log", name="stdout").inner_text()
        assert shown.locator("main img, main script").count() == 0
