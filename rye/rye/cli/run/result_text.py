"""The end of a call for people: the exit code, what went wrong, and what is worth knowing."""

from __future__ import annotations

from rye.cli.output.errors import OTHER, TIMEOUT, exit_code_of_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from rye.executor.run.result import ExecutionResult


def fields_of(result: ExecutionResult) -> dict[str, Any]:
    """The result for programs, under its own field names."""
    return {
        "success": result.success,
        "data": result.data,
        "error": result.error,
        "duration_ms": result.duration_ms,
        "chain": list(map(dict, result.chain)),
        "metadata": dict(result.metadata),
    }


def exit_code_of(result: ExecutionResult) -> int:
    """0 for success; else by the kind of the error, or the tool's own."""
    if result.success:
        return 0
    error_type = result.metadata.get("error_type")
    if result.metadata.get("timed_out"):
        return TIMEOUT
    if error_type == "ToolFailed":
        own = result.metadata.get("return_code")
        return own if isinstance(own, int) and 0 < own < 256 else OTHER
    return exit_code_of_name(str(error_type))


def failure_text(result: ExecutionResult) -> str:
    """What went wrong. What the tool itself said of it was shown as it came."""
    metadata = result.metadata
    if metadata.get("error_type") != "ToolFailed" or not result.chain:
        return result.error or "the tool failed"
    name = result.chain[0]["item_id"]
    number = metadata.get("signal")
    end = f"signal {number}" if number else f"exit code {metadata.get('return_code')}"
    return f"{name!r} ended with {end}"


def notes_of(result: ExecutionResult) -> Iterator[str]:
    """What a user would want to know although the tool did its work."""
    metadata = result.metadata
    if ended := metadata.get("background_ended"):
        one = ended == 1
        processes = "1 background process" if one else f"{ended} background processes"
        yield f"{processes} outlived the tool and {'was' if one else 'were'} ended"
    if survivors := metadata.get("survivors"):
        listed = ", ".join(map(str, survivors))
        yield f"could not end what the tool had started (process {listed}); see `ps`"
    if fault := metadata.get("lockfile_error"):
        yield f"the tool ran, but could not be pinned: {fault}"
