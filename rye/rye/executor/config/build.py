"""Build the config that a chain's primitive is called with: merged, rendered and checked."""

from __future__ import annotations

import os
from collections.abc import Container, Mapping, Sequence

from lilux.record import Record, field

from rye.context import Context
from rye.errors import ConfigTemplateError
from rye.executor.caches import BoundedDict
from rye.executor.chain.anchor import Anchor, apply_anchor
from rye.executor.config.command_line import (
    check_lengths,
    render_command_line,
    render_env,
    render_path,
)
from rye.executor.config.environment import ChainEnvironment
from rye.executor.config.merge import MergedConfig, merge_configs
from rye.executor.config.templates import (
    Names,
    as_text,
    origin,
    placeholders,
    render_value,
)
from rye.items.element import ChainElement
from rye.spaces.ids import HTTP_CLIENT, SUBPROCESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lilux.primitives.subprocess.confinement import MissingPart

    from rye.items.permissions import Permissions

MCP_TOOL = "mcp_tool"
"""The setting that names a tool of an MCP server, and the digest of its pinned definition."""
_PATHS = ("cwd", "stdout_file", "stderr_file")
"""The settings of a process that are the path of a file or a folder."""
MAX_SECONDS = 366 * 24 * 3600
"""The longest timeout that the primitives accept."""


class ExecutionConfig(Record, frozen=True, kw_only=True):
    """The arguments of the primitive. Values may be secret and are not part of the repr."""

    primitive_id: str
    config: dict[str, Any] = field(repr=False)
    params: dict[str, Any] = field(repr=False)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The environment variables whose values are part of the command or the working directory."""
    permissions: Permissions | None = None
    """Everything that the call may do; ``None`` if the tool is not confined."""
    enforced: Mapping[str, str] | None = None
    """What Rye itself enforces of the permissions; ``None`` if the tool is not confined."""
    missing: tuple[MissingPart, ...] = ()
    """The permissions that nothing enforces."""

    @classmethod
    def of_process(cls, config: dict[str, Any]) -> ExecutionConfig:
        """A process that Rye itself starts."""
        return cls(primitive_id=SUBPROCESS, config=config, params={})

    def scrubbed(self, text: str) -> str:
        """Return ``text`` with each secret value replaced by the name of its variable."""
        for name, value in sorted(self.secrets.items(), key=lambda one: -len(one[1])):
            text = text.replace(value, f"${{{name}}}")
        return text


class ConfigBuilder:
    """Builds configs for an executor, which calls the same chains again and again.

    The merged config of a chain is kept until the chain is built again. If it has no placeholders,
    its rendered form is kept too, since only the environment differs between calls. A chain with an
    anchor is merged for each call, since the anchor depends on the file system.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._known: dict[
            str, tuple[MergedConfig, ExecutionConfig | None, Mapping[str, str] | None]
        ] = BoundedDict()

    def build(
        self,
        chain: Sequence[ChainElement],
        parameters: Mapping[str, Any],
        env: ChainEnvironment,
        anchor: Anchor | None,
        *,
        timeout: float | None = None,
        places: Mapping[str, str] | None = None,
    ) -> ExecutionConfig:
        """Like :func:`build_execution_config`."""
        tool = chain[0].item_id
        known = self._known.get(tool)
        if known is None or known[0].chain is not chain or known[2] != places:
            if any(element.metadata.anchor is not None for element in chain):
                return build_execution_config(
                    chain, parameters, env, anchor, self._context, timeout=timeout, places=places
                )
            known = self._known[tool] = (*self._merge(chain, places), places)
        merged, constant, _ = known
        if constant is None or timeout is not None:
            return _fill(merged, parameters, env.env, self._context, timeout=timeout, masked=False)
        argv = [constant.config["command"], *constant.config["args"]]
        check_lengths(argv, env.env, origin(merged.files, merged.tool, "args"))
        return ExecutionConfig(
            primitive_id=SUBPROCESS, config={**constant.config, "env": env.env}, params={}
        )

    def _merge(
        self, chain: Sequence[ChainElement], places: Mapping[str, str] | None
    ) -> tuple[MergedConfig, ExecutionConfig | None]:
        merged = merge_configs(chain, None, self._context, places)
        if not merged.is_constant:
            return merged, None
        return merged, _fill(merged, {}, {}, self._context, timeout=None, masked=False)


def build_execution_config(
    chain: Sequence[ChainElement],
    parameters: Mapping[str, Any],
    env: ChainEnvironment | Mapping[str, str],
    anchor: Anchor | None,
    context: Context,
    *,
    timeout: float | None = None,
    masked: bool = False,
    places: Mapping[str, str] | None = None,
) -> ExecutionConfig:
    """Merge the configs from the primitive up to the tool, and fill in their templates.

    The caller's parameters are inserted literally; only a primitive that is called directly takes
    them as its config. ``timeout`` (seconds) takes precedence over the chain's. The anchor's paths
    are added to the environment, which the job gets exactly. With ``masked``, the values of
    ``env`` are placeholders for display, so settings made from them are not converted or checked.
    ``places`` are the names whose values are paths in a copy of the closure.

    Raises :class:`ConfigTemplateError`, :class:`ParameterError`, :class:`AnchorError` or
    :class:`ArgumentTooLongError`. No message contains a value.
    """
    variables = apply_anchor(env.env if isinstance(env, ChainEnvironment) else env, anchor)
    merged = merge_configs(chain, anchor, context, places)
    return _fill(merged, parameters, variables, context, timeout=timeout, masked=masked)


