"""The end of a call: pinned after its first success, and turned into a result."""

from __future__ import annotations

import re
import time

from lilux.primitives.errors import LiluxError
from lilux.record import replaced

from rye.closure.manifest import Closure
from rye.errors import LockError, RyeError
from rye.executor.chain.build import Chain, describe_chain
from rye.executor.config.environment import Environments
from rye.executor.locks.guard import LockGuard
from rye.executor.run.failure import failure_of
from rye.executor.run.outcome import Outcome
from rye.executor.run.prepare import PreparedCall
from rye.executor.run.result import ExecutionResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def named(result: Any, call: PreparedCall) -> Any:
    """The result of the primitive, whose error output names the author's files."""
    if not (call.placement.root and isinstance(getattr(result, "stderr", None), str)):
        return result
    stderr = call.originals.named(result.stderr)
    return result if stderr == result.stderr else replaced(result, stderr=stderr)


def noted(outcome: Outcome, call: PreparedCall, *, warm: bool = False) -> Outcome:
    """Add what the user should know about how the tool ran; ``warm`` by a prepared process."""
    notes = {"closure_note": call.note, "warm": warm}
    added = {name: note for name, note in notes.items() if note}
    return replaced(outcome, metadata={**outcome.metadata, **added}) if added else outcome


def save_lock(locks: LockGuard, call: PreparedCall, outcome: Outcome) -> Outcome:
    """Pin the chain of a call that succeeded; blocks for the disk.

    The tool did run: a lockfile that cannot be written is reported in the metadata. The outcome
    becomes a failure only if another run has made a lockfile for other content in the meantime.
    """
    try:
        saved = locks.keep(call.chain, call.dependencies, call.programs, call.closure.digest)
    except LockError as error:
        failed = failure_of(error)
        metadata = {**outcome.metadata, **failed.metadata}
        return replaced(outcome, success=False, error=failed.error, metadata=metadata)
    except (RyeError, LiluxError, OSError) as error:
        note = {"lockfile_error": failure_of(error).error}
    else:
        note = {"lockfile_created": str(saved.path)}
    return replaced(outcome, metadata={**outcome.metadata, **note})


def explain_failure(outcome: Outcome, call: PreparedCall, environments: Environments) -> Outcome:
    """Add what a failed tool tried outside its permissions, and which name it should declare."""
    if outcome.metadata.get("error_type") != "ToolFailed":
        return outcome
    data = outcome.data if isinstance(outcome.data, dict) else {}
    text = f"{outcome.metadata.get('stderr', '')}\n{data.get('stderr', '')}"
    if call.config.config.get("confinement") is not None:
        outcome = _explain_denials(outcome, call, f"{data.get('stdout', '')}\n{text}")
    return _explain_names(outcome, call, environments, text)


def _explain_denials(outcome: Outcome, call: PreparedCall, text: str) -> Outcome:
    """Add what the tool was refused. The text is for agents, too: the user decides."""
    from rye.permissions.denials import USER_DECIDES, denials, explanation, without_values

    config = call.config.config
    enforced = outcome.metadata.get("confinement", {}).get("enforced", {})
    found = denials(
        text,
        config["confinement"],
        config["cwd"],
        config["env"].get("PATH", ""),
        mounted=enforced.get("attributes") == "namespace",
    )
    if not found:
        return outcome
    hidden = without_values(found, call.chain[0].metadata.permissions, config["env"])
    told = explanation(hidden, call.environment.env.get("HOME") or "/")
    return replaced(
        outcome,
        error=f"{outcome.error}; {told}; {USER_DECIDES}",
        metadata={
            **outcome.metadata,
            "hint": USER_DECIDES,
            "denied": told,
            "denials": [
                {"tried": one.tried, "target": one.target, "key": one.key} for one in hidden
            ],
        },
    )


def _explain_names(
    outcome: Outcome, call: PreparedCall, environments: Environments, text: str
) -> Outcome:
    """Add which name to declare, if a failed tool complains about a variable that ``.env`` sets.

    The value is not the tool's, since no signed file of the chain asks for the name.
    """
    said = set(re.findall(r"[A-Za-z_][A-Za-z0-9_]*", text))
    names = sorted(name for name in environments.unasked(call.chain) if name in said)
    if not names:
        return outcome
    from rye.executor.config.author_lines import accept_command, permissions_advice
    from rye.permissions.denials import USER_DECIDES

    tool = call.chain[0]
    known = f"the project's .env sets {', '.join(names)}, which {tool.item_id!r} does not ask for"
    if tool.space == "system":
        it = "it" if len(names) == 1 else "them"
        hint = f"{known}: export {it} in your shell, or ask for {it} in a tool of your own"
    else:
        hint = f"{known}: {permissions_advice(tool, names)}, then run: {accept_command(tool)}"
    return replaced(
        outcome,
        error=f"{outcome.error}; {hint}",
        metadata={
            **outcome.metadata,
            "hint": hint,
            "agent_hint": f"{known}; {USER_DECIDES}",
        },
    )


def result_of(
    outcome: Outcome, chain: Chain, closure: Closure | None, started: float
) -> ExecutionResult:
    """The result of a call that began at ``started``, by ``time.perf_counter``.

    ``closure`` is what was verified; ``None`` if the call was refused before.
    """
    metadata = outcome.metadata
    if closure is not None:
        metadata = {**metadata, "closure": closure.digest}
    return ExecutionResult(
        success=outcome.success,
        data=outcome.data,
        error=outcome.error,
        duration_ms=(time.perf_counter() - started) * 1000,
        chain=describe_chain(chain),
        metadata=metadata,
        raw_stdout=outcome.raw_stdout,
        readable=outcome.readable,
    )
