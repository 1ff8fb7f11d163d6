"""Send marked secrets through calls that succeed and fail, and search for them everywhere.

A tool may print its secrets. What Rye itself writes, starts or prints must not contain them.
"""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import psutil
import pytest
from loopback_http import LoopbackServer, respond
from processes import helper_processes, pid_in, wait_until
from rye.executor.run.result import ExecutionResult
from rye_project import HTTP_CLIENT, SUBPROCESS, Project
from secret_hunt import SECRETS, Hunt, marked_project

PARAMETER = SECRETS["the parameter"]
PYTHON = """__version__ = "1.0.0"
__executor_id__ = "rye/core/runtimes/python_runtime"
ENV_CONFIG = {"env": {"DECLARED": "${TOKEN}/declared"}}
PERMISSIONS = {"env": ["FROM_DOTENV", "TOKEN"], "write": ["{project_path}"]}


def main(password, folder):
    import os, time
    with open(f"{folder}/pid", "w") as file:
        print(os.getpid(), file=file)
    while not os.path.exists(f"{folder}/go"):
        time.sleep(0.005)
    return [os.environ["TOKEN"] != "", os.environ["FROM_DOTENV"] != "", password != ""]
"""
OTHER = ["-c", "echo $$ > pid_of_other; while [ ! -e go ]; do sleep 0.01; done"]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = marked_project(tmp_path)
    project.tool("secretive.py", PYTHON)
    project.yaml("other", executor_id=SUBPROCESS, config={"command": "sh", "args": OTHER})
    return project


@pytest.fixture
def hunt(caplog: pytest.LogCaptureFixture) -> Hunt:
    caplog.set_level(logging.DEBUG)
    return Hunt(SECRETS)


def test_secrets_are_not_in_command_lines_or_unrelated_processes(
    project: Project, hunt: Hunt, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    async def run() -> list[ExecutionResult]:
        async with project.executor() as executor:
            secretive = {"password": PARAMETER, "folder": str(project.path)}
            calls = [
                asyncio.create_task(executor.execute("secretive", secretive)),
                asyncio.create_task(executor.execute("other", {"password": PARAMETER})),
            ]
            await asyncio.to_thread(search_processes)
            (project.path / "go").touch()
            return await asyncio.gather(*calls)

    def search_processes() -> None:
        job, other = (pid_in(project.path / name) for name in ("pid", "pid_of_other"))
        own = Path(f"/proc/{job.pid}/environ").read_text()
        assert SECRETS["the declared variable"] in own
        assert hunt.command_lines() > 3
        keeper = next(parent for parent in reversed(job.parents()) if parent.name() == "lilux-proc")
        helpers = helper_processes(keeper.pid)
        assert len(helpers) == 3
        hunt.environments(helpers)
        # Every tool has the user's variables, but not the parameters of another tool, nor variables
        # that only another tool declares or asks for.
        hunt.environments([other], but=("the variable",))

    results = asyncio.run(run())
    assert [result.success for result in results] == [True, True]
    assert results[0].data == [True, True, True]
    hunt.look("the results", *results)
    hunt.look("the log", caplog.text)
    assert hunt.files(tmp_path, but=[project.path / ".env"]) > 3
    assert project.lockfile("secretive").exists()
    assert hunt.found == []


FAILING: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "an exit code": ({"config": {"command": "false"}}, {}),
    "a signal": ({"config": {"command": "sh", "args": ["-c", "kill -9 $$"]}}, {}),
    "a timeout": ({"config": {"command": "sleep", "args": ["60"], "timeout": 0.05}}, {}),
    "a missing program": ({"config": {"command": "/nonexistent/${TOKEN}"}}, {}),
    "a missing folder": ({"config": {"command": "true", "cwd": "/nonexistent/${TOKEN}"}}, {}),
    "a program that is a parameter": ({"config": {"command": "true"}}, {}),
    "a wrong type": (
        {"config_schema": {"type": "object", "properties": {"password": {"type": "integer"}}}},
        {},
    ),
    "a pattern": (
        {"config_schema": {"properties": {"password": {"type": "string", "pattern": "^x$"}}}},
        {},
    ),
    "an enumeration": ({"config_schema": {"properties": {"password": {"enum": ["a"]}}}}, {}),
    "a NUL": ({"config": {"command": "echo", "args": ["{password}", "{nul}"]}}, {"nul": "\0"}),
    "a surrogate": (
        {"config": {"command": "echo", "args": ["{password}", "{nul}"]}},
        {"nul": "\ud800"},
    ),
    "a value that is not a name": (
        {"config": {"command": "echo", "args": ["out/{password}/{nul}"]}},
        {"nul": "a b"},
    ),
    "a place for no value": (
        {"config": {"command": "sh", "args": ["-c", "eval {password} ${TOKEN}"]}},
        {},
    ),
    "a timeout that is a secret": ({"config": {"command": "true", "timeout": "${TOKEN}"}}, {}),
    "too long": ({"config": {"command": "true", "args": ["{password}", "-" * 200_000]}}, {}),
    "a header": (
        {
            "executor_id": HTTP_CLIENT,
            "config": {
                "url": "http://127.0.0.1:9/",
                "headers": {"X-A": "{password}{line}", "X-B": "${TOKEN}\n"},
            },
        },
        {"line": "\r\nX-C: d"},
    ),
    "a refused connection": (
        {
            "executor_id": HTTP_CLIENT,
            "config": {
                "url": "http://127.0.0.1:9/?key=${TOKEN}",
                "auth": {"type": "bearer", "token": "{password}"},
            },
        },
        {},
    ),
}


