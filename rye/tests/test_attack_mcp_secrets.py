"""Send marked secrets through the MCP server and search all of its messages for them.

A tool may print its secrets. The messages that the server itself writes must not contain them.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from mcp_session import Wired, wired
from rye.mcp.settings import ServerSettings
from rye_project import HTTP_CLIENT, SUBPROCESS, Project
from secret_hunt import SECRETS, Hunt, marked_project

PARAMETER = SECRETS["the parameter"]
SECONDS = 30
REPORTING = """__version__ = "1.0.0"
__executor_id__ = "rye/core/runtimes/python_runtime"
ENV_CONFIG = {"env": {"DECLARED": "${TOKEN}/declared"}}
PERMISSIONS = {"env": ["FROM_DOTENV", "TOKEN"], "read": ["{project_path}"]}


def main(password, go):
    import os, sys, time
    print("started", file=sys.stderr, flush=True)
    while not os.path.exists(go):
        time.sleep(0.005)
    names = ("TOKEN", "FROM_DOTENV", "DECLARED")
    return [bool(password), *(os.environ[name] != "" for name in names)]
"""
PASSWORD = {"type": "object", "properties": {"password": {"type": "integer"}}}
PATTERN = {"type": "object", "properties": {"password": {"pattern": "^x$"}}}
FAILING: dict[str, dict[str, Any]] = {
    "exit_code": {"config": {"command": "false"}},
    "signal": {"config": {"command": "sh", "args": ["-c", "kill -9 $$"]}},
    "timeout": {"config": {"command": "sleep", "args": ["60"], "timeout": 0.05}},
    "program": {"config": {"command": "/nonexistent/${TOKEN}"}},
    "folder": {"config": {"command": "true", "cwd": "/nonexistent/${FROM_DOTENV}"}},
    "type": {"config": {"command": "true"}, "config_schema": PASSWORD},
    "pattern": {"config": {"command": "true"}, "config_schema": PATTERN},
    "setting": {"config": {"command": "true", "timeout": "${TOKEN}"}},
    "script": {"config": {"command": "sh", "args": ["-c", "eval {password} ${TOKEN}"]}},
    "connection": {
        "executor_id": HTTP_CLIENT,
        "config": {
            "url": "http://127.0.0.1:9/?key=${TOKEN}",
            "auth": {"type": "bearer", "token": "{password}"},
        },
    },
}
INVALID_CALLS: list[tuple[str, dict[str, Any]]] = [
    ("execute", {"item_id": "exit_code", "parameters": PARAMETER}),
    ("execute", {"item_id": "exit_code", "timeout": PARAMETER}),
    ("execute", {"item_id": ["exit_code", PARAMETER]}),
    ("search", {"query": {"text": PARAMETER}}),
    ("show", {"item_id": "missing", "dry_run": PARAMETER}),
    ("missing", {"password": PARAMETER}),
]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = marked_project(tmp_path)
    project.tool("reporting.py", REPORTING)
    for item_id, fields in FAILING.items():
        project.yaml(item_id, **{"executor_id": SUBPROCESS, **fields})
    return project


@pytest.fixture
def hunt() -> Hunt:
    return Hunt(SECRETS)


async def call(client: Wired, number: int, name: str, arguments: Any) -> dict[str, Any]:
    meta = {"progressToken": number}
    return await client.ask(number, "tools/call", name=name, arguments=arguments, _meta=meta)


def test_no_message_of_the_mcp_server_contains_a_secret(
    project: Project,
    hunt: Hunt,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    async def run() -> list[dict[str, Any]]:
        async with wired(project, ServerSettings(all_tools=True)) as client:
            async with asyncio.timeout(SECONDS):
                await client.initialize()
                answers = [await succeed(client), await cancel(client)]
                for number, item_id in enumerate(FAILING, start=10):
                    arguments = {"item_id": item_id, "parameters": {"password": PARAMETER}}
                    answers.append(await call(client, number, "execute", arguments))
                for number, (name, arguments) in enumerate(INVALID_CALLS, start=50):
                    answers.append(await call(client, number, name, arguments))
            hunt.look("a message", *client.received)
        return answers

    async def start(client: Wired, number: int, go: Path) -> None:
        parameters = {"password": PARAMETER, "go": str(go)}
        params = {"name": "reporting", "arguments": parameters, "_meta": {"progressToken": number}}
        await client.send(id=number, method="tools/call", params=params)
        message = await client.notification("notifications/message")
        assert message["params"] == {"level": "info", "logger": "reporting", "data": "started"}
        progress = await client.notification("notifications/progress")
        assert progress["params"]["progressToken"] == number

    async def succeed(client: Wired) -> dict[str, Any]:
        await start(client, 1, tmp_path / "go")
        (tmp_path / "go").touch()
        return await client.answer_to(1)

    async def cancel(client: Wired) -> dict[str, Any]:
        await start(client, 2, tmp_path / "never")
        params = {"requestId": 2, "reason": PARAMETER}
        await client.send(method="notifications/cancelled", params=params)
        return await client.ask(3, "ping")

    succeeded, cancelled, *failed = asyncio.run(run())
    assert json.loads(succeeded["result"]["content"][0]["text"]) == [True] * 4
    assert cancelled["result"] == {}
    assert [one for one in failed if "error" not in one and not one["result"]["isError"]] == []
    hunt.look("the log", caplog.text)
    hunt.look("stdout and stderr", *capfd.readouterr())
    assert hunt.files(tmp_path, but=[project.path / ".env"]) > len(FAILING)
    assert hunt.found == []


def test_a_dry_run_over_mcp_hides_values_of_the_environment(project: Project) -> None:
    hunt = Hunt({name: mark for name, mark in SECRETS.items() if name != "the parameter"})

    async def run() -> list[dict[str, Any]]:
        async with wired(project) as client, asyncio.timeout(SECONDS):
            await client.initialize()
            answers = []
            for number, item_id in enumerate(("reporting", *FAILING), start=1):
                parameters = {"password": PARAMETER, "go": "x"}
                arguments = {"item_id": item_id, "parameters": parameters, "dry_run": True}
                answers.append(await call(client, number, "execute", arguments))
            hunt.look("a message", *client.received)
            return answers

    answers = asyncio.run(run())
    planned = [one for one in answers if not one["result"]["isError"]]
    assert len(planned) >= 5
    assert "http://127.0.0.1:9/?key=${TOKEN}" in json.dumps(planned)
    assert hunt.found == []
