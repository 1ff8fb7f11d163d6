"""Calls under way on the page ``rye ui``, over raw HTTP."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from rye.live.seen import SeenRun, SeenRuns
from rye.ui.calls import Calls
from rye_project import Project, says


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
