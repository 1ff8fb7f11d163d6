"""A tool whose runs can be counted, and batches of it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rye_command import COMMAND, default_signals, environment
from rye_project import Project

# Writes its number to a file of its own, so that a second run would be seen.
ONCE = (
    'echo "$$" >> "ran/$1"; [ "$1" != 13 ] || exit 3; [ "$1" != "$2" ] || sleep 600; echo "did $1"'
)
SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "slow": {"type": "integer", "default": 0}},
    "required": ["n"],
    "additionalProperties": False,
}


def once_project(folder: Path) -> Project:
    """A project with the tool ``tools/once``."""
    project = Project(folder, shipped_system=True)
    (project.path / "ran").mkdir()
    tool(project)
    return project


def tool(project: Project, **fields: Any) -> None:
    arguments = ["-c", ONCE, "sh", "{n}", "{slow}"]
    project.command("tools/once", "/bin/sh", *arguments, config_schema=SCHEMA, **fields)


def write_calls(project: Project, calls: Iterable[object]) -> Path:
    path = project.path / "calls.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in calls))
    return path


def results(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def ran(project: Project) -> dict[str, int]:
    """How often each call ran."""
    return {one.name: len(one.read_text().splitlines()) for one in (project.path / "ran").iterdir()}


def start(
    project: Project, folder: Path, *options: str, stderr: Any = subprocess.DEVNULL
) -> subprocess.Popen[bytes]:
    with default_signals():
        return subprocess.Popen(
            [*COMMAND, "batch", "tools/once", "calls.jsonl", "--dir", folder, *options],
            cwd=project.path,
            env=environment(project.user),
            stdout=subprocess.DEVNULL,
            stderr=stderr,
        )


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
