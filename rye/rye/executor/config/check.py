"""Check the command line of a chain before any call, with a stand-in for each value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from lilux.record import replaced
from lilux.templating import Placeholder, substitute

from rye.context import Context
from rye.errors import ConfigTemplateError
from rye.executor.config.command_line import render_command_line, render_env
from rye.executor.config.inert import shape_of
from rye.executor.config.merge import (
    MergedConfig,
    interpreter_of,
    interpreter_variables,
    merge_configs,
    starts_a_process,
)
from rye.executor.config.templates import RESERVED, Names, texts_in
from rye.items.element import ChainElement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_READ = ("command", "args", "input_data", "env")
# Information for people, not a defence: after one of these, many programs expect code.
_TAKES_CODE = r"-[A-Za-z]*[ce]|--?(?:eval|exec|execute|command|expression|filter)|eval|exec"


def check_command_line(chain: Sequence[ChainElement], context: Context) -> None:
    """Raise :class:`ConfigTemplateError` if a value stands where no caller's value may stand.

    Without a schema that lists all parameters, every ``{name}`` in a tool is a parameter. In a
    runtime it may be a value of the tool's config, so only the names of its own schema are.
    """
    if not starts_a_process(chain):
        return
    merged = merge_configs(chain, None, context)
    try:
        templates, names = _with_stand_ins(merged)
        render_command_line(templates, names)
        render_env(templates.get("env"), names)
    except ConfigTemplateError as error:
        guessed = set(_mentioned(merged.templates)) - _properties(merged).keys() - RESERVED
        if not any(f": {{{name}}} " in error.reason for name in guessed):
            raise
        unless = "if it is not a parameter, list all parameters in config_schema"
        raise ConfigTemplateError(error.reason, hint=f"{error.hint}; {unless}") from None


def runs_text_of(chain: Sequence[ChainElement], context: Context) -> tuple[str, ...]:
    """The parameters that the author hands to a program as code, as far as that can be seen.

    A parameter is listed if it is the command, or a whole argument after an option such as ``-c``.
    """
    if not starts_a_process(chain):
        return ()
    templates, names = _with_stand_ins(merge_configs(chain, None, context))
    args = templates.get("args")
    words = list(args) if isinstance(args, list | tuple) else [args]
    found = _parameters([templates.get("command")], names)
    for before, word in zip(["", *words], words, strict=False):
        shape = shape_of(word) if isinstance(word, str) else None
        # After `-c`, a word such as `--name={x}` is code and no option.
        options = [before, shape.option[:-1] if shape is not None else ""]
        if any(isinstance(one, str) and re.fullmatch(_TAKES_CODE, one) for one in options):
            found += _parameters([word], names)
    return tuple(dict.fromkeys(found))


def _with_stand_ins(merged: MergedConfig) -> tuple[dict[str, Any], Names]:
    properties = _properties(merged)
    given = set(properties)
    if merged.declared is None and merged.chain[0].metadata.tool_type != "runtime":
        given |= set(_mentioned(merged.templates)) - merged.templates.keys()
    parameters = {name: _stand_in(properties.get(name)) for name in given - RESERVED}
    names = merged.names(parameters, dict(_programs(merged.chain)), masked=True)
    names = replaced(names, injected=dict.fromkeys(RESERVED, "/x"))
    templates, names = merged.expanded(names)
    return {key: templates[key] for key in _READ if key in templates}, names


def _properties(merged: MergedConfig) -> Mapping[str, Any]:
    found = (merged.chain[0].metadata.config_schema or {}).get("properties")
    return found if isinstance(found, Mapping) else {}


def _stand_in(schema: Any) -> Any:
    return 0 if isinstance(schema, Mapping) and schema.get("type") == "integer" else "x"


def _programs(chain: Sequence[ChainElement]) -> Iterator[tuple[str, str]]:
    for variable, element in interpreter_variables(chain).items():
        interpreter = interpreter_of(element)
        yield variable, str(interpreter.get("binary") or interpreter.get("fallback") or "")


def _mentioned(value: Any) -> list[str]:
    found: list[Placeholder] = []
    for text in texts_in(value):
        substitute(text, found.append)
    return [one.name for one in found if one.kind == "param"]


def _parameters(words: Sequence[Any], names: Names) -> list[str]:
    return [name for name in _mentioned(words) if names.is_parameter(name)]