def _fill(
    merged: MergedConfig,
    parameters: Mapping[str, Any],
    env: Mapping[str, str],
    context: Context,
    *,
    timeout: float | None,
    masked: bool,
) -> ExecutionConfig:
    expanded, names = merged.expanded(merged.names(parameters, env, masked=masked))
    templates = {key: value for key, value in expanded.items() if key in merged.settings}
    if timeout is not None:
        templates["timeout"] = timeout
    if len(merged.chain) == 1:
        return _direct_call(templates, names, context, timeout=timeout)
    if merged.primitive == SUBPROCESS:
        secrets = _secrets(templates, names, merged.programs)
        return _subprocess(templates, names, context, masked=masked, secrets=secrets)
    if merged.primitive == HTTP_CLIENT:
        return _http(templates, names, masked=masked)
    return _other(merged.primitive, _render(templates, names), names)


def _render(templates: Mapping[str, Any], names: Names) -> dict[str, Any]:
    return {key: render_value(value, names, names.place(key)) for key, value in templates.items()}


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
    templates: Mapping[str, Any],
    names: Names,
    context: Context,
    *,
    masked: bool,
    secrets: Mapping[str, str],
) -> ExecutionConfig:
    line = render_command_line(templates, names)
    rendered: dict[str, Any] = {
        key: render_path(templates[key], names, names.place(key))
        for key in _PATHS
        if key in templates
    }
    rendered |= {"command": line.command, "args": line.args, "input_data": line.input_data}
    others = {
        key: value for key, value in templates.items() if key not in rendered and key != "env"
    }
    config: dict[str, Any] = {**_render(others, names), **rendered}
    given = render_env(templates.get("env"), names)
    config["env"] = _variables(names.env, given, names.place("env"))
    return _job(config, names, context, masked=masked, secrets=secrets)


def _http(templates: Mapping[str, Any], names: Names, *, masked: bool) -> ExecutionConfig:
    from rye.executor.config.http import templated_call

    config, params, env = templated_call(templates, names)
    # Without a mode in the config, the primitive would take one from the parameters.
    config["mode"] = config.get("mode") or "sync"
    config |= {"env": env, "env_mode": "exact"}
    if not masked:
        _convert_timeout(config, names)
    if MCP_TOOL in config:
        params = dict(names.parameters)
    return ExecutionConfig(primitive_id=HTTP_CLIENT, config=config, params=params)


def _direct_call(
    templates: Mapping[str, Any], names: Names, context: Context, *, timeout: float | None
) -> ExecutionConfig:
    """The config of a primitive that is called directly: the caller's parameters, literally."""
    given = dict(names.parameters)
    if timeout is not None:
        given["timeout"] = timeout
    config = _render(templates, names) | given
    where = names.origin()
    if names.tool == HTTP_CLIENT:
        from rye.executor.config.http import literal_call

        call, values = literal_call(config, where)
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
    return _job(config, names, context, masked=False, secrets={})


def _other(primitive: str, config: Mapping[str, Any], names: Names) -> ExecutionConfig:
    """The config of a primitive that another package registered."""
    return ExecutionConfig(
        primitive_id=primitive,
        config={"env": dict(names.env), **config, "env_mode": "exact", "render": False},
        params=dict(names.parameters),
    )


def _job(
    config: dict[str, Any],
    names: Names,
    context: Context,
    *,
    masked: bool,
    secrets: Mapping[str, str],
) -> ExecutionConfig:
    """The checked config of a call of the subprocess primitive."""
    cwd = config.get("cwd")
    folder = "" if cwd is None else as_text(cwd, names.place("cwd"))
    if not config.get("command"):
        raise ConfigTemplateError(
            f"{names.place('command')}: no command is specified", hint="name the program"
        )
    if not (masked and folder.startswith("${")):
        # Joined, not resolved: `..` after a symbolic link keeps its meaning.
        config["cwd"] = os.path.join(context.project_path, folder)  # noqa: PTH118 - see above
    for key in ("stdout_file", "stderr_file"):
        if config.get(key) is not None:
            path = as_text(config[key], names.place(key))
            if not (masked and path.startswith("${")):
                config[key] = os.path.join(context.project_path, path)  # noqa: PTH118 - see above
    if not masked:
        _convert_timeout(config, names)
        argv = [config["command"], *(config.get("args") or ())]
        check_lengths(argv, config["env"], names.origin("args"))
    final = {key: value for key, value in config.items() if value is not None}
    return ExecutionConfig(
        primitive_id=SUBPROCESS,
        config={**final, "env_mode": "exact", "render": False},
        # The arguments of a tool of another server; a command has them in its words.
        params=dict(names.parameters) if MCP_TOOL in final else {},
        secrets=secrets,
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
                f"{where}: {name!r} is not a valid variable name", hint="rename the variable"
            )
        if value is None:
            env.pop(name, None)
        else:
            env[name] = as_text(value, f"{where}.{name}")
    return env


def _convert_timeout(config: dict[str, Any], names: Names) -> None:
    """Make the timeout a number, since a rendered ``${VAR}`` is text. Raises if it is not one."""
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
            f"{names.place('timeout')}: {problem}", hint="write for example 30"
        )
    config["timeout"] = seconds
