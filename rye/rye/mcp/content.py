"""Results and typed errors as MCP content, in text and in structured form.

Structured content is always an object, as the 2025 revisions require; any other value is put under
``result``. The text has the same information: plain output unchanged, everything else as JSON.

Values are made encodable first: an unencodable value would leave a call without its result.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import rye.errors
from rye.executor.run.result import ExecutionResult
from rye.mcp.protocol.errors import INTERNAL_ERROR, ProtocolError
from rye.mcp.protocol.types import CallToolResult, TextContent

# Metadata of a failed call that is passed on beside its type, message and hint.
_PASSED_ON = ("issues", "nearest", "lockfile", "return_code", "signal", "timed_out", "status_code")
_ASK_THE_USER = "the user decides about that: show them this error"
_OUTPUT = ("stdout", "stderr", "return_code")
_MAX_DEPTH = 100


def success(data: Any, *, text: str | None = None) -> CallToolResult:
    """Return content for a successful call; ``text`` keeps a number like ``1.10`` as printed."""
    structured = data if isinstance(data, dict) else {"result": data}
    return _result(_text_of(data) if text is None else text, structured)


def failure(
    message: str, *, error_type: str, hint: str = "", data: Any = None, **fields: Any
) -> CallToolResult:
    """Return content for a failed call, with any output that the tool produced before."""
    error = {"type": error_type, "message": message, "hint": hint, **fields}
    structured: dict[str, Any] = {"error": error}
    text = message
    if data is not None:
        structured["data"] = data
        output = _text_of(data)
        text = f"{message}\n\n{output}" if output else message
    return _result(text, structured, is_error=True)


def result_content(result: ExecutionResult) -> CallToolResult:
    """Return content for the result of a call."""
    if result.success:
        return success(result.data, text=result.metadata.get("stdout"))
    metadata = result.metadata
    message, hint = _for_agents(result.error or "the tool failed", metadata)
    return failure(
        message,
        error_type=str(metadata.get("error_type", "ToolFailed")),
        hint=hint,
        data=result.data,
        **{key: metadata[key] for key in _PASSED_ON if metadata.get(key) is not None},
    )


def error_content(error: Exception) -> CallToolResult:
    """Return content for an exception; an unexpected one is reduced to its type and location."""
    from rye.executor.run.failure import failure_of

    outcome = failure_of(error)
    return result_content(
        ExecutionResult(success=False, error=outcome.error, metadata=outcome.metadata)
    )


def protocol_error(error: Exception) -> ProtocolError:
    """Return an exception as a protocol error, for results that cannot contain an error."""
    from rye.executor.run.failure import failure_of

    outcome = failure_of(error)
    message, _ = _for_agents(outcome.error or type(error).__name__, outcome.metadata)
    return ProtocolError(INTERNAL_ERROR, encodable_text(message))


def _for_agents(message: str, metadata: Mapping[str, Any]) -> tuple[str, str]:
    """The message and the hint of a failure, without a command if the user decides about it."""
    hint = str(metadata.get("hint") or "")
    kind = getattr(rye.errors, str(metadata.get("error_type")), None)
    decided = getattr(kind, "decided_by_user", False)
    ask = metadata.get("agent_hint") or (_ASK_THE_USER if decided else "")
    if not ask:
        return message, hint
    return message.replace(hint, ask) if hint else f"{message}; {ask}", ask


def encodable_text(text: str) -> str:
    """Replace unpaired surrogates, as in a file name that is not UTF-8, with question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _result(text: str, structured: Any, *, is_error: bool = False) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(text=encodable_text(text))],
        structured_content=_encodable(structured),
        is_error=is_error,
    )


def _text_of(data: Any) -> str:
    if isinstance(data, str):
        return data
    if isinstance(data, Mapping) and tuple(data) == _OUTPUT:
        stdout, stderr = str(data["stdout"]), str(data["stderr"])
        if not stderr.strip():
            return stdout
        return f"{stdout.rstrip()}\n\nstderr:\n{stderr}".lstrip()
    return _json_text(data)


def _encodable(value: Any, *, depth: int = 0) -> Any:
    """Return the value as JSON types; text replaces parts that JSON lacks or that are too deep."""
    if isinstance(value, str):
        return encodable_text(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if depth >= _MAX_DEPTH:
        return _json_text(value)
    if isinstance(value, Mapping):
        return {
            encodable_text(str(key)): _encodable(one, depth=depth + 1) for key, one in value.items()
        }
    if isinstance(value, list | tuple):
        return [_encodable(one, depth=depth + 1) for one in value]
    return encodable_text(str(value))


def _json_text(value: Any) -> str:
    import json

    try:
        return encodable_text(json.dumps(value, ensure_ascii=False, default=str))
    except (RecursionError, ValueError):
        return "(nested too deeply to show)"
