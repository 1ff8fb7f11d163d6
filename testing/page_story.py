"""A project with a past, for the tests and the pictures of the page ``rye ui``.

It is the example project after a few days: an agent has used its tools, a tool of the user was
changed after it was pinned, and a batch has run. Make it before a browser is opened.
"""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

from rye.recording.record import utc_text
from rye.recording.run_ids import new_run_id
from rye_command import rye
from rye_project import Project

EXAMPLES = Path(__file__).parents[1] / "examples"
SLOW = "notes/export"
ASKS = "notes/clean"

_HEADER = """#!/usr/bin/env bash
# /// rye
# version = "1.0.0"
# tool_type = "shell"
# executor_id = "rye/core/runtimes/bash_runtime"
# category = "notes"
# description = "{description}"
# permissions = {{ write = ["{{project_path}}/notes"], run = ["system"] }}
# ///
"""
_WEEKLY = 'cd "$RYE_PROJECT_PATH" && wc -l notes/notes.md\n'
_SLOW = """for one in 1 2 3; do
  printf '{"progress": %s, "total": 8, "message": "note %s of 8"}\\n' $one $one >&"$RYE_CHANNEL"
  echo "exported notes/$one.html"
done
exec sleep 600
"""
_ASKS = """echo '{"ask": {"message": "Remove 3 notes that are older than a year?", "schema":
 {"type": "boolean"}}}' | tr -d '\\n' >&"$RYE_CHANNEL"
echo >&"$RYE_CHANNEL"
read -r reply <&"$RYE_CHANNEL"
echo "$reply"
"""
_AGENT = {"by": "mcp", "client": "notes agent 1.4"}
_MINUTES = 60 * 1000


def story(root: Path) -> Project:
    """Make the project below ``root``."""
    project = Project(root, shipped_system=True)
    ignored = shutil.ignore_patterns("lockfiles")
    shutil.copytree(EXAMPLES / ".ai", project.path / ".ai", ignore=ignored, dirs_exist_ok=True)
    with (project.user / ".ai" / "config.yaml").open("a") as config:
        config.write('history: {keep: {parameters: ["notes/*"], output: ["notes/*"]}}\n')
    key = next((EXAMPLES / ".ai" / "trusted_keys").iterdir()).stem
    _rye(project, "trust", "add", key)
    texts = {
        "notes/weekly": ("Count the notes of the week", _WEEKLY),
        SLOW: ("Write each note to a page of its own", _SLOW),
        ASKS: ("Remove old notes, after a question", _ASKS),
    }
    for item_id, (description, body) in texts.items():
        project.tool(f"{item_id}.sh", _HEADER.format(description=description) + body)
    _import_runs(project, root / "runs.jsonl")
    calls = root / "calls.jsonl"
    calls.write_text("".join(f'{{"text": "note {number}"}}\n' for number in range(40)))
    _rye(project, "batch", "notes/find", str(calls))
    for text, tag in (("buy rye flour", "shop"), ("ask Ada about the engine", "work")):
        _rye(project, "run", "notes/add", f"text={text}", f"tags={tag}")
    _rye(project, "run", "notes/add", "text=a capital", "tags=Shop", code=2)
    _rye(project, "run", "notes/weekly")
    _rye(project, "run", "notes/find", "text=rye")
    weekly = project.path / ".ai" / "tools" / "notes" / "weekly.sh"
    weekly.write_text(_HEADER.format(description=texts["notes/weekly"][0]) + "ls notes\n" + _WEEKLY)
    project.sign(weekly)
    return project


def _import_runs(project: Project, file: Path) -> None:
    """Add what an agent did in the last days."""
    now = time.time_ns() // 1_000_000
    lines = []
    for number in range(60):
        began = now - (60 - number) * 67 * _MINUTES
        item = ("notes/add", "notes/find", "notes/tags")[number * 7 % 3]
        outcome = "failed" if number in (21, 48) else "refused" if number == 30 else "ok"
        record = {
            "id": new_run_id(began),
            "time": utc_text(began),
            **(_AGENT if number % 4 else {"by": "cli"}),
            "project": str(project.path.resolve()),
            "item": item,
            "version": "1.0.0",
            "outcome": outcome,
            "ms": {"total": 40 + number * 37 % 90 + (400 if number % 19 == 0 else 0)},
            "parameters": {"sha256": "34" * 32},
        }
        lines.append(json.dumps(record))
    file.write_text("\n".join(lines) + "\n")
    _rye(project, "history", "import", str(file))


def _rye(project: Project, *arguments: str, code: int = 0) -> None:
    done = rye(*arguments, cwd=project.path, user=project.user)
    assert done.code == code, done.stderr
