"""Every command in the guide, its pages and the example prints what the page shows."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from confined_machine import needs
from console_pages import File, fresh_environment, play, steps
from lilux.primitives.subprocess import BlockingSubprocess

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
EXAMPLE = ROOT / "examples"
SCRIPTS = Path(sys.executable).parent

PAGES = [
    DOCS / "closures.md",
    DOCS / "batch.md",
    DOCS / "history.md",
    DOCS / "lockfiles.md",
    DOCS / "mcp.md",
    DOCS / "mistakes.md",
    DOCS / "runtimes.md",
    DOCS / "team.md",
    DOCS / "timeouts.md",
    DOCS / "trust.md",
    DOCS / "tools" / "add.md",
    DOCS / "tools" / "channel.md",
    DOCS / "tools" / "files-and-git.md",
    DOCS / "tools" / "http.md",
    DOCS / "tools" / "python.md",
    DOCS / "tools" / "shell.md",
]
CONFINED_PAGES = [DOCS / "guide.md", DOCS / "permissions.md"]
FULLY_CONFINED = needs(
    "fs", "net", "unix", "signals", "syscalls", "privileges", "attributes", "read_only"
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_of_a_page_prints_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    assert play(page, work, fresh_environment(tmp_path / "home", SCRIPTS)) > 3


def test_every_command_of_the_page_about_learning_prints_what_it_shows(tmp_path: Path) -> None:
    with BlockingSubprocess() as client:
        observation = client.execute({"command": "true", "observe": True}).observation
        missing = client.probe_confinement().missing
    if missing or observation is None or observation.missing:
        pytest.skip(f"not tried: {observation and observation.missing}, {missing}")
    work = tmp_path / "work"
    work.mkdir()
    page = DOCS / "permissions-learn.md"
    assert play(page, work, fresh_environment(tmp_path / "home", SCRIPTS)) > 3


@FULLY_CONFINED
@pytest.mark.parametrize("page", CONFINED_PAGES, ids=lambda page: page.stem)
def test_every_command_of_a_page_with_permissions_prints_what_it_shows(
    page: Path, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    assert play(page, work, fresh_environment(tmp_path / "home", SCRIPTS)) > 3


@pytest.mark.torture  # it downloads a public server
@pytest.mark.skipif(shutil.which("uvx") is None, reason="uvx is not installed")
def test_every_command_of_the_page_about_importing_prints_what_it_shows(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    registry = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(("UV_", "SSL_")) or name.lower().endswith("_proxy")
    }
    environ = {**registry, **fresh_environment(tmp_path / "home", SCRIPTS)}
    assert play(DOCS / "importing.md", work, environ) > 3


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_every_command_of_the_javascript_page_prints_what_it_shows(tmp_path: Path) -> None:
    page = DOCS / "tools" / "javascript.md"
    work = tmp_path / "work"
    work.mkdir()
    assert play(page, work, fresh_environment(tmp_path / "home", SCRIPTS)) > 3


@FULLY_CONFINED
def test_the_example_runs_as_its_readme_says(tmp_path: Path) -> None:
    project = tmp_path / "examples"
    shutil.copytree(EXAMPLE, project, ignore=shutil.ignore_patterns("lockfiles", "notes.md"))
    assert play(EXAMPLE / "README.md", project, fresh_environment(tmp_path / "home", SCRIPTS)) > 3


def test_the_example_has_the_files_of_the_pages() -> None:
    shown = {
        step.path: step.text
        for page in (DOCS / "guide.md", DOCS / "runtimes.md")
        for step in steps(page.read_text())
        if isinstance(step, File)
    }
    for name in (".ai/tools/notes/add.py", ".ai/tools/runtimes/awk_runtime.yaml"):
        signature, _, text = (EXAMPLE / name).read_text().partition("\n")
        assert "rye:signed:" in signature
        assert shown[name] == text


def test_the_guide_links_to_every_page() -> None:
    guide = (DOCS / "guide.md").read_text()
    more = [DOCS / "permissions.md", DOCS / "tools" / "javascript.md"]
    pages = [*PAGES, *more]
    for page in pages:
        assert f"]({page.relative_to(DOCS).as_posix()})" in guide
