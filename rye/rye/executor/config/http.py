"""Build the config of an HTTP call.

The primitive renders the texts of a request itself, since it knows how to encode a value in a URL,
a header or a body, and which values must not appear in a message. So it gets the author's templates
and the values that they name, and no others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

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
# The primitive takes sinks from its parameters, so a caller must not be able to set them.
_RESERVED = frozenset(("__sinks",))
_USERINFO = r"(?<=:)//[^/?#]*@"


def templated_call(
    config: Mapping[str, Any], names: Names
) -> tuple[dict[str, Any], dict[str, Any], dict[str, str]]:
    """The config, parameters and variables that the primitive renders."""
    call = {
        key: value if key in _REQUEST else render_value(value, names, names.place(key))
        for key, value in config.items()
    }
    params: dict[str, Any] = {}
    env: dict[str, str] = {}
    for key in _REQUEST:
        for place, text in _texts(call.get(key), names.place(key)):
            lone = whole_placeholder(text) is not None
            for one in placeholders(text, names):
                if one.kind == "env":
                    if one.name in names.env:
                        env[one.name] = names.env[one.name]
                elif one.name not in _RESERVED:
                    if not lone:
                        require_given(one.name, names, place)
                    params[one.name] = names.value(one.name, place)
    if isinstance(call.get("body"), str) and call["body"].strip() == f"{{{PARAMS_JSON}}}":
        # As an object: text in a JSON body would be encoded as a JSON string.
        params_json(names.parameters, names.tool)
        call["body"], params["parameters_"] = "{parameters_}", dict(names.parameters)
    return call, params, env


def literal_call(config: Mapping[str, Any], where: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A config and parameters with which the primitive sends the caller's ``config`` literally."""
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
        _text_body(call, where)
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
    """Describe the request that would be sent, with the masked variables of ``shown``.

    Raises :class:`ConfigTemplateError` for a request that the primitive would refuse.
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
        "url": re.sub(_USERINFO, "//…@", _shown_url(shown["url"], params, env)),
        "header_names": sorted(name for name, _ in prepared.headers),
        "auth": auth.get("type") if isinstance(auth, Mapping) else None,
        "body": body.decode("utf-8", "replace") if isinstance(body, bytes) else body,
        "mode": shown.get("mode", "sync"),
    }


def _shown_url(template: str, params: Mapping[str, Any], env: Mapping[str, str]) -> str:
    """The URL as the primitive builds it: a parameter is the whole URL, or an encoded part."""
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


def _text_body(call: dict[str, Any], where: str) -> None:
    """Make the body bytes, since the primitive would encode a lone placeholder as JSON."""
    try:
        call["body"] = call["body"].encode("utf-8")
    except UnicodeEncodeError:
        raise ConfigTemplateError(
            f"{where}: body: contains an unpaired surrogate, which is not valid text",
            hint="pass valid Unicode",
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