@pytest.mark.parametrize("kind", FAILING)
def test_a_failed_call_does_not_reveal_secrets(
    project: Project, hunt: Hunt, caplog: pytest.LogCaptureFixture, tmp_path: Path, kind: str
) -> None:
    fields, more = FAILING[kind]
    project.yaml("t", **{"executor_id": SUBPROCESS, "config": {"command": "true"}, **fields})
    parameters = {"password": PARAMETER, **more}
    for dry_run in (True, False):
        result = project.run("t", parameters, dry_run=dry_run)
        hunted = Hunt({name: mark for name, mark in SECRETS.items() if name != "the parameter"})
        if dry_run and result.success:
            # A plan shows the parameters of the caller, but no values of the environment.
            hunted.look("the plan", json.dumps(result.data))
            hunt.found += hunted.found
        else:
            hunt.look("the result", result, result.error, json.dumps(result.metadata))
    hunt.look("the log", caplog.text)
    hunt.files(tmp_path, but=[project.path / ".env"])
    assert hunt.found == []


def test_a_credential_is_in_the_request_and_nowhere_else(
    project: Project, hunt: Hunt, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    with LoopbackServer() as server:
        server.on("/", respond(json={"ok": True}))
        config = {
            "url": f"{server.url}/?key=${{TOKEN}}",
            "headers": {"X-Key": "${TOKEN}"},
            "auth": {"type": "bearer", "token": "${TOKEN}"},
        }
        project.yaml("t", executor_id=HTTP_CLIENT, config=config)
        results = [project.run("t", dry_run=True), project.run("t")]
        assert server.requests[-1].headers["authorization"] == f"Bearer {SECRETS['the variable']}"
    assert all(result.success for result in results)
    hunt.look("the results", *results)
    hunt.look("the log", caplog.text)
    hunt.files(tmp_path, but=[project.path / ".env"])
    assert hunt.found == []


def test_the_hunt_finds_planted_secrets(tmp_path: Path) -> None:
    hunt = Hunt({"a secret": "mark-of-this-test"})
    (tmp_path / "file").write_text("a mark-of-this-test b")
    assert hunt.files(tmp_path) == 1
    hunt.look("a text", b"mark-of-this-test")
    with psutil.Popen(["sh", "-c", "read x; : mark-of-this-test"], stdin=-1) as process:
        wait_until(
            lambda: b"read" in Path(f"/proc/{process.pid}/cmdline").read_bytes(), "the shell runs"
        )
        hunt.command_lines()
        process.kill()
    assert hunt.found == [
        f"a secret in {tmp_path / 'file'}",
        "a secret in a text",
        f"a secret in the command line of {process.pid}",
    ]
