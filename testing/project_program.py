"""A program of a project, and a tool that runs it."""

from __future__ import annotations

from pathlib import Path

from rye_console import Console
from rye_project import Project

TOOL = "build/go"


def program(project: Project, word: str, name: str = "bin/gotool", mode: int = 0o755) -> Path:
    """Write a script that prints a word."""
    path = project.path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {word}\n")
    path.chmod(mode)
    return path


def pinned(console: Console, *argv: str, pins: tuple[str, ...] = ("bin/gotool",)) -> None:
    """Add the tool with its pins, and lock it."""
    console.project.command(TOOL, *(argv or ("bin/gotool",)), pins=list(pins))
    done = console("lock", TOOL)
    assert done.code == 0, done.stderr
