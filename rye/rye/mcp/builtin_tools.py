"""The tools that the server itself provides: their definitions, and which arguments they take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rye.errors import ParameterError
from rye.mcp.budget import MIN_BUDGET
from rye.mcp.protocol.types import Tool, ToolAnnotations

SEARCH, SHOW, EXECUTE, OUTPUT, SIGN = "search", "show", "execute", "output", "sign"

INSTRUCTIONS: Final = """\
Rye runs signed tools from a project's .ai/tools directory. Most of them are not listed here. Find
one with `search` (plain words), read its parameters with `show`, and run it with `execute`
(item_id, parameters). Tools that are listed under their own names can be called directly. A failed
call says what went wrong and what to do next. The user decides about signatures, lockfiles and
permissions: show them an error about these."""

_ITEM_ID: Final = {
    "type": "string",
    "minLength": 1,
    "description": "The tool's id as returned by search, for example folder/name.",
}


def _schema(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


_READ_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)

_SEARCH_TOOL = Tool(
    name=SEARCH,
    title="Find tools",
    description="Find tools by words in their ids, descriptions and parameters, best match first. "
    "An empty query lists all tools.",
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
            },
            "total": {"type": "integer"},
            "next": {"type": "string"},
        },
        "required": ["tools", "total", "next"],
    },
    annotations=_READ_ONLY,
)

_SHOW_TOOL = Tool(
    name=SHOW,
    title="Show a tool",
    description="Show what a tool does, the JSON Schema of its parameters, and an example call.",
    input_schema=_schema({"item_id": _ITEM_ID}, "item_id"),
    annotations=_READ_ONLY,
)

_EXECUTE_TOOL = Tool(
    name=EXECUTE,
    title="Run a tool",
    description="Run a tool by its id. Its signature, lockfile and parameters are checked first. "
    "Returns the tool's result, or what went wrong and what to do.",
    input_schema=_schema(
        {
            "item_id": _ITEM_ID,
            "parameters": {
                "type": "object",
                "description": "Parameters that match the tool's schema; see show.",
            },
            "timeout": {
                "type": "number",
                "exclusiveMinimum": 0,
                "description": "Seconds after which the tool and all its processes are ended.",
            },
            "dry_run": {
                "type": "boolean",
                "description": "Run all checks and return the plan, but do not run the tool.",
            },
            "max_output": {
                "type": "integer",
                "minimum": MIN_BUDGET,
                "description": "Characters of output to return at most; more can be read later.",
            },
        },
        "item_id",
    ),
    # The hints cover everything that any tool may do.
    annotations=ToolAnnotations(
        read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True
    ),
)

_OUTPUT_TOOL = Tool(
    name=OUTPUT,
    title="Read cut output",
    description="Read lines of an output that was cut; its id is in the first line of the result.",
    input_schema=_schema(
        {
            "id": {"type": "string", "minLength": 1},
            "stream": {"type": "string", "enum": ["stdout", "stderr"], "default": "stdout"},
            "offset": {"type": "integer", "minimum": 0, "description": "Lines to skip."},
            "limit": {"type": "integer", "minimum": 1, "maximum": 10_000, "default": 200},
            "grep": {
                "type": "string",
                "minLength": 1,
                "description": "Only lines that contain this text.",
            },
            "tail": {"type": "integer", "minimum": 1, "maximum": 10_000},
        },
        "id",
    ),
    annotations=_READ_ONLY,
)

_SIGN_TOOL = Tool(
    name=SIGN,
    title="Sign a tool",
    description="Sign a tool of the project or the user with the user's key, so that it may run.",
    input_schema=_schema({"item_id": _ITEM_ID}, "item_id"),
    annotations=ToolAnnotations(
        read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
    ),
)

# Item names that are never listed, even if signing is not allowed.
RESERVED: Final = frozenset({SEARCH, SHOW, EXECUTE, OUTPUT, SIGN})


def builtin_tools(*, allow_sign: bool) -> tuple[Tool, ...]:
    """Return the definitions, in the order in which an agent needs them."""
    tools = (_SEARCH_TOOL, _SHOW_TOOL, _EXECUTE_TOOL, _OUTPUT_TOOL)
    return (*tools, _SIGN_TOOL) if allow_sign else tools


def valid_arguments(tool: Tool, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call of a built-in tool. Raises :class:`ParameterError`."""
    # Many models send null for an argument that they leave out.
    arguments = {key: _whole(value) for key, value in given.items() if value is not None}
    from lilux.schemas.plain import surely_valid

    if surely_valid(arguments, tool.input_schema):
        return arguments
    from lilux.schemas.schema_validator import validate_parameters

    verdict = validate_parameters(arguments, tool.input_schema)
    if not verdict.valid:
        from rye.executor.run.parameters import meant_names

        meant = meant_names(arguments, tool.input_schema)
        raise ParameterError(
            f"invalid arguments for {tool.name!r}",
            verdict.errors,
            hint=f"{meant}call it with arguments that match its schema",
        )
    return arguments


def _whole(value: Any) -> Any:
    """For JSON Schema, 2.0 is an integer."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
