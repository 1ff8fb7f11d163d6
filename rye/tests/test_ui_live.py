"""Calls under way on the page ``rye ui``, over raw HTTP."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

from live_session import SLOW, command, live_run, wait_for
from rye.live.seen import SeenOutput, SeenRun, SeenRuns, Shown
from rye.ui.calls import Calls
from rye.ui.templating import environment
from rye_project import Project, says
from ui_session import served_page


def started(project: Project, item_id: str, parameters: dict[str, Any] | None = None) -> SeenRun:
    """Run a tool as the page does, to its end."""

    async def run() -> SeenRun:
        runs = SeenRuns()
        calls = Calls(project.context, runs)
        async with calls.running():
            run_id = calls.start(item_id, parameters or {})
            run = runs.get(run_id)
            assert run is not None
            while run.ended is None:
                await asyncio.sleep(0.01)
            return run

    return asyncio.run(run())


def test_a_call_of_the_page_has_its_output_and_its_end(tmp_path: Path) -> None:
    project = Project(tmp_path)
    says(project, "echo out; echo err >&2; exit 3", "tools/both")
    run = started(project, "tools/both")
    assert (run.stdout.text, run.stderr.text) == ("out\n", "err\n")
    assert run.ended is not None
    assert run.ended.outcome == "failed"
    assert run.ended.error == "'tools/both' ended with exit code 3: err"


def test_a_call_of_the_page_that_cannot_run_says_why(tmp_path: Path) -> None:
    run = started(Project(tmp_path), "tools/missing")
    assert run.ended is not None
    assert run.ended.outcome == "refused"
    assert run.ended.error.startswith("there is no item 'tools/missing'")


def test_output_of_a_tool_is_shown_as_text_without_control_characters(tmp_path: Path) -> None:
    project = Project(tmp_path)
    says(project, r"printf '\033[31mred\000\r\n\377'", "tools/odd")
    assert started(project, "tools/odd").stdout.text == "\\x1b[31mred\\x00\n\\udcff"


def test_a_secret_parameter_is_not_shown(tmp_path: Path) -> None:
    project = Project(tmp_path)
    secret = {"type": "string", "writeOnly": True}
    schema = {"type": "object", "properties": {"name": {"type": "string"}, "key": secret}}
    project.command("tools/secret", "/bin/echo", "hi", config_schema=schema)
    run = started(project, "tools/secret", {"name": "ada", "key": "hunter2"})
    assert run.parameters == {"name": "ada", "key": {"rye": "secret"}}


class Growing(SeenOutput):
    """A stream to which something is added whenever somebody looks."""

    @property
    def now(self) -> Shown:
        self.kept += "x"
        return Shown(self.kept, len(self.kept))

    @now.setter
    def now(self, shown: Shown) -> None:
        self.kept = shown.text


def test_output_that_comes_while_the_page_is_made_is_shown_once() -> None:
    run = SeenRun("0" * 20, "tools/slow", "rye run")
    run.stdout = Growing()
    page = '{% import "live_run.html" as live with context %}{{ live.run(run, true) }}'
    shown = environment().from_string(page).render(run=run, may_run=False)
    text = re.search(r'<pre id="live-stdout">(x+)</pre>', shown)
    assert text is not None
    assert f"?stdout={len(text[1])}&amp;" in shown


def test_a_stream_that_was_lost_goes_on_where_it_was_and_repeats_nothing(tmp_path: Path) -> None:
    project = Project(tmp_path)
    says(project, SLOW, "tools/slow")
    _ = project.context
    with served_page(project) as page, command(project, "run", "tools/slow") as run:
        visitor = page.enter()
        path = live_run(visitor)
        wait_for(visitor, path, "began")
        (project.path / "go").touch()
        run.wait(30)
        wait_for(visitor, path, "failed")
        events = f"{path.replace('/runs/', '/live/')}/events?stdout=0&stderr=0"
        everything = visitor.get(events).text
        assert "began" in everything
        places = re.findall(r"^id: (.+)$", everything, re.MULTILINE)
        assert places[-1] == "13.0"  # "began \\nended\\n"
        # A browser sends the last place back.
        again = visitor.get(events, **{"Last-Event-ID": places[-1]}).text
        assert "event: append" not in again
        assert "event: reload" in again
        middle = visitor.get(f"{events}&after=6.0").text
        assert r'"text": "\nended\n"' in middle
