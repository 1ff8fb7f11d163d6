"""The server's own tools, which are all that an agent has to know at first."""

from __future__ import annotations

from typing import Any, Final

from mcp import types

SEARCH, SHOW, EXECUTE, SIGN = "search", "show", "execute", "sign"

INSTRUCTIONS: Final = """\
Rye runs signed tools that live in a project's .ai/tools folder. There may be many, so most are not
listed here. Find one with `search` (plain words), read its parameters with `show`, and run it with
`execute` (item_id, parameters). Tools that are listed under their own names can be called
directly. A failed call says what went wrong and what to do next; a tool that is refused by its
signature or its lockfile must be mended by the user."""

_ITEM_ID: Final = {
    "type": "string",
    "minLength": 1,
    "description": "The tool's id as search gives it, like folder/name.",
}


def _schema(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


_READS_ONLY = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)

_SEARCH_TOOL = types.Tool(
    name=SEARCH,
    title="Find tools",
    description="Find tools by words, over their ids, descriptions and parameters. Best hits "
    "first. No words at all list what there is.",
    input_schema=_schema(
        {
            "query": {"type": "string", "description": "Words, for example: read file"},
            "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10},
        },
        "query",
    ),
    output_schema={
        "type": "object",
        "properties": {
            "tools": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "item_id": {"type": "string"},
                        "description": {"type": "string"},
                        "parameters": {"type": "array", "items": {"type": "string"}},
                    },
                    "required": ["item_id", "description", "parameters"],
                },
            }
        },
        "required": ["tools"],
    },
    annotations=_READS_ONLY,
)

_SHOW_TOOL = types.Tool(
    name=SHOW,
    title="Show a tool",
    description="What a tool does, the JSON Schema of its parameters, and an example call.",
    input_schema=_schema({"item_id": _ITEM_ID}, "item_id"),
    annotations=_READS_ONLY,
)

_EXECUTE_TOOL = types.Tool(
    name=EXECUTE,
    title="Run a tool",
    description="Run a tool by its id. Its signature, its lockfile and the parameters are checked "
    "first; what it says comes back, or what went wrong and what to do.",
    input_schema=_schema(
        {
            "item_id": _ITEM_ID,
            "parameters": {
                "type": "object",
                "description": "What the tool's schema asks for; see show.",
            },
            "timeout": {
                "type": "number",
                "exclusiveMinimum": 0,
                "description": "Seconds after which the tool and all that it started are ended.",
            },
            "dry_run": {
                "type": "boolean",
                "description": "Do every check and give the plan, but run nothing.",
            },
        },
        "item_id",
    ),
    # It can do whatever the tools can.
    annotations=types.ToolAnnotations(
        read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True
    ),
)

_SIGN_TOOL = types.Tool(
    name=SIGN,
    title="Sign a tool",
    description="Sign a tool of the project or the user with the user's key, so that it may run.",
    input_schema=_schema({"item_id": _ITEM_ID}, "item_id"),
    annotations=types.ToolAnnotations(
        read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
    ),
)

# A tool of this name cannot be listed, whether signing is allowed or not.
RESERVED: Final = frozenset({SEARCH, SHOW, EXECUTE, SIGN})


def own_tools(*, allow_sign: bool) -> tuple[types.Tool, ...]:
    """In the order in which an agent needs them."""
    tools = (_SEARCH_TOOL, _SHOW_TOOL, _EXECUTE_TOOL)
    return (*tools, _SIGN_TOOL) if allow_sign else tools
