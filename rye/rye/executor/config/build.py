"""The config of the primitive that a chain ends in: merged, with its context, rendered."""

from __future__ import annotations

import os
from collections.abc import Container, Mapping, Sequence

from lilux.patterns import pattern
from lilux.record import Record, field, replaced

from rye.context import Context
from rye.errors import ArgumentTooLongError, ConfigTemplateError
from rye.executor.caches import BoundedDict
from rye.executor.chain.anchor import Anchor, apply_anchor
from rye.executor.config.command_line import check_lengths, render_command_line
from rye.executor.config.environment import ChainEnvironment
from rye.executor.config.merge import ConfigPlan, plan_config
from rye.executor.config.templates import (
    Names,
    as_text,
    expand_references,
    placeholders,
    render_value,
)
from rye.items.element import ChainElement
from rye.spaces.ids import HTTP_CLIENT, SUBPROCESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_KEY_OF_CONFIG = pattern(r"config\.(\w+)")
MAX_SECONDS = 366 * 24 * 3600
"""The longest timeout that the primitives know."""


class ExecutionConfig(Record, frozen=True, kw_only=True):
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


class _Literal(Record, frozen=True, kw_only=True):
    """A config in which no parameter has a part, and what it was made from."""

    plan: ConfigPlan
    env: ChainEnvironment
    timeout: float | None
    config: ExecutionConfig


class ConfigBuilder:
    """Builds the configs of chains that are called again and again.

    The plan of a chain is kept for as long as it is the very same chain, and a literal config for
    as long as it is the very same environment. A chain with an anchor is planned for each call,
    since where that leads is for the file system to say.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._plans: dict[str, ConfigPlan] = BoundedDict()
        self._literals: dict[str, _Literal] = BoundedDict()

    def build(
        self,
        chain: Sequence[ChainElement],
        parameters: Mapping[str, Any],
        env: ChainEnvironment,
        anchor: Anchor | None,
        *,
        timeout: float | None = None,
    ) -> ExecutionConfig:
        """Like :func:`build_execution_config`. What it gives is not to be changed."""
        tool = chain[0].item_id
        plan = self._plans.get(tool)
        if plan is None or plan.chain is not chain:
            if any(element.metadata.anchor is not None for element in chain):
                return build_execution_config(
                    chain, parameters, env, anchor, self._context, timeout=timeout
                )
            plan = self._plans[tool] = plan_config(chain, None, self._context)
        if not plan.is_literal:
            return _filled(plan, parameters, env.env, self._context, timeout=timeout, masked=False)
        last = self._literals.get(tool)
        if last and last.plan is plan and last.env is env and last.timeout == timeout:
            return last.config
        config = _filled(plan, parameters, env.env, self._context, timeout=timeout, masked=False)
        self._literals[tool] = _Literal(plan=plan, env=env, timeout=timeout, config=config)
        return config


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
    variables = apply_anchor(env.env if isinstance(env, ChainEnvironment) else env, anchor)
    plan = plan_config(chain, anchor, context)
    return _filled(plan, parameters, variables, context, timeout=timeout, masked=masked)


def _filled(
    plan: ConfigPlan,
    parameters: Mapping[str, Any],
    env: Mapping[str, str],
    context: Context,
    *,
    timeout: float | None,
    masked: bool,
) -> ExecutionConfig:
    try:
        return _fill(plan, parameters, env, context, timeout=timeout, masked=masked)
    except (ConfigTemplateError, ArgumentTooLongError) as error:
        raise _with_file(error, plan.chain) from None


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


def _fill(
    plan: ConfigPlan,
    parameters: Mapping[str, Any],
    env: Mapping[str, str],
    context: Context,
    *,
    timeout: float | None,
    masked: bool,
) -> ExecutionConfig:
    names = Names(
        injected=plan.injected,
        parameters=parameters,
        declared=plan.declared,
        env=env,
        tool=plan.tool,
    )
    templates: Mapping[str, Any] = plan.templates
    if plan.refers_to_itself:
        templates, names = expand_references(templates, names, plan.settings)
    templates = {key: value for key, value in templates.items() if key in plan.settings}
    if timeout is not None:
        templates["timeout"] = timeout
    if len(plan.chain) == 1:
        return _bare(templates, names, context, timeout=timeout)
    if plan.primitive == SUBPROCESS:
        config = _subprocess(templates, names, context, masked=masked)
        return replaced(config, secrets=_secrets(templates, names, plan.programs))
    if plan.primitive == HTTP_CLIENT:
        return _http(templates, names, masked=masked)
    return _other(plan.primitive, render_value(templates, names, f"'{names.tool}': config"), names)


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
    from rye.executor.config.http import templated_call

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
        from rye.executor.config.http import literal_call

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
