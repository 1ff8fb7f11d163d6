"""Every command and every program in the READMEs works."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from confined_machine import needs
from console_pages import fresh_environment, play

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
SCRIPTS = Path(sys.executable).parent


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def in_this_environment(command: str) -> str:
    """Return the command without the parts that install the environment of this test."""
    return command.replace("pip install uv && ", "").replace("uv run ", f"{SCRIPTS}/")


def test_the_first_command_works(tmp_path: Path) -> None:
    command = in_this_environment(blocks("sh")[0])
    environ = fresh_environment(tmp_path, SCRIPTS)
    done = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, env=environ, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("hello\n", "")


@needs("fs", "read_only")
def test_the_first_minute_shows_real_output(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    assert play(ROOT / "README.md", work, fresh_environment(tmp_path / "home", SCRIPTS)) == 7


@pytest.mark.parametrize(("client", "shown"), [("claude-desktop", 0), ("cursor", 0), ("vscode", 1)])
def test_the_configuration_of_clients_is_what_the_command_prints(client: str, shown: int) -> None:
    printed = json.loads(configuration(client).stdout)
    (server,) = next(iter(printed.values())).values()
    server["command"], server["args"][1] = "/path/to/rye", "/path/to/project"
    assert json.loads(blocks("json")[shown]) == printed


def test_the_command_for_claude_code_is_what_the_command_prints() -> None:
    printed = configuration("claude-code").stderr.splitlines()[-1]
    (claude,) = [block for block in blocks("sh") if block.startswith("claude ")]
    words, shown = shlex.split(printed), shlex.split(claude.replace("$PWD", str(ROOT)))
    assert [*words[:7], "rye", *words[8:]] == shown


def configuration(client: str) -> subprocess.CompletedProcess[str]:
    command = [str(SCRIPTS / "rye"), "mcp", "--print-config", client]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)


def test_the_second_command_is_the_one_that_the_gate_runs() -> None:
    assert blocks("sh")[1] == "uv run pytest\n"
    assert "\nuv run pytest\n" in (ROOT / ".ci" / "run").read_text()


@pytest.mark.parametrize("page", ["README.md", "lilux/kernel/README.md", "rye/README.md"])
def test_the_programs_in_the_readmes_run(page: str, tmp_path: Path) -> None:
    programs = blocks("python", (ROOT / page).read_text())
    assert programs
    for program in programs:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", program],
            cwd=tmp_path,
            env={**os.environ, "USER_SPACE": str(tmp_path / "user")},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout in ("hello\n", "$(whoami) is only text\n")
        assert done.stderr == ""


def test_the_commands_in_the_readme_of_the_helper_run() -> None:
    (command,) = blocks("sh", (ROOT / "lilux/proc/README.md").read_text())
    script = f"PATH={SCRIPTS}:$PATH; {command}"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["stdout"] == "hello\n"


def test_scripts_that_the_pages_name_exist() -> None:
    for page in [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("lilux/*/*.md"),
        *ROOT.glob("rye/*.md"),
        *ROOT.glob("examples/*.md"),
    ]:
        for script in re.findall(r"uv run python (\S+\.py)", page.read_text()):
            assert (ROOT / script).exists()


def test_every_decision_is_listed() -> None:
    folder = ROOT / "docs" / "adr"
    listed = set(re.findall(r"\]\((\d{4}-[^)]+)\)", (folder / "README.md").read_text()))
    assert listed == {path.name for path in folder.glob("0*.md")}


def test_every_package_has_the_same_python_and_bounds_its_dependencies() -> None:
    workspace = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]["workspace"]
    assert workspace["members"] == ["lilux/proc", "lilux/kernel", "rye"]
    for member in workspace["members"]:
        project = tomllib.loads((ROOT / member / "pyproject.toml").read_text())["project"]
        assert project["requires-python"] == ">=3.11"
        for dependency in project.get("dependencies", []):
            assert "<" in dependency, f"{dependency} has no upper bound"


def test_uv_lock_is_not_committed() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    files = [name for name in listed.stdout.split("\0") if name]
    assert "uv.lock" not in files
    if files:
        assert "lilux/proc/Cargo.lock" in files
