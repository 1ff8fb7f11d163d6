"""The end of a call: pinned after its first success, and turned into a result."""

from __future__ import annotations

import time

from lilux.primitives.errors import LiluxError
from lilux.record import replaced

from rye.errors import LockError, RyeError
from rye.executor.chain.build import Chain, describe_chain
from rye.executor.locks.guard import LockGuard
from rye.executor.run.failure import failure_of
from rye.executor.run.outcome import Outcome
from rye.executor.run.prepare import PreparedCall
from rye.executor.run.result import ExecutionResult


def save_lock(locks: LockGuard, call: PreparedCall, outcome: Outcome) -> Outcome:
    """Pin the chain of a call that succeeded; blocks for the disk.

    The tool did run: a lockfile that cannot be written is reported in the metadata. The outcome
    becomes a failure only if another run has made a lockfile for other content in the meantime.
    """
    try:
        saved = locks.keep(call.chain, call.dependencies)
    except LockError as error:
        failed = failure_of(error)
        metadata = {**outcome.metadata, **failed.metadata}
        return replaced(outcome, success=False, error=failed.error, metadata=metadata)
    except (RyeError, LiluxError, OSError) as error:
        note = {"lockfile_error": failure_of(error).error}
    else:
        note = {"lockfile_created": str(saved.path)}
    return replaced(outcome, metadata={**outcome.metadata, **note})


def result_of(outcome: Outcome, chain: Chain, started: float) -> ExecutionResult:
    """The result of a call that began at ``started``, by ``time.perf_counter``."""
    return ExecutionResult(
        success=outcome.success,
        data=outcome.data,
        error=outcome.error,
        duration_ms=(time.perf_counter() - started) * 1000,
        chain=describe_chain(chain),
        metadata=outcome.metadata,
    )
