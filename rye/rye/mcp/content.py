"""Results as MCP content: the one place where a result or a typed error becomes text for an agent.

Structured content is always an object, as the 2025 revisions ask; whatever is not one is put under
``result``. The text says the same: plain output as it is, everything else as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp import types
from mcp.shared.exceptions import MCPError

from rye.executor.run.result import ExecutionResult
from rye.mcp.speakable import json_text, speakable, speakable_text

# What a failure carries beside its type, its message and what to do.
_CARRIED = ("issues", "nearest", "lockfile", "return_code", "signal", "timed_out", "status_code")
_OUTPUT = ("stdout", "stderr", "return_code")


def success(data: Any, *, spelling: str | None = None) -> types.CallToolResult:
    """Content for what a tool gave; ``spelling`` is the text of a number such as ``1.10``."""
    structured = data if isinstance(data, dict) else {"result": data}
    return _result(_text_of(data) if spelling is None else spelling, structured)


def failure(
    message: str, *, error_type: str, hint: str = "", data: Any = None, **carried: Any
) -> types.CallToolResult:
    """Content for what went wrong, with what the tool had said until then."""
    error = {"type": error_type, "message": message, "hint": hint, **carried}
    structured: dict[str, Any] = {"error": error}
    text = message
    if data is not None:
        structured["data"] = data
        said = _text_of(data)
        text = f"{message}\n\n{said}" if said else message
    return _result(text, structured, is_error=True)


def content_of(result: ExecutionResult) -> types.CallToolResult:
    """Content for the end of a call, good or bad."""
    if result.success:
        return success(result.data, spelling=result.metadata.get("stdout"))
    metadata = result.metadata
    return failure(
        result.error or "the tool failed",
        error_type=str(metadata.get("error_type", "ToolFailed")),
        hint=str(metadata.get("hint") or ""),
        data=result.data,
        **{key: metadata[key] for key in _CARRIED if metadata.get(key) is not None},
    )


def failure_content(error: Exception) -> types.CallToolResult:
    """Content for an exception; one that nobody foresaw is told by its type and place alone."""
    from rye.executor.run.failure import failure_of

    outcome = failure_of(error)
    return content_of(
        ExecutionResult(success=False, error=outcome.error, metadata=outcome.metadata)
    )


def protocol_error(error: Exception) -> MCPError:
    """For requests whose answer has no place for an error."""
    from rye.executor.run.failure import failure_of

    told = failure_of(error).error or type(error).__name__
    return MCPError(code=types.INTERNAL_ERROR, message=speakable_text(told))


def _result(text: str, structured: Any, *, is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=speakable_text(text))],
        structured_content=speakable(structured),
        is_error=is_error,
    )


def _text_of(data: Any) -> str:
    """Plain output as it is, a text as it is, everything else as JSON."""
    if isinstance(data, str):
        return data
    if isinstance(data, Mapping) and tuple(data) == _OUTPUT:
        stdout, stderr = str(data["stdout"]), str(data["stderr"])
        if not stderr.strip():
            return stdout
        return f"{stdout.rstrip()}\n\nstderr:\n{stderr}".lstrip()
    return json_text(data)
