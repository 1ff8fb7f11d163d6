"""Results and typed errors as MCP content.

Text is sent once, as `rye run` prints it. An object is structured content too. A failure is a text
and, as structured content, what a program needs to know about it; the output is only in the text.

What lifts a protection is for the user: an agent reads that the user decides, and the command that
would allow a call is logged.

Values are made encodable first: an unencodable value would leave a call without its result.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from shlex import quote
from typing import Any

from lilux.record import replaced

import rye.errors
from rye.executor.run.result import ExecutionResult
from rye.mcp.budget import DEFAULT_BUDGET, MIN_BUDGET, Fitted, Text, fit
from rye.mcp.media import Media, blocks_of, blocks_of_server, media_content
from rye.mcp.outputs import Outputs
from rye.mcp.protocol.errors import INTERNAL_ERROR, ProtocolError
from rye.mcp.protocol.types import (
    CallToolResult,
    Content,
    EmbeddedResource,
    ResourceLink,
    TextContent,
)

# Metadata of a failed call that is passed on beside its type, message and hint.
_PASSED_ON = ("issues", "nearest", "lockfile", "return_code", "signal", "timed_out", "status_code")
_logger = logging.getLogger("rye.mcp")
_ASK_THE_USER = "the user decides about that: show them this error"
_OUTPUT = ("stdout", "stderr", "return_code")
_MAX_DEPTH = 100
# Older clients do not know links, and would reject the whole result.
_WITHOUT_LINKS = ("2024-11-05", "2025-03-26")


class Presenter:
    """Makes the content of results, and keeps what does not fit into them."""

    def __init__(self, outputs: Outputs) -> None:
        self._outputs = outputs

    def result(
        self,
        result: ExecutionResult,
        budget: int = DEFAULT_BUDGET,
        *,
        version: str = "",
        media: Media | None = None,
    ) -> CallToolResult:
        """Return content for the result of a call by a client of this version.

        ``media`` says which files of the call may be sent.
        """
        links: list[Content] = []
        if result.raw_stdout is not None and _is_output(result):
            note, links = self._bytes(result, version)
            result = replaced(result, data={**result.data, "stdout": note})
        if media is not None and result.success:
            blocks, structured = _blocks_of(result)
            if blocks is not None:
                return self._blocks(media_content(blocks, media), structured, budget, version)
        if "plan" in result.metadata and isinstance(result.data, dict):
            # The names of the environment are many, and say nothing about this tool.
            plan = {key: value for key, value in result.data.items() if key != "environment"}
            return self._sent(Text(stdout=_text_of(plan)), plan, budget, version)
        if result.success:
            structured = _structured(result.data)
            return self._sent(_success_text(result), structured, budget, version, links)
        message, hint = _for_agents(result.error or "the tool failed", result.metadata)
        metadata = result.metadata
        if result.chain:
            _log_what_it_lacked(str(result.chain[0]["item_id"]), metadata)
        error = {
            "type": str(metadata.get("error_type", "ToolFailed")),
            "message": message,
            "hint": hint,
            **{key: metadata[key] for key in _PASSED_ON if metadata.get(key) is not None},
        }
        text = _failure_text(message, result)
        return self._sent(text, {"error": error}, budget, version, links, is_error=True)

    def _blocks(
        self,
        blocks: Iterable[Content],
        structured: dict[str, Any] | None,
        budget: int,
        version: str,
    ) -> CallToolResult:
        """All texts of the blocks share the budget, also those of embedded files."""
        content: list[Content] = []
        rest: list[str] = []
        if structured is not None and len(_json_text(structured)) > budget:
            structured = None
        for one in blocks:
            text = _text_in(one)
            if isinstance(one, ResourceLink) and version in _WITHOUT_LINKS:
                text = one.uri
            if text is None or (len(text) <= budget and isinstance(one, EmbeddedResource)):
                content.append(one)
                budget -= len(text or "")
            elif len(text) > budget and budget < MIN_BUDGET:
                rest.append(text)
            else:
                fitted = fit(Text(stdout=text), budget, self._outputs)
                budget -= len(fitted.text)
                structured = None if fitted.is_cut else structured
                content += self._texts(fitted, version)
        if rest:
            content += self._texts(
                fit(Text(stdout="\n".join(rest)), MIN_BUDGET, self._outputs), version
            )
        return CallToolResult(
            content=content, structured_content=_encodable(structured), is_error=False
        )

    def _texts(self, fitted: Fitted, version: str) -> Iterator[Content]:
        """The text, and links to what was left out."""
        yield TextContent(text=encodable_text(fitted.text))
        if fitted.output_id and version not in _WITHOUT_LINKS:
            for name in fitted.streams:
                uri = f"rye://outputs/{fitted.output_id}/{name}"
                yield ResourceLink(uri=uri, name=name, mime_type="text/plain")

    def _bytes(self, result: ExecutionResult, version: str) -> tuple[str, list[Content]]:
        """What stands for output that is not text, and the link to it."""
        data = result.raw_stdout or b""
        try:
            output_id = self._outputs.keep({"stdout": data})
        except OSError:
            output_id = ""
        uri = f"rye://outputs/{output_id}/stdout"
        where = f"; they are kept as {uri}" if output_id else ""
        note = f"[the tool printed {len(data):,} bytes that are not text{where}]"
        if not output_id or version in _WITHOUT_LINKS:
            return note, []
        kind = "application/octet-stream"
        return note, [ResourceLink(uri=uri, name="stdout", mime_type=kind)]

    def error(self, error: Exception) -> CallToolResult:
        """Return content for an exception; an unexpected one is reduced to its type and place."""
        from rye.executor.run.failure import failure_of

        outcome = failure_of(error)
        return self.result(
            ExecutionResult(success=False, error=outcome.error, metadata=outcome.metadata)
        )

    def success(self, data: Any) -> CallToolResult:
        """Return content for what a built-in tool returns."""
        return self._sent(Text(stdout=_text_of(data)), _structured(data), DEFAULT_BUDGET, "")

    def _sent(
        self,
        text: Text,
        structured: dict[str, Any] | None,
        budget: int,
        version: str,
        links: Iterable[Content] = (),
        *,
        is_error: bool = False,
    ) -> CallToolResult:
        fitted = fit(text, budget, self._outputs)
        content = [*self._texts(fitted, version), *links]
        if fitted.is_cut and not is_error:
            # An object that does not fit as text does not fit as an object either.
            structured = None
        return CallToolResult(
            content=content, structured_content=_encodable(structured), is_error=is_error
        )


def _blocks_of(
    result: ExecutionResult,
) -> tuple[list[Mapping[str, Any]] | None, dict[str, Any] | None]:
    """The blocks of a result, if it has some, and the object beside them."""
    if "return_code" in result.metadata:
        return blocks_of(result.data), None
    given = result.metadata.get("content")
    if given is None:
        return None, None
    beside = None if result.data == {"content": given} else _structured(result.data)
    return blocks_of_server(given), beside


def _text_in(block: Content) -> str | None:
    if isinstance(block, EmbeddedResource):
        return block.resource.text
    return block.text if isinstance(block, TextContent) else None


def _structured(data: Any) -> dict[str, Any] | None:
    return data if isinstance(data, dict) and tuple(data) != _OUTPUT else None


def _success_text(result: ExecutionResult) -> Text:
    not_kept = sum(result.metadata.get("truncated", {}).values()) if _is_output(result) else 0
    if _is_output(result):
        return Text(stdout=result.data["stdout"], stderr=result.data["stderr"], not_kept=not_kept)
    printed = result.metadata.get("stdout")
    if isinstance(result.data, str):
        # As a runtime returns text: as one JSON string.
        line_end = "" if printed is None or result.data.endswith("\n") else "\n"
        return Text(stdout=result.data + line_end)
    return Text(stdout=printed or _text_of(result.data))


def _failure_text(message: str, result: ExecutionResult) -> Text:
    """Say each thing once: the last line of stderr is also part of the message."""
    if result.data is None:
        return Text(message)
    if not _is_output(result):
        return Text(message, stdout=_text_of(result.data))
    stdout, stderr = str(result.data["stdout"]), str(result.data["stderr"])
    lines = stderr.rstrip().splitlines()
    last = lines[-1].strip() if lines else ""
    if last and message.endswith(f": {last}"):
        message = message.removesuffix(f": {last}")
    elif last and last in message:
        stderr = "\n".join(lines[:-1])
    not_kept = sum(result.metadata.get("truncated", {}).values())
    return Text(message, stdout, stderr, not_kept)


def _is_output(result: ExecutionResult) -> bool:
    return isinstance(result.data, Mapping) and tuple(result.data) == _OUTPUT


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
    if decided:
        _logger.warning("%s", message)
    if own := metadata.get("agent_error"):
        return f"{own}; {ask}", ask
    if not ask:
        return message, hint
    return message.replace(hint, ask) if hint else f"{message}; {ask}", ask


def _log_what_it_lacked(item_id: str, metadata: Mapping[str, Any]) -> None:
    """Log for the user how a failed tool gets what it lacked, without the values that it used."""
    from rye.permissions.denials import USER_DECIDES

    if "denied" in metadata:
        _logger.warning(
            "%r tried something that its permissions do not include; see: rye permissions %s",
            item_id,
            quote(item_id),
        )
    if str(metadata.get("agent_hint", "")).endswith(USER_DECIDES):
        _logger.warning("%s", metadata["hint"])


def encodable_text(text: str) -> str:
    """Replace unpaired surrogates, as in a file name that is not UTF-8, with question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _text_of(data: Any) -> str:
    return data if isinstance(data, str) else _json_text(data)


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
