"""The config of HTTP calls, checked against the requests that a server receives."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lilux.primitives.http_client import HttpClientPrimitive, HttpResult
from loopback_http import LoopbackServer, SeenRequest, respond
from rye.errors import ConfigTemplateError
from rye.executor.config.build import ExecutionConfig, build_execution_config
from rye_elements import HTTP_CLIENT, Workshop

TRICKY = "${SECRET} {env} {literal_0}/../?a=b&c \"q\" 'x'"


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer() as running:
        yield running


def call(built: ExecutionConfig) -> HttpResult:
    async def request() -> HttpResult:
        # The environment of the machine must not be used.
        async with HttpClientPrimitive(environ={"SECRET": "of-the-machine"}) as http:
            return await http.execute(built.config, built.params)

    return asyncio.run(request())


def tool_call(
    workshop: Workshop,
    config: dict[str, Any],
    parameters: dict[str, Any],
    **metadata: Any,
) -> ExecutionConfig:
    tool = workshop.element("api.yaml", config=config, **metadata)
    env = {"SECRET": "hunter2", "UNUSED": "x"}
    chain = [tool, workshop.primitive(HTTP_CLIENT)]
    return build_execution_config(chain, parameters, env, None, workshop.context)


def direct_call(workshop: Workshop, parameters: dict[str, Any]) -> ExecutionConfig:
    chain = [workshop.primitive(HTTP_CLIENT)]
    return build_execution_config(chain, parameters, {"SECRET": "hunter2"}, None, workshop.context)


def seen(server: LoopbackServer, built: ExecutionConfig) -> SeenRequest:
    result = call(built)
    assert result.success, result.error
    return server.requests[-1]


def test_authors_templates_are_rendered_once_and_a_callers_text_is_literal(
    workshop: Workshop, server: LoopbackServer
) -> None:
    server.on("/v1", respond(200))
    config = {
        "method": "POST",
        "url": "{base}/v1?q={q}",
        "base": server.url,
        "headers": {"X-Note": "note: {note}", "X-Gone": "{gone}"},
        "auth": {"type": "bearer", "token": "${SECRET}"},
        "body": {"q": "{q}", "n": "{n}", "text": "<{note}>"},
    }
    given = {"q": TRICKY, "n": 7, "note": "${SECRET} {q}", "gone": None}
    request = seen(server, tool_call(workshop, config, given))
    assert request.target == (
        "/v1?q=%24%7BSECRET%7D%20%7Benv%7D%20%7Bliteral_0%7D%2F..%2F%3Fa%3Db%26c%20%22q%22%20%27x%27"
    )
    assert request.headers["x-note"] == "note: ${SECRET} {q}"
    assert "x-gone" not in request.headers
    assert request.headers["authorization"] == "Bearer hunter2"
    assert json.loads(request.body) == {"q": TRICKY, "n": 7, "text": "<${SECRET} {q}>"}


def test_the_primitive_gets_only_values_that_the_templates_name(workshop: Workshop) -> None:
    given = {"id": 1, "mode": "stream", "__sinks": ["x"], "timeout": 1, "other": "y"}
    built = tool_call(workshop, {"url": "http://h/{id}?t=${SECRET}&s={__sinks}"}, given)
    assert built.params == {"id": 1}
    assert built.config == {
        "url": "http://h/{id}?t=${SECRET}&s={__sinks}",
        "mode": "sync",
        "env": {"SECRET": "hunter2"},
        "env_mode": "exact",
    }


def test_settings_that_are_not_part_of_the_request_are_rendered_by_rye(workshop: Workshop) -> None:
    config = {
        "url": "http://h/",
        "timeout": "{seconds}",
        "retry": {"max_attempts": "{tries}"},
        "mode": "{mode}",
    }
    built = tool_call(workshop, config, {"seconds": 2, "tries": 4, "mode": "stream"})
    assert built.config["timeout"] == 2
    assert built.config["retry"] == {"max_attempts": 4}
    assert built.config["mode"] == "stream"


def test_params_json_as_body_is_the_parameters(workshop: Workshop, server: LoopbackServer) -> None:
    server.on("/", respond(200))
    given = {"a": TRICKY, "b": [1, None]}
    for headers in ({}, {"Content-Type": "application/json"}):
        config = {
            "method": "POST",
            "url": f"{server.url}/",
            "headers": headers,
            "body": "{params_json}",
        }
        request = seen(server, tool_call(workshop, config, given))
        assert request.headers["content-type"] == "application/json"
        assert json.loads(request.body) == given


def test_a_missing_parameter_inside_a_url_is_an_error(workshop: Workshop) -> None:
    schema = {"type": "object", "properties": {"id": {}, "note": {}}}
    config = {"url": "http://h/{id}", "headers": {"X": "{note}"}}
    with pytest.raises(ConfigTemplateError) as caught:
        tool_call(workshop, config, {}, config_schema=schema)
    assert str(caught.value) == (
        f"{workshop.tools('project') / 'api.yaml'}: 'api': config.url: "
        "parameter 'id' is missing, and the text around it needs a value; "
        "pass it, or make it required or give it a default in the schema"
    )
    built = tool_call(workshop, config, {"id": 1}, config_schema=schema)
    assert built.params == {"id": 1, "note": None}


def test_the_parameters_of_a_client_called_directly_are_literal(
    workshop: Workshop, server: LoopbackServer
) -> None:
    server.on("/p/%7Bid%7D", respond(200))
    given = {
        "method": "POST",
        "url": f"{server.url}/p/%7Bid%7D",
        "headers": {"X-Note": "${SECRET} {id}"},
        "auth": {"type": "api_key", "key": "{id} ${SECRET}"},
        "body": {"text": TRICKY, "list": ["{id}"]},
        "env": {"SECRET": "smuggled"},
        "id": "never",
    }
    request = seen(server, direct_call(workshop, given))
    assert request.headers["x-note"] == "${SECRET} {id}"
    assert request.headers["x-api-key"] == "{id} ${SECRET}"
    assert json.loads(request.body) == {"text": TRICKY, "list": ["{id}"]}


@pytest.mark.parametrize(
    ("headers", "kind"),
    [
        ({}, "text/plain; charset=utf-8"),
        ({"content-type": "application/json"}, "application/json"),
    ],
)
def test_a_text_body_of_a_client_called_directly_is_sent_unchanged(
    workshop: Workshop, server: LoopbackServer, headers: dict[str, str], kind: str
) -> None:
    server.on("/", respond(200))
    body = '{"a": "{b} ${SECRET}"}'
    given = {"method": "POST", "url": f"{server.url}/", "headers": headers, "body": body}
    request = seen(server, direct_call(workshop, given))
    assert request.body == body.encode()
    assert request.headers["content-type"] == kind


def test_an_unpaired_surrogate_in_a_body_is_refused(workshop: Workshop) -> None:
    with pytest.raises(ConfigTemplateError) as caught:
        direct_call(workshop, {"method": "POST", "url": "http://h/", "body": "\ud800"})
    assert str(caught.value) == (
        "'rye/core/primitives/http_client': body: contains an unpaired surrogate, which is not "
        "valid text; pass valid Unicode"
    )


def test_the_timeout_of_the_call_takes_precedence(workshop: Workshop) -> None:
    chain = [workshop.primitive(HTTP_CLIENT)]
    given = {"url": "http://h/", "timeout": 9}
    built = build_execution_config(chain, given, {}, None, workshop.context, timeout=2)
    assert built.config["timeout"] == 2
