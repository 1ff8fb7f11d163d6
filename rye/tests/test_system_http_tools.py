"""YAML tools that use the http_client primitive directly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from loopback_http import LoopbackServer, respond
from rye_project import Project


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer() as server:
        yield server


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, shipped_system=True, environ={"DEMO_KEY": "swordfish"})


def test_a_tool_is_one_yaml_file(project: Project, server: LoopbackServer) -> None:
    server.on("/items/a%2Fb", respond(200, json={"ok": True}))
    project.tool(
        "item.yaml",
        f"""\
version: "1.0.0"
tool_type: http
executor_id: rye/core/primitives/http_client
description: Gets an item
config:
  method: POST
  url: "{server.url}/items/{{id}}"
  auth: {{type: bearer, token: "${{DEMO_KEY}}"}}
  body: {{note: "{{note}}", count: "{{count}}"}}
  timeout: 10
config_schema:
  type: object
  properties:
    id: {{type: string}}
    note: {{type: string}}
    count: {{type: integer, default: 3}}
  required: [id, note]
""",
    )

    result = project.run("item", {"id": "a/b", "note": "${DEMO_KEY} {id}"})

    assert (result.error, result.data) == (None, {"ok": True})
    assert [element["item_id"] for element in result.chain] == [
        "item",
        "rye/core/primitives/http_client",
    ]
    seen = server.requests[0]
    assert seen.target == "/items/a%2Fb"
    assert seen.headers["authorization"] == "Bearer swordfish"
    assert seen.body == b'{"note":"${DEMO_KEY} {id}","count":3}'


def test_the_primitive_called_directly_takes_its_config_as_parameters(
    project: Project, server: LoopbackServer
) -> None:
    url = server.on("/x", respond(200, json=[1]))

    result = project.run("http_client", {"url": url, "headers": {"X-A": "${DEMO_KEY}"}})

    assert (result.error, result.data) == (None, [1])
    assert server.requests[0].headers["x-a"] == "${DEMO_KEY}"


def test_an_error_status_is_a_failure(project: Project, server: LoopbackServer) -> None:
    url = server.on("/x", respond(503, json={"why": "busy"}))

    result = project.run("http_client", {"url": url})

    assert result.error == (
        "'rye/core/primitives/http_client': HTTP 503: Service Unavailable; try again later"
    )
    assert result.data == {"why": "busy"}
