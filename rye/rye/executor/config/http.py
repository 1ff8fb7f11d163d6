"""The config of an HTTP call.

The primitive fills the texts of a request itself, since it knows how a value travels in an
address, a header or a body, and which values must not appear in a message. So it gets the
author's templates, and exactly the values that they name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from lilux.patterns import pattern
from lilux.templating import (
    Placeholder,
    env_value,
    param_text,
    render,
    substitute,
    whole_placeholder,
)

from rye.errors import ConfigTemplateError
from rye.executor.config.templates import (
    PARAMS_JSON,
    Names,
    params_json,
    placeholders,
    render_value,
    require_given,
)
from rye.items.element import ChainElement

_REQUEST = ("method", "url", "headers", "body", "auth")
# The primitive looks for sinks among its parameters; nothing of a caller's may stand there.
_RESERVED = frozenset(("__sinks",))
_USERINFO = pattern(r"(?<=:)//[^/?#]*@")


def templated_call(
    config: Mapping[str, Any], names: Names
) -> tuple[dict[str, Any], dict[str, Any], dict[str, str]]:
    """Config, parameters and variables for the primitive to render, once."""
    where = f"'{names.tool}': config"
    call = {
        key: value if key in _REQUEST else render_value(value, names, f"{where}.{key}")
        for key, value in config.items()
    }
    params: dict[str, Any] = {}
    env: dict[str, str] = {}
    for key in _REQUEST:
        for place, text in _texts(call.get(key), f"{where}.{key}"):
            lone = whole_placeholder(text) is not None
            for one in placeholders(text, names):
                if one.kind == "env":
                    if one.name in names.env:
                        env[one.name] = names.env[one.name]
                elif one.name not in _RESERVED:
                    if not lone:
                        require_given(one.name, names, place)
                    params[one.name] = names.value(one.name)
    if isinstance(call.get("body"), str) and call["body"].strip() == f"{{{PARAMS_JSON}}}":
        # As a value, not as text: a text in a JSON body would be written as a JSON string.
        params_json(names.parameters, names.tool)
        call["body"], params["parameters_"] = "{parameters_}", dict(names.parameters)
    return call, params, env


def literal_call(config: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A config that a caller wrote, made such that nothing in it is a placeholder."""
    values: dict[str, Any] = {}

    def shield(value: Any) -> Any:
        if isinstance(value, str) and "{" in value:
            name = f"literal_{len(values)}"
            values[name] = value
            return f"{{{name}}}"
        if isinstance(value, Mapping):
            return {key: shield(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [shield(one) for one in value]
        return value

    call = dict(config)
    if isinstance(call.get("body"), str):
        _text_body(call)
    for key in _REQUEST:
        if key in call:
            call[key] = shield(call[key])
    return call, values


def shown_request(
    config: Mapping[str, Any],
    params: Mapping[str, Any],
    shown: Mapping[str, Any],
    tool: ChainElement,
) -> dict[str, Any]:
    """The request as it would be sent, with the variables of ``shown`` in place of real values.

    Raises :class:`ConfigTemplateError` for one that the primitive would refuse.
    """
    from lilux.primitives.http_client.config import parse_config
    from lilux.primitives.http_client.request import prepare_request

    try:
        prepared = prepare_request(parse_config(config, params), params, {})
    except ValueError as error:
        place = f"{tool.path}: " if tool.path else ""
        raise ConfigTemplateError(f"{place}'{tool.item_id}': {error}") from None
    auth, env = shown.get("auth"), shown["env"]
    body = render(shown.get("body"), params=params, env=env)
    return {
        "method": prepared.method,
        "url": _USERINFO.sub("//…@", _shown_url(shown["url"], params, env)),
        "header_names": sorted(name for name, _ in prepared.headers),
        "auth": auth.get("type") if isinstance(auth, Mapping) else None,
        "body": body.decode("utf-8", "replace") if isinstance(body, bytes) else body,
        "mode": shown.get("mode", "sync"),
    }


def _shown_url(template: str, params: Mapping[str, Any], env: Mapping[str, str]) -> str:
    """As the primitive makes it: a parameter is the whole address, or a part that is encoded."""
    whole = whole_placeholder(template)
    if whole is not None and whole.kind == "param":
        return str(params[whole.name])

    def fill(placeholder: Placeholder) -> str | None:
        if placeholder.kind == "env":
            return env_value(placeholder, env)
        if placeholder.name not in params:
            return None
        return quote(param_text(placeholder.name, params[placeholder.name]), safe="")

    return substitute(template, fill)


def _text_body(call: dict[str, Any]) -> None:
    """As bytes, since a lone placeholder under a JSON content type would become a JSON string."""
    try:
        call["body"] = call["body"].encode("utf-8")
    except UnicodeEncodeError:
        raise ConfigTemplateError(
            "body: contains half of a surrogate pair, which is no text", hint="pass valid Unicode"
        ) from None
    headers = call.get("headers")
    headers = dict(headers) if isinstance(headers, Mapping) else {}
    if not any(isinstance(name, str) and name.lower() == "content-type" for name in headers):
        headers["Content-Type"] = "text/plain; charset=utf-8"
    call["headers"] = headers


def _texts(value: Any, where: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from _texts(one, f"{where}.{key}")
    elif isinstance(value, list | tuple):
        for index, one in enumerate(value):
            yield from _texts(one, f"{where}[{index}]")
