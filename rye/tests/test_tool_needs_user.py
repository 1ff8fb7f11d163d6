"""Tools that do not run where nobody can be asked: ``needs_user``."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from mcp.types import ElicitResult
from mcp_session import ERAS, HANDSHAKE, STATELESS, over_http, over_stdio, refused, text_of
from rye.executor.run.blocking import BlockingExecutor
from rye.executor.run.channel import Progress, Question, Reply, answered
from rye.executor.run.result import ExecutionResult
from rye.mcp.settings import ServerSettings
from rye_command import Terminal, rye
from rye_project import Project

REFUSED = (
    "'asks' has to ask the user, and nobody can be asked; "
    "run it on a terminal, or from a client that can ask its user"
)
LINE = json.dumps({"ask": {"message": "Go on?", "schema": {"type": "boolean"}}})
SCRIPT = f"""touch ran; echo '{LINE}' >&"$RYE_CHANNEL"
read -r answer <&"$RYE_CHANNEL"; echo "$answer" """
YAML = f"""version: 1.0.0
executor_id: rye/core/primitives/subprocess
description: Asks
needs_user: true
config: {{command: /bin/sh, args: [-c, {json.dumps(SCRIPT)}]}}
"""
PYTHON = f'''"""Asks."""
import os
import subprocess

__executor_id__ = "rye/core/runtimes/python_runtime"
__version__ = "1.0.0"
__needs_user__ = True


def main() -> None:
    number = int(os.environ["RYE_CHANNEL"])
    subprocess.run(["/bin/sh", "-c", {SCRIPT!r}], pass_fds=[number], check=True)
'''
SHELL = f"""# /// rye
# version = "1.0.0"
# executor_id = "rye/core/runtimes/bash_runtime"
# description = "Asks"
# needs_user = true
# ///
{SCRIPT}
"""
FILES = {"asks.yaml": YAML, "asks.py": PYTHON, "asks.sh": SHELL}


class Listener:
    """Somebody who says yes, if asked at all."""

    def __init__(self, *, can_ask: bool) -> None:
        self.can_ask = can_ask

    def progress(self, progress: Progress) -> None:
        raise AssertionError(progress)

    def ask(self, question: Question) -> Reply:
        return answered(question.message == "Go on?")


@pytest.fixture(params=FILES)
def project(tmp_path: Path, request: pytest.FixtureRequest) -> Project:
    """A project with the tool ``asks``, in each kind of file."""
    return with_tool(tmp_path, request.param)


@pytest.fixture
def yaml_project(tmp_path: Path) -> Project:
    return with_tool(tmp_path, "asks.yaml")


def with_tool(folder: Path, name: str) -> Project:
    project = Project(folder, shipped_system=True)
    file = project.path / ".ai" / "tools" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(FILES[name])
    project.sign(file)
    return project


def in_a_loop(project: Project, listener: Listener | None) -> ExecutionResult:
    async def call() -> ExecutionResult:
        async with project.executor() as executor:
            return await executor.execute("asks", listener=listener)

    return asyncio.run(call())


def blocking(project: Project, listener: Listener | None) -> ExecutionResult:
    with BlockingExecutor(project.context) as executor:
        return executor.execute("asks", listener=listener)


@pytest.mark.parametrize("call", [in_a_loop, blocking])
def test_it_does_not_start_where_nobody_can_be_asked(project: Project, call: Any) -> None:
    for listener in (None, Listener(can_ask=False)):
        result = call(project, listener)
        assert (result.error, result.metadata["error_type"]) == (REFUSED, "NobodyToAskError")
    assert not (project.path / "ran").exists()
    result = call(project, Listener(can_ask=True))
    assert result.success, result.error
    assert (project.path / "ran").exists()


def test_rye_run_refuses_it_without_a_terminal_and_asks_on_one(yaml_project: Project) -> None:
    place: Any = {"cwd": yaml_project.path, "user": yaml_project.user}
    done = rye("run", "asks", **place, input="y\n")
    assert (done.code, done.stdout, done.stderr) == (4, "", f"rye: {REFUSED}\n")
    assert not (yaml_project.path / "ran").exists()
    with Terminal("run", "asks", **place) as terminal:
        terminal.wait_for("answer (y/n): ")
        terminal.type("y\n")
        assert terminal.finish() == 0


def test_people_see_that_it_needs_a_user(project: Project) -> None:
    place: Any = {"cwd": project.path, "user": project.user}
    shown = rye("show", "asks", **place).stdout
    assert "a user who answers its questions" in shown
    assert json.loads(rye("show", "asks", "--json", **place).stdout)["needs_user"] is True
    helped = rye("run", "asks", "--help", **place).stdout
    assert "It asks questions, and runs only on a terminal." in helped


async def both_transports(project: Project, era: str, log: Path) -> list[Any]:
    settings = ServerSettings(log=str(log))
    arguments: Any = ("execute", {"item_id": "asks"})
    answers = []
    async with (
        over_http(project, settings) as server,
        server.client(era) as http,
        over_stdio(project, era) as stdio,
    ):
        for client in (http, stdio):
            call = client.call_tool(*arguments)
            answers.append(await call if era == HANDSHAKE else await refused(call))
    return answers


def test_a_client_of_2026_that_cannot_ask_gets_the_error_of_the_protocol(
    yaml_project: Project, tmp_path: Path
) -> None:
    for error in asyncio.run(both_transports(yaml_project, STATELESS, tmp_path / "log")):
        assert (error.code, error.message) == (-32021, REFUSED)
        assert error.data == {"requiredCapabilities": {"elicitation": {}}}
    assert not (yaml_project.path / "ran").exists()
    line = json.loads((tmp_path / "log").read_text())
    assert (line["item"], line["outcome"]) == ("asks", "refused")
    assert line["run_id"]


def test_an_older_client_that_cannot_ask_gets_a_failure(
    yaml_project: Project, tmp_path: Path
) -> None:
    for result in asyncio.run(both_transports(yaml_project, HANDSHAKE, tmp_path / "log")):
        assert result.is_error
        assert text_of(result) == REFUSED
        assert result.structured_content["error"]["type"] == "NobodyToAskError"
    assert not (yaml_project.path / "ran").exists()


@pytest.mark.parametrize("era", ERAS)
def test_a_client_that_can_ask_runs_it(yaml_project: Project, era: str) -> None:
    async def user(_context: object, _params: object) -> ElicitResult:
        return ElicitResult(action="accept", content={"answer": True})

    async def run() -> str:
        async with over_stdio(yaml_project, era, elicitation_callback=user) as client:
            return text_of(await client.call_tool("execute", {"item_id": "asks"}))

    assert json.loads(asyncio.run(run())) == {"answer": True}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (
            {"stdin": True},
            "needs_user: a tool that reads stdin cannot ask; remove one of the two and sign again",
        ),
        ({"tool_type": "runtime"}, "needs_user is for tools; remove it and sign again"),
        (
            {
                "executor_id": "rye/core/primitives/http_client",
                "config": {"method": "GET", "url": "http://127.0.0.1:1/"},
            },
            "needs_user: an HTTP request cannot ask; remove it and sign again",
        ),
        ({"needs_user": "yes"}, "expected true or false, got text in 'needs_user'"),
    ],
)
def test_rye_check_finds_a_tool_that_could_never_ask(
    tmp_path: Path, fields: dict[str, Any], problem: str
) -> None:
    project = Project(tmp_path, shipped_system=True)
    file = project.path / ".ai" / "tools" / "asks.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    own = {
        "executor_id": "rye/core/primitives/subprocess",
        "config": {"command": "/bin/true"},
        "needs_user": True,
    }
    file.write_text(json.dumps({**own, **fields}))
    done = rye("check", "asks", cwd=project.path, user=project.user)
    assert done.code == 1
    assert problem in " ".join((done.stdout + done.stderr).split())
