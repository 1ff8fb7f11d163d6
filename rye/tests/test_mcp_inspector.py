"""The MCP Inspector, an independent client, lists and calls tools.

It is installed once into pytest's cache directory. The test is skipped if npm cannot install it.
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
        pytest.skip("npm is not installed")
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
            pytest.skip(f"npm cannot install {PACKAGE}: {type(error).__name__}")
    return program


def inspect(inspector: Path, project: Project, *arguments: str) -> dict[str, Any]:
    # Options after the command are for the Inspector.
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
    # The Inspector lists the tools first, to learn their parameters.
    called = inspect(inspector, project, "--method", "tools/call", "--tool-name", "say.hello")
    assert called["content"] == [{"type": "text", "text": "hello\n"}]
    assert "structuredContent" not in called
