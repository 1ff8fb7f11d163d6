"""The config of the primitive that a chain ends in: merged, with its context, rendered."""

from __future__ import annotations

import os
import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rye.context import Context
from rye.errors import ArgumentTooLongError, ConfigTemplateError
from rye.executor.anchor import Anchor, apply_anchor, place_names
from rye.executor.command_line import check_lengths, render_command_line
from rye.executor.environment import ChainEnvironment
from rye.executor.http_call import literal_call, templated_call
from rye.executor.primitives import HTTP_CLIENT, SUBPROCESS
from rye.executor.rendering import (
    ANCHOR_CWD,
    Names,
    as_text,
    declared_parameters,
    expand_references,
    placeholders,
    render_value,
)
from rye.items.element import ChainElement

_SETTINGS = {
    SUBPROCESS: frozenset((
        "command", "args", "cwd", "input_data", "env", "timeout", "output_limit", "background",
        "grace", "stdout_file", "stderr_file",
    )),
    HTTP_CLIENT: frozenset((
        "method", "url", "headers", "body", "auth", "timeout", "retry", "mode", "follow_redirects",
        "max_body_bytes", "max_event_bytes", "stream_timeout",
    )),
}  # fmt: skip
_KEY_OF_CONFIG = re.compile(r"config\.(\w+)")
MAX_SECONDS = 366 * 24 * 3600
"""The longest timeout that the primitives know."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ExecutionConfig:
    """What the primitive is called with; values may be secrets and stay out of the repr."""

    primitive_id: str
    config: dict[str, Any] = field(repr=False)
    params: dict[str, Any] = field(repr=False)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The variables that are part of the command or of its folder."""

    def scrubbed(self, text: str) -> str:
        """``text``, a message about the command, without their values."""
        for name, value in sorted(self.secrets.items(), key=lambda one: -len(one[1])):
            text = text.replace(value, f"${{{name}}}")
        return text


def build_execution_config(
    chain: Sequence[ChainElement],
    parameters: Mapping[str, Any],
    env: ChainEnvironment | Mapping[str, str],
    anchor: Anchor | None,
    context: Context,
    *,
    timeout: float | None = None,
    masked: bool = False,
) -> ExecutionConfig:
    """Merge the configs from the primitive up to the tool, and fill their templates.

    A caller's parameters are literal, and are config only of a chain that is nothing but a
    primitive. ``timeout`` in seconds goes before that of the chain. The anchor's paths are applied
    to the environment, which the job gets exactly. ``masked`` says that ``env`` has no real
    values: what is made of them is to be shown, not run, and is not converted or checked.

    Raises :class:`ConfigTemplateError`, :class:`ParameterError`, :class:`AnchorError` or
    :class:`ArgumentTooLongError`; no message repeats a value.
    """
    try:
        return _build(chain, parameters, env, anchor, context, timeout=timeout, masked=masked)
    except (ConfigTemplateError, ArgumentTooLongError) as error:
        raise _with_file(error, chain) from None


def interpreter_variables(chain: Sequence[ChainElement]) -> set[str]:
    """The variables that hold a program of the chain, which is no secret."""
    rules = [(element.metadata.env_config or {}).get("interpreter") for element in chain]
    return {str(one.get("var", "")) for one in rules if isinstance(one, Mapping)}


def _with_file(
    error: ConfigTemplateError | ArgumentTooLongError, chain: Sequence[ChainElement]
) -> ConfigTemplateError | ArgumentTooLongError:
    """The error with the file in front whose config it is about."""
    message = str(error).removesuffix(f"; {error.hint}")
    key = _KEY_OF_CONFIG.search(message)
    name = key.group(1) if key else "args"
    author = next((one for one in chain if name in one.metadata.config), chain[0])
    place = f"{author.path}: " if author.path else ""
    return type(error)(f"{place}{message}", hint=error.hint)


