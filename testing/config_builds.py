"""Build execution configs of small chains, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rye.executor.chain.anchor import resolve_anchor
from rye.executor.config.build import ExecutionConfig, build_execution_config
from rye.items.element import ChainElement
from rye_elements import Workshop


def tool_file(workshop: Workshop) -> Path:
    """The file of the tool in :func:`one_tool`."""
    return workshop.tools("project") / "a" / "tool.py"


def one_tool(workshop: Workshop, config: dict[str, Any], **metadata: Any) -> list[ChainElement]:
    """A chain of the tool ``a/tool`` and the subprocess primitive."""
    return [workshop.element("a/tool.py", config=config, **metadata), workshop.primitive()]


def build(
    workshop: Workshop,
    chain: list[ChainElement],
    parameters: dict[str, Any] | None = None,
    env: dict[str, str] | None = None,
    **options: Any,
) -> ExecutionConfig:
    """The config of the chain, in an environment with the variable ``SECRET``."""
    anchor = resolve_anchor(chain, workshop.context)
    variables = {"SECRET": "hunter2", **(env or {})}
    return build_execution_config(
        chain, parameters or {}, variables, anchor, workshop.context, **options
    )


def args(workshop: Workshop, templates: list[Any], parameters: dict[str, Any]) -> list[str]:
    """The rendered ``args`` of a tool."""
    chain = one_tool(workshop, {"command": "x", "args": templates})
    result: list[str] = build(workshop, chain, parameters).config["args"]
    return result
