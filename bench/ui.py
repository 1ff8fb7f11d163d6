"""The first view of the page, with 1,000 tools and 100,000 runs.

`rye ui` is started anew for each round, and each page is the first one that the new process shows.
The time is from the request to the last byte of the response. The runs are imported with
`rye history import`. Later views are reported.
"""

import json
import re
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from rye.recording.run_ids import new_run_id
from rye.trust.operations import sign_item
from rye_project import Project
from ui_session import Visitor, served_page

from bench.catalogue import THINGS, TOOL, VERBS
from bench.programs import RYE, installed_environ
from bench.table import Report, Row

TOOLS = 1000
RUNS = 100_000
ROUNDS = 5
LIMIT_MS = 300.0


def project_with(root: Path, tools: int, runs: int) -> tuple[Project, list[str]]:
    """Create a project with signed tools and a history of runs of them; return it and the ids."""
    project = Project(root, shipped_system=True)
    context = project.context
    ids = []
    for number in range(tools):
        verb, thing = VERBS[number % 10], THINGS[number // 10 % 10]
        ids.append(f"shop_{number // 10}/{verb}_{thing}_{number}")
        path = project.path / ".ai" / "tools" / f"{ids[-1]}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TOOL.format(number=number, verb=verb, thing=thing))
        sign_item(path, context)
    file = root / "runs.jsonl"
    now = time.time_ns() // 1_000_000
    with file.open("w") as lines:
        for number in range(runs):
            record = {
                "id": new_run_id(now - (runs - number) * 1000),
                "time": "2026-01-01T00:00:00.000Z",
                "by": "mcp",
                "client": "agent 1.0",
                "project": str(project.path),
                # One tool has half of the runs.
                "item": ids[0] if number % 2 else ids[number * 7919 % tools],
                "version": "1.0.0",
                "outcome": "failed" if number % 20 == 0 else "ok",
                "ms": {"total": 5 + number * 37 % 1000},
                "parameters": {"sha256": "34" * 32},
                "output": {"stdout": {"bytes": 120, "sha256": "56" * 32}},
            }
            lines.write(f"{json.dumps(record)}\n")
    subprocess.run(
        [RYE, "history", "import", str(file)],
        cwd=project.path,
        env=installed_environ(project.user),
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return project, ids


def viewed(visitor: Visitor, path: str) -> float:
    """Return the milliseconds of one view."""
    started = time.perf_counter()
    answer = visitor.get(path)
    taken = (time.perf_counter() - started) * 1000
    assert answer.status == 200, answer.text
    return taken


def pages_of(visitor: Visitor, ids: list[str]) -> dict[str, str]:
    """Return what is viewed, and where: every section, and pages that depend on the amounts."""
    sections = re.findall(r'<li><a href="(/\w*)"[^>]*>(\w+)</a>', visitor.get("/").text)
    newest = re.search(r'href="(/runs/[^"]+)"', visitor.get("/history").text)
    assert newest is not None
    return {
        **{f"{name}, {path}": path for path, name in sections},
        "a search of tools": "/?q=invoice",
        "the busiest tool": f"/tools/{ids[0]}",
        "the failures of a tool": f"/history?tool={ids[7]}&outcome=failed",
        "a run": newest[1],
        "who signed what": "/trust/signatures",
        "the pins": "/trust/pins",
    }


def measure() -> Report:
    with tempfile.TemporaryDirectory() as name:
        project, ids = project_with(Path(name).resolve(), TOOLS, RUNS)
        with served_page(project) as page:
            visitor = page.enter()
            ever = viewed(visitor, "/")
            pages = pages_of(visitor, ids)
        rows = [Row("first view ever, which reads every tool", ever, unit=" ms")]
        for what, path in pages.items():
            first, later = [], []
            for _ in range(ROUNDS):
                with served_page(project) as page:
                    visitor = page.enter()
                    first.append(viewed(visitor, path))
                    later.append(viewed(visitor, path))
            detail = f"later {statistics.median(later):.0f} ms; longest first {max(first):.0f} ms"
            middle = statistics.median(first)
            rows.append(Row(f"first view of {what}", middle, LIMIT_MS, unit=" ms", detail=detail))
    return Report(rows, notes=[f"{TOOLS:,} tools, {RUNS:,} runs"])
