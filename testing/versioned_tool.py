"""A tool with a lockfile, and other versions of it."""

from __future__ import annotations

from pathlib import Path

from rye_console import Console
from rye_project import Project

TOOL = "tools/hello"


def with_a_pinned_tool(folder: Path) -> Console:
    """A project whose tool was pinned as 1.1.0 by its first run."""
    console = Console(folder)
    add(console.project, "1.1.0")
    first = console.project.run(TOOL)
    assert first.success, first.error
    return console


def add(project: Project, version: str, item_id: str = TOOL) -> Path:
    """Put a signed version in the place of the tool; it prints its version."""
    return project.command(item_id, "/bin/echo", version, version=version)


def lockfiles(project: Project) -> list[str]:
    """The names of the tool's lockfiles."""
    return sorted(path.name for path in project.lockfile(TOOL).parent.iterdir())


def leave_behind(console: Console) -> tuple[Path, Path]:
    """Pin both versions; the older one is installed."""
    project = console.project
    new = project.lockfile(TOOL, "1.1.0")
    content = new.read_bytes()
    add(project, "1.0.0")
    assert console("lock", "--update", TOOL).code == 0
    new.write_bytes(content)
    return project.lockfile(TOOL, "1.0.0"), new
