"""The MCP Inspector, which is nobody's SDK that we use, lists and calls.

It is installed once into pytest's cache folder; without npm, or where npm cannot get it, this is
skipped.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from mcp_session import command, environment
from rye_project import Project

PACKAGE = "@modelcontextprotocol/inspector"
INSTALL_SECONDS = 180
CALL_SECONDS = 60


@pytest.fixture(scope="module")
def inspector(request: pytest.FixtureRequest) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not on this machine")
    assert request.config.cache is not None
    folder = request.config.cache.mkdir("mcp-inspector")
    program = folder / "node_modules" / ".bin" / "mcp-inspector"
    if not program.exists():
        options = ["--prefix", str(folder), "--ignore-scripts", "--no-audit", "--no-fund"]
        try:
            subprocess.run(
                [npm, "install", *options, "--prefer-offline", PACKAGE],
                check=True,
                capture_output=True,
                timeout=INSTALL_SECONDS,
            )
        except (subprocess.SubprocessError, OSError) as error:
            pytest.skip(f"npm cannot get {PACKAGE}: {type(error).__name__}")
    return program


def inspect(inspector: Path, project: Project, *arguments: str) -> dict[str, Any]:
    # What follows the method is the Inspector's own.
    called = [str(inspector), "--cli", *command(project), *arguments]
    done = subprocess.run(
        called,
        env=environment(project),
        capture_output=True,
        text=True,
        timeout=CALL_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_the_inspector_lists_and_calls(inspector: Path, tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.command("say/hello", "/bin/echo", "hello", description="Says hello.")
    (project.path / ".ai" / "config.yaml").write_text("mcp: {featured: [say/*]}\n")
    # It lists the tools by itself, to find out what the parameters are.
    called = inspect(inspector, project, "--method", "tools/call", "--tool-name", "say.hello")
    assert called["content"] == [{"type": "text", "text": "hello\n"}]
    assert called["structuredContent"]["stdout"] == "hello\n"