def _build(
    chain: Sequence[ChainElement],
    parameters: Mapping[str, Any],
    env: ChainEnvironment | Mapping[str, str],
    anchor: Anchor | None,
    context: Context,
    *,
    timeout: float | None,
    masked: bool,
) -> ExecutionConfig:
    variables = apply_anchor(env.env if isinstance(env, ChainEnvironment) else env, anchor)
    names = Names(
        injected=_injected(chain, anchor, context),
        parameters=parameters,
        declared=declared_parameters(chain[0]),
        env=variables,
        tool=chain[0].item_id,
    )
    merged = _merged(chain, anchor)
    settings = _settings(chain[-1], merged)
    templates, names = expand_references(merged, names, settings)
    templates = {key: value for key, value in templates.items() if key in settings}
    if timeout is not None:
        templates["timeout"] = timeout
    if len(chain) == 1:
        return _bare(templates, names, context, timeout=timeout)
    primitive = chain[-1].item_id
    if primitive == SUBPROCESS:
        config = _subprocess(templates, names, context, masked=masked)
        return replace(config, secrets=_secrets(templates, names, interpreter_variables(chain)))
    if primitive == HTTP_CLIENT:
        return _http(templates, names, masked=masked)
    return _other(primitive, render_value(templates, names, f"'{names.tool}': config"), names)


def _secrets(
    templates: Mapping[str, Any], names: Names, programs: Container[str]
) -> dict[str, str]:
    texts = [templates.get(key) for key in ("command", "cwd")]
    return {
        one.name: names.env[one.name]
        for text in texts
        if isinstance(text, str)
        for one in placeholders(text, names)
        if one.kind == "env" and one.name not in programs and names.env.get(one.name)
    }


def _subprocess(
    templates: Mapping[str, Any], names: Names, context: Context, *, masked: bool
) -> ExecutionConfig:
    where = f"'{names.tool}': config"
    line = render_command_line(templates, names)
    config = {
        key: render_value(value, names, f"{where}.{key}")
        for key, value in templates.items()
        if key not in ("command", "args", "input_data")
    }
    config |= {"command": line.command, "args": line.args, "input_data": line.input_data}
    config["env"] = _variables(names.env, config.get("env"), f"{where}.env")
    return _job(config, names.tool, context, masked=masked)


def _http(templates: Mapping[str, Any], names: Names, *, masked: bool) -> ExecutionConfig:
    config, params, env = templated_call(templates, names)
    # Without a mode of its own the primitive would look for one among the parameters.
    config["mode"] = config.get("mode") or "sync"
    config |= {"env": env, "env_mode": "exact"}
    if not masked:
        _number_of_seconds(config, names.tool)
    return ExecutionConfig(primitive_id=HTTP_CLIENT, config=config, params=params)


def _bare(
    templates: Mapping[str, Any], names: Names, context: Context, *, timeout: float | None
) -> ExecutionConfig:
    """A primitive by itself: what the caller gives is its config, to the letter."""
    given = dict(names.parameters)
    if timeout is not None:
        given["timeout"] = timeout
    where = f"'{names.tool}'"
    config = {**render_value(templates, names, where), **given}
    if names.tool == HTTP_CLIENT:
        call, values = literal_call(config)
        call = {**call, "env": {}, "env_mode": "exact", "mode": call.get("mode") or "sync"}
        return ExecutionConfig(primitive_id=HTTP_CLIENT, config=call, params=values)
    if names.tool != SUBPROCESS:
        return _other(names.tool, config, names)
    base = {} if given.get("env_mode") == "exact" else names.env
    config["env"] = _variables(base, config.get("env"), f"{where}: env")
    arguments = config.get("args")
    if isinstance(arguments, list | tuple):
        config["args"] = [
            as_text(one, f"{where}: args[{index}]") for index, one in enumerate(arguments)
        ]
    if config.get("command") is not None:
        config["command"] = as_text(config["command"], f"{where}: command")
    return _job(config, names.tool, context, masked=False)


