"""Invalid configuration and parameters: a failed result that names the field."""

from typing import Any

import pytest
from http_calls import call

SECRET = "sk-marked-0123456789"
URL = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("config", "error"),
    [
        ([], "config: expected a dict, got list"),
        ({}, "url: required; pass the address to request"),
        ({"url": 5}, "url: expected a string, got int"),
        (
            {"url": "/relative"},
            (
                "url: must begin with http:// or https:// and a host; "
                "a {param} for that part has to be the whole url"
            ),
        ),
        (
            {"url": "ftp://host/"},
            (
                "url: must begin with http:// or https:// and a host; "
                "a {param} for that part has to be the whole url"
            ),
        ),
        (
            {"url": f"http://u:{SECRET}@[::/"},
            "url: is not a valid address; check host, port and characters",
        ),
        ({"url": "{url}"}, "url: parameter 'url' must be a string; pass an address"),
        (
            {"url": URL, "method": "FETCH"},
            "method: expected one of GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS",
        ),
        ({"url": URL, "method": 5}, "method: expected a string, got int"),
        ({"url": URL, "timeout": 0}, "timeout: expected a number of seconds greater than 0"),
        ({"url": URL, "timeout": True}, "timeout: expected a number of seconds greater than 0"),
        ({"url": URL, "timeout": "5"}, "timeout: expected a number of seconds greater than 0"),
        (
            {"url": URL, "timeout": float("nan")},
            "timeout: expected a number of seconds greater than 0",
        ),
        ({"url": URL, "timeout": 10**400}, "timeout: too many seconds; lower it"),
        ({"url": URL, "stream_timeout": 10**400}, "stream_timeout: too many seconds; lower it"),
        (
            {"url": URL, "retry": {"max_total": 10**400}},
            "retry.max_total: too many seconds; lower it",
        ),
        (
            {"url": "http://127.0.0.1:99999/"},
            "url: the port is not between 1 and 65535; correct it",
        ),
        ({"url": "http://127.0.0.1:0/"}, "url: the port is not between 1 and 65535; correct it"),
        ({"url": URL, "mode": "socket"}, "mode: expected 'sync' or 'stream'; choose one of them"),
        ({"url": URL, "headers": ["a"]}, "headers: expected a dict, got list"),
        ({"url": URL, "headers": {5: "a"}}, "headers: every name must be a string; quote it"),
        (
            {"url": URL, "headers": {"a b": "c"}},
            "headers.a b: not a valid header name; use letters, digits and -",
        ),
        (
            {"url": URL, "headers": {"Content-Length": "2"}},
            "headers.Content-Length: is set automatically; remove it",
        ),
        (
            {"url": URL, "headers": {"a": "\ud800"}},
            "headers.a: contains text that is not valid Unicode; correct it",
        ),
        (
            {"url": URL, "auth": {"type": "basic"}},
            "auth.type: expected 'bearer' or 'api_key'; choose one of them",
        ),
        (
            {"url": URL, "auth": {"type": "bearer", "key": "x"}},
            (
                "auth.token: expected a string for type 'bearer'; "
                'write, for example, token: "${API_KEY}"'
            ),
        ),
        (
            {"url": URL, "auth": {"type": "api_key", "key": SECRET + "\n"}},
            "auth.key: contains a line break or control character; remove it",
        ),
        ({"url": URL, "retry": 3}, "retry: expected a dict, got int"),
        (
            {"url": URL, "retry": {"max_attempts": 0}},
            "retry.max_attempts: expected an integer of at least 1",
        ),
        ({"url": URL, "retry": {"max_attempts": 101}}, "retry.max_attempts: at most 100; lower it"),
        (
            {"url": URL, "retry": {"backoff": "random"}},
            "retry.backoff: expected 'exponential' or 'linear'; choose one of them",
        ),
        (
            {"url": URL, "retry": {"on_status": [429, 200]}},
            (
                "retry.on_status[1]: expected a status from 400 to 599; "
                "list the error statuses to retry"
            ),
        ),
        (
            {"url": URL, "follow_redirects": "yes"},
            "follow_redirects: expected true or false, got str",
        ),
        ({"url": URL, "max_body_bytes": -1}, "max_body_bytes: expected an integer of at least 1"),
        ({"url": URL, "env": {"A": 1}}, "env.A: expected a string; quote it"),
        (
            {"url": URL, "body": {"a": 1}},
            "body: not allowed with GET; use POST, PUT, PATCH or DELETE, or remove it",
        ),
        (
            {"url": URL, "method": "POST", "body": {"a": float("nan")}},
            (
                "body: contains a value that JSON cannot express (such as NaN, bytes, a set or a "
                "loop); convert it first"
            ),
        ),
        (
            {"url": URL, "method": "POST", "body": {"a": {1, 2}}},
            (
                "body: contains a value that JSON cannot express (such as NaN, bytes, a set or a "
                "loop); convert it first"
            ),
        ),
        (
            {"url": URL, "method": "POST", "body": "\ud800"},
            "body: contains text that is not valid Unicode; correct it",
        ),
    ],
)
def test_invalid_configuration_is_a_failed_result_that_names_the_field(
    config: Any, error: str
) -> None:
    result = call(config)
    assert (result.success, result.status_code, result.attempts) == (False, 0, 0)
    assert result.error == error


@pytest.mark.parametrize(
    ("field", "template"), [("url", "http://h/{x}"), ("method", "P{x}"), ("body", "a {x}")]
)
def test_a_parameter_that_cannot_be_inserted_is_named(field: str, template: str) -> None:
    result = call({"url": URL, "method": "POST", field: template}, {"x": object()})
    assert result.error == (
        f"{field}: parameter 'x' (object) cannot be written as JSON inside text; pass a string"
    )


@pytest.mark.parametrize("field", ["body", "headers.X-Deep"])
def test_a_template_that_is_nested_too_deeply_is_a_failed_result(field: str) -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    template = {"body": deep} if field == "body" else {"headers": {"X-Deep": deep}}
    result = call({"url": URL, "method": "POST", **template})
    assert result.error == f"{field}: is nested too deeply; flatten it"


def test_parameters_that_are_not_a_dict_are_a_failed_result() -> None:
    assert call({"url": URL}, ["a"]).error == "params: expected a dict, got list"
