"""Turns the result of a primitive into the outcome of a call.

The ``error_type`` of a failed run is not the name of an exception: ``ToolFailed`` (exit code or
signal), ``ToolTimedOut``, ``ToolNotStarted``, ``RequestFailed`` (HTTP) or ``PrimitiveFailed``
(others).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence

from lilux.record import Record, field, replaced

from rye.executor.config.build import MCP_TOOL
from rye.executor.run.confine import not_enforced
from rye.items.element import ChainElement
from rye.spaces.ids import HTTP_CLIENT, SUBPROCESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lilux.primitives.http_client.result import HttpResult
    from lilux.primitives.subprocess.confinement import ConfinementReport
    from lilux.primitives.subprocess.result import SubprocessResult

    from rye.executor.config.build import ExecutionConfig

_JSON_BEGINS_WITH = frozenset('{["-0123456789tfn')
_MAX_QUOTED = 500
_NO_JSON = object()
_NOT_ENFORCED = "the confinement cannot be enforced here: "
_NOT_FINITE = (float("inf"), float("-inf"))


class Outcome(Record, frozen=True, kw_only=True):
    """The part of an ``ExecutionResult`` that comes from the primitive."""

    success: bool
    data: Any
    error: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    raw_stdout: bytes | None = None
    readable: tuple[str, ...] | None = None


def outcome_of(config: ExecutionConfig, result: Any, chain: Sequence[ChainElement]) -> Outcome:
    """The outcome of the call of ``chain[0]``, whose primitive returned ``result``."""
    if MCP_TOOL in config.config:
        from rye.executor.run.upstream import upstream_outcome

        return upstream_outcome(result, chain)
    if config.primitive_id == SUBPROCESS:
        if result.tree_known_by == "not_started":
            result = replaced(result, stderr=config.scrubbed(result.stderr))
        outcome = _of_process(result, config.config, chain)
    elif config.primitive_id == HTTP_CLIENT:
        outcome = _of_request(result, chain)
    else:
        outcome = _of_other(result, chain[0].item_id)
    if config.primitive_id == SUBPROCESS:
        confinement = config.config.get("confinement")
        outcome = replaced(
            outcome,
            raw_stdout=result.raw_stdout,
            readable=None if confinement is None else _readable(confinement),
        )
    if config.enforced is None:
        return outcome
    return _with_confinement(outcome, config, getattr(result, "confinement", None))


def _readable(confinement: Any) -> tuple[str, ...]:
    return tuple([os.fspath(path) for path in (*confinement.read, *confinement.write)])


def _with_confinement(
    outcome: Outcome, config: ExecutionConfig, report: ConfinementReport | None
) -> Outcome:
    """Add what was enforced to the metadata, unless the process was not started."""
    if report is None and config.primitive_id == SUBPROCESS:
        return outcome
    enforced = {**(config.enforced or {}), **({} if report is None else report.enforced)}
    missing = [*config.missing, *(() if report is None else report.missing)]
    for one in missing:
        enforced.pop(one.part, None)
    listed = [{"part": one.part, "reason": one.reason} for one in missing]
    note = {"enforced": enforced, "missing": listed}
    return replaced(outcome, metadata={**outcome.metadata, "confinement": note})


def _of_process(
    result: SubprocessResult, config: Mapping[str, Any], chain: Sequence[ChainElement]
) -> Outcome:
    metadata: dict[str, Any] = {"return_code": result.return_code}
    notes = {
        "timed_out": result.timed_out,
        "signal": result.signal,
        "truncated": {
            name: left_out
            for name, left_out in (
                ("stdout", result.truncated_stdout),
                ("stderr", result.truncated_stderr),
            )
            if left_out
        },
        "background_ended": result.background_ended,
        "survivors": list(result.survivors),
        "output_error": result.output_error,
        "autopsy": result.autopsy,
        "limit": result.limit,
    }
    metadata.update((name, note) for name, note in notes.items() if note)
    data = _NO_JSON if result.truncated_stdout else _parse_json(result.stdout)
    if data is _NO_JSON:
        data = {
            "stdout": result.stdout,
            "stderr": result.stderr,
            "return_code": result.return_code,
        }
    else:
        if result.stderr:
            metadata["stderr"] = result.stderr
        if not isinstance(data, dict | list):
            # A number loses its spelling: 1.10 may be a version.
            metadata["stdout"] = result.stdout
    if result.success:
        return Outcome(success=True, data=data, metadata=metadata)
    error_type, error, hint = _process_failure(result, config, chain)
    metadata.update(error_type=error_type, hint=hint)
    error = f"{error}; {hint}" if hint else error
    if result.autopsy is not None:
        from rye.executor.run.autopsy import autopsy_lines

        error = "\n".join((error, *autopsy_lines(result.autopsy)))
    return Outcome(success=False, data=data, error=error, metadata=metadata)


def _process_failure(
    result: SubprocessResult, config: Mapping[str, Any], chain: Sequence[ChainElement]
) -> tuple[str, str, str]:
    name = repr(chain[0].item_id)
    last_line = _last_line(result.stderr)
    if result.timed_out:
        return "ToolTimedOut", f"{name}: {last_line}", "raise the timeout, or reduce the work"
    if result.tree_known_by == "not_started":
        if _NOT_ENFORCED in last_line:
            refused = not_enforced(chain[0].item_id, last_line.partition(_NOT_ENFORCED)[2])
            return type(refused).__name__, refused.reason, refused.hint
        error_type, hint = _not_started(config, chain)
        return error_type, f"{name} could not be started: {last_line}", hint
    if result.limit:
        error = f"{name} was ended: {last_line.removeprefix('Command ended: ')}"
        return "ToolFailed", error, f"see permissions.limits.{result.limit} of the tool"
    end = f"signal {result.signal}" if result.signal else f"exit code {result.return_code}"
    return "ToolFailed", f"{name} ended with {end}" + (f": {last_line}" if last_line else ""), ""


def _not_started(config: Mapping[str, Any], chain: Sequence[ChainElement]) -> tuple[str, str]:
    """The type of the error and the hint, depending on what is missing."""
    from lilux.runtime.env_resolver.interpreters import which

    cwd, command = config["cwd"], config["command"]
    if not os.path.isdir(cwd):  # noqa: PTH112 - a text of the config
        return "ToolNotStarted", f"create the folder, or {_see('cwd', chain)}"
    if os.sep in command:
        missing = not os.path.exists(os.path.join(cwd, command))  # noqa: PTH110, PTH118 - as above
    else:
        missing = which(command, config["env"]) is None
    if missing:
        return "InterpreterMissingError", f"install the program, or {_see('command', chain)}"
    return "ToolNotStarted", _see("command", chain)


def _see(key: str, chain: Sequence[ChainElement]) -> str:
    author = next((one for one in chain if key in one.metadata.config), chain[0])
    return f"see the {key} in {author.path}" if author.path else f"correct the {key}"


def _of_request(result: HttpResult, chain: Sequence[ChainElement]) -> Outcome:
    metadata: dict[str, Any] = {"status_code": result.status_code, "headers": dict(result.headers)}
    notes = {
        "truncated": result.truncated,
        "attempts": result.attempts if result.attempts > 1 else 0,
        "stream_events_count": result.stream_events_count,
        "stream_destinations": result.stream_destinations,
        "sink_errors": result.sink_errors,
    }
    metadata.update((name, note) for name, note in notes.items() if note)
    if result.success:
        return Outcome(success=True, data=result.body, metadata=metadata)
    error = f"{chain[0].item_id!r}: {result.error}"
    hint = result.hint
    if not hint:
        hint = _after_status(result.status_code, chain)
        error = f"{error}; {hint}"
    metadata.update(error_type="RequestFailed", hint=hint)
    return Outcome(success=False, data=result.body, error=error, metadata=metadata)


def _after_status(status: int, chain: Sequence[ChainElement]) -> str:
    """The hint for a status of an error, or for no response."""
    if status < 400:
        return f"{_see('url', chain)}, and try again"
    if status in (401, 403):
        key = "headers" if any("headers" in one.metadata.config for one in chain) else "auth"
        return f"check the credentials, and {_see(key, chain)}"
    if status in (404, 410):
        return f"check the parameters, and {_see('url', chain)}"
    if status in (408, 425, 429) or status >= 500:
        return "try again later"
    return "read the response of the server, and correct the parameters"


def _of_other(result: Any, item_id: str) -> Outcome:
    from dataclasses import asdict, is_dataclass

    success = bool(getattr(result, "success", True))
    data = asdict(result) if is_dataclass(result) and not isinstance(result, type) else result
    if success:
        return Outcome(success=True, data=data)
    reason = getattr(result, "error", None) or "the primitive failed"
    return Outcome(
        success=False,
        data=data,
        error=f"{item_id!r}: {reason}",
        metadata={"error_type": "PrimitiveFailed", "hint": ""},
    )


def _parse_json(text: str) -> Any:
    stripped = text.strip()
    if not stripped or stripped[0] not in _JSON_BEGINS_WITH:
        return _NO_JSON
    try:
        data = json.loads(stripped, parse_constant=_refuse_constant, parse_float=_finite)
        if "\\u" in stripped:
            # Half of a surrogate pair cannot be encoded.
            json.dumps(data, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError):
        return _NO_JSON
    return data


def _finite(text: str) -> float:
    number = float(text)
    if number in _NOT_FINITE:
        raise ValueError("the number is too large")
    return number


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip()[:_MAX_QUOTED] if lines else ""
