"""Real git repositories for tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from rye_project import Project

IDENTITY = {
    "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.org",
}  # fmt: skip


def real_git(folder: Path, *args: str) -> str:
    """Run git as the user, or as whoever prepared the repository."""
    env = {**os.environ, **IDENTITY}
    argv = ["git", "-C", str(folder), *args]
    return subprocess.run(argv, env=env, check=True, capture_output=True, text=True).stdout


def create(path: Path) -> Path:
    """Create a repository with one commit."""
    path.mkdir(parents=True, exist_ok=True)
    real_git(path, "init", "-q", "-b", "main")
    (path / "a.txt").write_text("one\n")
    real_git(path, "add", "a.txt")
    real_git(path, "commit", "-q", "-m", "first")
    return path


def run_git(project: Project, command: str, *args: str, paths: tuple[str, ...] = ()) -> Any:
    """Call rye/git/git and return its result."""
    parameters = {"command": command, "args": list(args), "paths": list(paths)}
    return project.run("rye/git/git", parameters)


def refused_git(project: Project, command: str, *args: str, paths: tuple[str, ...] = ()) -> str:
    """Call rye/git/git, which must refuse, and return its message."""
    result = run_git(project, command, *args, paths=paths)
    assert (result.success, result.metadata["return_code"]) == (False, 1)
    assert "hunter2" not in str(result.data)
    message: str = result.data["stderr"]
    return message