def _other(primitive: str, config: Mapping[str, Any], names: Names) -> ExecutionConfig:
    """A primitive that another package brings."""
    return ExecutionConfig(
        primitive_id=primitive,
        config={"env": dict(names.env), **config, "env_mode": "exact", "render": False},
        params=dict(names.parameters),
    )


def _job(config: dict[str, Any], tool: str, context: Context, *, masked: bool) -> ExecutionConfig:
    """The common end of all that is run by the subprocess primitive."""
    cwd = config.get("cwd")
    folder = "" if cwd is None else as_text(cwd, f"'{tool}': config.cwd")
    if not config.get("command"):
        raise ConfigTemplateError(
            f"'{tool}': config.command: no command is specified", hint="name the program"
        )
    if not (masked and folder.startswith("${")):
        # As it is written, whatever `..` in it may mean.
        config["cwd"] = os.path.join(context.project_path, folder)  # noqa: PTH118 - see above
    if not masked:
        _number_of_seconds(config, tool)
        check_lengths([config["command"], *(config.get("args") or ())], config["env"], tool)
    final = {key: value for key, value in config.items() if value is not None}
    return ExecutionConfig(
        primitive_id=SUBPROCESS,
        config={**final, "env_mode": "exact", "render": False},
        params={},
    )


def _merged(chain: Sequence[ChainElement], anchor: Anchor | None) -> dict[str, Any]:
    """Mappings are merged key by key, all else is replaced by who stands nearer to the tool."""
    merged: dict[str, Any] = {}
    for level in reversed(range(len(chain))):
        merged = _laid_over(merged, chain[level].metadata.config)
        if anchor is not None and anchor.cwd is not None and level == anchor.level:
            merged["cwd"] = f"{{{ANCHOR_CWD}}}"
    return merged


def _laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(below)
    for key, value in above.items():
        under = result.get(key)
        if isinstance(under, Mapping) and isinstance(value, Mapping):
            value = _laid_over(under, value)  # noqa: PLW2901 - one name for what is laid on top
        result[key] = value
    return result


def _injected(
    chain: Sequence[ChainElement], anchor: Anchor | None, context: Context
) -> dict[str, str]:
    names = place_names(chain, context)
    names["tool_integrity"] = chain[0].integrity
    if anchor is not None:
        names["anchor_path"] = str(anchor.path)
        if anchor.cwd is not None:
            names[ANCHOR_CWD] = str(anchor.cwd)
    return names


def _variables(base: Mapping[str, str], own: Any, where: str) -> dict[str, str]:
    env = dict(base)
    if own is None:
        return env
    if not isinstance(own, Mapping):
        raise ConfigTemplateError(
            f"{where}: expected a mapping, got {type(own).__name__}", hint="write NAME: value"
        )
    for name, value in own.items():
        if not isinstance(name, str) or not name or "=" in name or "\0" in name:
            raise ConfigTemplateError(
                f"{where}: {name!r} cannot be the name of a variable", hint="choose another"
            )
        if value is None:
            env.pop(name, None)
        else:
            env[name] = as_text(value, f"{where}.{name}")
    return env


def _number_of_seconds(config: dict[str, Any], tool: str) -> None:
    """``${VAR}`` gives text, also where a number is meant."""
    timeout = config.get("timeout")
    if timeout is None:
        return
    problem = "is not a number of seconds"
    try:
        seconds = float(timeout) if isinstance(timeout, str) else timeout
        valid = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    except ValueError:
        valid = False
    if valid and not 0 < seconds <= MAX_SECONDS:
        valid, problem = False, f"must be above 0 and at most {MAX_SECONDS}"
    if not valid:
        raise ConfigTemplateError(
            f"'{tool}': config.timeout: {problem}", hint="write for example 30"
        )
    config["timeout"] = seconds


def _settings(primitive: ChainElement, config: Mapping[str, Any]) -> frozenset[str]:
    """The keys that the primitive reads; all others are values of the author's own."""
    known = _SETTINGS.get(primitive.item_id)
    if known is None:
        schema = primitive.metadata.config_schema or {}
        known = frozenset(schema.get("properties") or config)
    return known
