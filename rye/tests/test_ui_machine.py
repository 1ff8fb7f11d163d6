"""The page ``/machine``: what ``rye doctor`` finds, and what can be enforced."""

from __future__ import annotations

import html
import re
from pathlib import Path

from processes import wait_until
from rye.executor.permitted import enforceable_here
from rye.permissions.words import PARTS
from rye_project import Project
from ui_session import Visitor, served_page

HOSTILE = "<b>\u202e"


def words(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


def checked(visitor: Visitor, path: str = "/machine") -> str:
    """The page when the checks have ended."""
    wait_until(lambda: "The checks are running" not in visitor.get("/machine").text, "checked")
    return visitor.get(path).text


def test_the_page_says_what_doctor_finds_and_what_can_be_enforced(tmp_path: Path) -> None:
    project = Project(tmp_path, shipped_system=True)
    project.tool(f"notes/{HOSTILE}.py", "x = (", signed=False)
    project.tool("notes/broken.yaml", f"{HOSTILE}: [", signed=False)
    with served_page(project) as page:
        visitor = page.enter()
        text = checked(visitor)
        again = visitor.get("/machine?again=1").text
    shown = words(text)
    assert re.search(r"\d problems?, (no|\d+) warnings? checked 20\d\d-", shown)
    assert "problem item notes/broken" in shown
    assert "ok lilux-proc" in shown
    for part in enforceable_here():
        name = PARTS[part.part]
        state = f"not possible {part.reason}" if part.reason else f"enforced {part.mechanism}"
        assert f"{name[0].upper()}{name[1:]} {state} {'yes' if part.required else 'no'}" in shown
    assert f"Project {project.path}" in shown
    assert "<b>" not in text
    assert "\u202e" not in text
    # The checks have just ended: asking again at once does not repeat them.
    assert "The checks are running" not in again


def test_the_first_view_does_not_wait_for_slow_checks(tmp_path: Path) -> None:
    project = Project(tmp_path)
    fifo = tmp_path / "bin" / "node"
    fifo.parent.mkdir()
    # A program that prints its version only when it is allowed to.
    gate = tmp_path / "gate"
    fifo.write_text(f"#!/bin/sh\nwhile [ ! -e {gate} ]; do sleep 0.05; done\necho v20.0.0\n")
    fifo.chmod(0o755)
    project.yaml(
        "runtimes/slow",
        tool_type="runtime",
        executor_id="rye/core/primitives/subprocess",
        env_config={"interpreter": {"type": "system_binary", "binary": "node", "var": "NODE"}},
        config={"command": "${NODE}"},
    )
    _ = project.context
    with served_page(project, env={"PATH": f"{fifo.parent}:/usr/bin:/bin"}) as page:
        visitor = page.enter()
        text = visitor.get("/machine").text
        gate.touch()
        assert "The checks are running" in text
        assert 'data-events="/machine/events"' in text
        assert "Load the page again" in text
        assert "event: reload" in visitor.get("/machine/events").text
        assert "v20" not in text
        assert "node (20.0.0)" in words(checked(visitor))
