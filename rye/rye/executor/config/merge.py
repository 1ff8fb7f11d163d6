"""What of an execution config does not depend on a call: the merged templates and their context.

Made once for each chain and anchor, so that a call only fills in its parameters and environment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lilux.record import Record, field

from rye.context import Context
from rye.executor.chain.anchor import Anchor, place_names
from rye.executor.config.templates import ANCHOR_CWD, RESERVED, declared_parameters, mentions
from rye.items.element import ChainElement
from rye.spaces.ids import HTTP_CLIENT, SUBPROCESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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


class ConfigPlan(Record, frozen=True, kw_only=True):
    """The config of a chain as its authors wrote it, and what its templates may name."""

    chain: Sequence[ChainElement]
    templates: Mapping[str, Any]
    """Merged from the primitive up to the tool."""
    settings: frozenset[str]
    """The keys that the primitive reads; all others are values of the author's own."""
    injected: Mapping[str, str] = field(repr=False)
    declared: frozenset[str] | None
    """Names of parameters in the tool's schema; ``None`` if that leaves it open."""
    programs: frozenset[str]
    """The variables that hold a program of the chain, which is no secret."""
    refers_to_itself: bool
    """Whether a template names a value of the config."""
    is_literal: bool
    """Whether no parameter has a part in what is run."""

    @property
    def tool(self) -> str:
        """The id of the tool."""
        return self.chain[0].item_id

    @property
    def primitive(self) -> str:
        """The id of the primitive."""
        return self.chain[-1].item_id


def plan_config(
    chain: Sequence[ChainElement], anchor: Anchor | None, context: Context
) -> ConfigPlan:
    """Merge the configs of the chain; raises :class:`AnchorError` for a library that is not
    there."""
    merged = _merged(chain, anchor)
    settings = _settings(chain[-1], merged)
    names = [f"{{{key}}}" for key in merged if key not in RESERVED]
    refers_to_itself = mentions(merged, names)
    read = [value for key, value in merged.items() if key in settings]
    return ConfigPlan(
        chain=chain,
        templates=merged,
        settings=settings,
        injected=_injected(chain, anchor, context),
        declared=declared_parameters(chain[0]),
        programs=interpreter_variables(chain),
        refers_to_itself=refers_to_itself,
        # A primitive by itself, or one of another package, gets the parameters as they are.
        is_literal=len(chain) > 1 and chain[-1].item_id == SUBPROCESS and not mentions(read, ["{"]),
    )


def interpreter_variables(chain: Sequence[ChainElement]) -> frozenset[str]:
    """The variables that hold a program of the chain, which is no secret."""
    rules = [(element.metadata.env_config or {}).get("interpreter") for element in chain]
    return frozenset(str(one.get("var", "")) for one in rules if isinstance(one, Mapping))


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


def _settings(primitive: ChainElement, config: Mapping[str, Any]) -> frozenset[str]:
    """The keys that the primitive reads; all others are values of the author's own."""
    known = _SETTINGS.get(primitive.item_id)
    if known is None:
        schema = primitive.metadata.config_schema or {}
        known = frozenset(schema.get("properties") or config)
    return known
