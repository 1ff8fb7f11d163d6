"""A real Chromium for tests of the page ``rye ui``.

::

    with chromium() as browser, window(browser, page.enter()) as shown:
        shown.goto("/")
        shown.get_by_role("searchbox").fill("notes")
        assert serious_problems(shown) == []

``shown`` is a page of Playwright's synchronous interface. It waits through locators and
``expect``; ``wait_for_function`` needs ``eval``, which the content security policy forbids. While a
browser is open, its thread has a running event loop: prepare a project before it, or run the
command ``rye`` as a process.

The tests are skipped without the dependency group ``browser`` and without a browser.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from ui_session import Visitor

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
_ARGUMENTS = (
    "--no-sandbox",  # a container has no other way, and the page is our own
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
_SECONDS = 20
_BAD_REQUEST = "Failed to load resource: the server responded with a status of 400 "
PICTURES = "RYE_UI_PICTURES"


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser without a screen, until the end of the block."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs: uv sync --group browser")
    program = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if program is None:
        pytest.skip("needs chromium")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=list(_ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def window(
    browser: Any,
    visitor: Visitor,
    *,
    dark: bool = False,
    width: int = 1200,
    height: int = 900,
    javascript: bool = True,
    refused: bool = False,
) -> Iterator[Any]:
    """A window of the page, whose visitor has used the link.

    At the end of the block, the page must not have reported an error, such as a script or a style
    that the content security policy forbids, nor have asked for anything from another place.
    ``refused`` allows a form that the server answers with status 400: browsers report that as well.
    """
    origin = f"http://{visitor.page.host}"
    faults: list[str] = []
    context = browser.new_context(
        base_url=origin,
        color_scheme="dark" if dark else "light",
        viewport={"width": width, "height": height},
        java_script_enabled=javascript,
        reduced_motion="reduce",
    )
    try:
        context.set_default_timeout(_SECONDS * 1000)
        name, _, session = visitor.cookie.partition("=")
        context.add_cookies([{"name": name, "value": session, "url": origin}])
        shown = context.new_page()
        shown.on("pageerror", lambda error: faults.append(str(error)))
        shown.on("console", lambda line: _note_error(line, faults, refused=refused))
        shown.on("request", lambda request: _note_foreign(request.url, visitor.page.host, faults))
        yield shown
        assert faults == [], faults
    finally:
        context.close()


def serious_problems(shown: Any, rules: list[str] | None = None) -> list[str]:
    """Return what axe-core finds serious or critical in the accessibility of a page.

    ``rules`` are the names of those that are applied; all by default.
    """
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    options = None if rules is None else {"runOnly": {"type": "rule", "values": rules}}
    found = axe.Axe().run(shown, options=options).response["violations"]
    return [
        f"{one['id']}: {one['help']}: {', '.join(str(node['target'][0]) for node in one['nodes'])}"
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


def too_wide(shown: Any) -> bool:
    """True if the page as a whole has to be scrolled to the side."""
    wide: bool = shown.evaluate(
        "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    )
    return wide


def picture(shown: Any, name: str, *, whole: bool = False) -> None:
    """Make a screenshot, and keep it as ``NAME.png`` in the folder that ``RYE_UI_PICTURES`` names.

    ``whole`` includes what only scrolling would show. The footer has a path of this machine.
    """
    shown.evaluate("document.querySelector('footer').hidden = true")
    image = shown.screenshot(full_page=whole, animations="disabled")
    assert image.startswith(b"\x89PNG")
    if os.environ.get(PICTURES):
        (Path(os.environ[PICTURES]) / f"{name}.png").write_bytes(image)


def _note_error(line: Any, faults: list[str], *, refused: bool) -> None:
    if line.type == "error" and not (refused and line.text.startswith(_BAD_REQUEST)):
        faults.append(line.text)


def _note_foreign(url: str, host: str, faults: list[str]) -> None:
    if urlsplit(url).netloc != host:
        faults.append(f"asked for {url}")
