"""Merge the configs of a chain into one template: the part of a config that no call changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lilux.record import Record, field

from rye.context import Context
from rye.executor.chain.anchor import Anchor, place_names
from rye.executor.config.templates import (
    ANCHOR_CWD,
    COMPILED,
    RESERVED,
    TOOL_TYPE,
    Names,
    declared_parameters,
    expand_references,
    mentions,
)
from rye.items.element import ChainElement
from rye.spaces.ids import HTTP_CLIENT, SUBPROCESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SETTINGS = {
    SUBPROCESS: frozenset((
        "command", "args", "cwd", "input_data", "env", "timeout", "output_limit", "background",
        "grace", "stdout_file", "stderr_file", "autopsy", "autopsy_budget", "mcp_tool",
    )),
    HTTP_CLIENT: frozenset((
        "method", "url", "headers", "body", "auth", "timeout", "retry", "mode", "follow_redirects",
        "max_body_bytes", "max_event_bytes", "stream_timeout", "mcp_tool", "token_of",
    )),
}  # fmt: skip


class MergedConfig(Record, frozen=True, kw_only=True):
    """The config of a chain as its authors wrote it, and the names that its templates may use."""

    chain: Sequence[ChainElement]
    templates: Mapping[str, Any]
    """Merged from the primitive up to the tool."""
    files: Mapping[str, str]
    """The file that sets each key, for error messages; ``""`` maps to the tool's."""
    settings: frozenset[str]
    """The keys that the primitive reads; the other keys are the author's own values."""
    injected: Mapping[str, str] = field(repr=False)
    declared: frozenset[str] | None
    """The parameters in the tool's schema; ``None`` if the schema allows others."""
    programs: frozenset[str]
    """The variables that contain the path of an interpreter, which is not secret."""
    refers_to_itself: bool
    """True if a template names a value of the config."""
    is_constant: bool
    """True for a command without placeholders or variables, the same in every call."""

    @property
    def tool(self) -> str:
        """The id of the tool."""
        return self.chain[0].item_id

    @property
    def primitive(self) -> str:
        """The id of the primitive."""
        return self.chain[-1].item_id

    def names(
        self, parameters: Mapping[str, Any], env: Mapping[str, str], *, masked: bool = False
    ) -> Names:
        """The meaning of the placeholders in a call."""
        return Names(
            injected=self.injected,
            parameters=parameters,
            declared=self.declared,
            env=env,
            tool=self.tool,
            files=self.files,
            masked=masked,
        )

    def expanded(self, names: Names) -> tuple[Mapping[str, Any], Names]:
        """The templates without references to each other; as :func:`expand_references`."""
        if not self.refers_to_itself:
            return self.templates, names
        return expand_references(self.templates, names, self.settings)


def merge_configs(
    chain: Sequence[ChainElement],
    anchor: Anchor | None,
    context: Context,
    places: Mapping[str, str] | None = None,
) -> MergedConfig:
    """Merge the configs of the chain.

    ``places`` are names whose values differ from the paths of the chain's files. Raises
    :class:`AnchorError` if the library of the runtime is missing.
    """
    templates = merged_templates(chain, anchor)
    settings = _settings(chain[-1], templates)
    names = [f"{{{key}}}" for key in templates if key not in RESERVED]
    read = {key: value for key, value in templates.items() if key in settings}
    return MergedConfig(
        chain=chain,
        templates=templates,
        files=_files(chain),
        settings=settings,
        injected={**_injected(chain, anchor, context), **(places or {})},
        declared=declared_parameters(chain[0]),
        programs=frozenset(interpreter_variables(chain)),
        refers_to_itself=mentions(templates, names),
        is_constant=(
            starts_a_process(chain)
            and "env" not in read
            # A tool of another server takes the parameters as they are.
            and "mcp_tool" not in read
            and not mentions(read, ["{"])
        ),
    )


def starts_a_process(chain: Sequence[ChainElement]) -> bool:
    """True if the authors of a chain wrote a command line; a primitive's caller writes its own."""
    return len(chain) > 1 and chain[-1].item_id == SUBPROCESS


def interpreter_of(element: ChainElement) -> Mapping[str, Any]:
    """The rule by which an element finds an interpreter; empty if it has none."""
    rule = (element.metadata.env_config or {}).get("interpreter")
    return rule if isinstance(rule, Mapping) else {}


def variables_of(element: ChainElement) -> Mapping[str, Any]:
    """The variables that the ``env_config`` of an element sets."""
    variables = (element.metadata.env_config or {}).get("env")
    return variables if isinstance(variables, Mapping) else {}


def interpreter_variables(chain: Sequence[ChainElement]) -> dict[str, ChainElement]:
    """The variables that ``env_config`` sets to an interpreter, each with the nearest element."""
    found: dict[str, ChainElement] = {}
    for element in chain:
        variable = interpreter_of(element).get("var")
        if isinstance(variable, str):
            found.setdefault(variable, element)
    return found


def merged_templates(chain: Sequence[ChainElement], anchor: Anchor | None) -> dict[str, Any]:
    """Merge mappings key by key; for other values, the element nearest to the tool wins."""
    merged: dict[str, Any] = {}
    for level in reversed(range(len(chain))):
        merged = _overlay(merged, chain[level].metadata.config)
        if anchor is not None and anchor.cwd is not None and level == anchor.level:
            merged["cwd"] = f"{{{ANCHOR_CWD}}}"
    return merged


def _overlay(base: Mapping[str, Any], override: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in override.items():
        below = result.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            result[key] = _overlay(below, value)
        else:
            result[key] = value
    return result


def _files(chain: Sequence[ChainElement]) -> dict[str, str]:
    files: dict[str, str] = {}
    for element in reversed(chain):
        file = "" if element.path is None else str(element.path)
        files.update(dict.fromkeys(element.metadata.config, file))
    tool = chain[0].path
    return files if tool is None else {**files, "": str(tool)}


def _injected(
    chain: Sequence[ChainElement], anchor: Anchor | None, context: Context
) -> dict[str, str]:
    names = place_names(chain, context)
    names["tool_integrity"] = chain[0].integrity
    names[TOOL_TYPE] = chain[0].metadata.tool_type
    names[COMPILED] = ""
    if anchor is not None:
        names["anchor_path"] = str(anchor.path)
        if anchor.cwd is not None:
            names[ANCHOR_CWD] = str(anchor.cwd)
    return names


def _settings(primitive: ChainElement, config: Mapping[str, Any]) -> frozenset[str]:
    """The keys that the primitive reads."""
    known = _SETTINGS.get(primitive.item_id)
    if known is None:
        schema = primitive.metadata.config_schema or {}
        known = frozenset(schema.get("properties") or config)
    return known
