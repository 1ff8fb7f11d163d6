"""Calls on this machine, in this process: one executor, whose helper runs the jobs."""

from __future__ import annotations

import os
import resource
import sys
from typing import TYPE_CHECKING

from rye.batches.backends import WorkerLost
from rye.batches.records import FAILED, OK, REFUSED, TIMEOUT, UNKNOWN, BatchResult, Call
from rye.errors import ParameterError
from rye.executor.run.execute import PrimitiveExecutor
from rye.executor.run.result import ExecutionResult

if TYPE_CHECKING:
    from rye.context import Context
    from rye.executor.run.prepare import VerifiedChain
    from rye.recording.record import Caller

# Measured with confined tools: a call has up to eight while it starts.
_FILES_OF_CALL = 12
_FILES_OF_HELPER = 256
_RAN = frozenset({"ToolFailed", "RequestFailed", "PrimitiveFailed", "UpstreamToolFailed"})


class LocalBackend:
    """One call in each lane."""

    def __init__(
        self,
        item_id: str,
        context: Context,
        *,
        jobs: int | None = None,
        timeout: float | None = None,
        caller: Caller | None = None,
    ) -> None:
        most = _most_jobs()
        if jobs is not None and jobs > most:
            raise ParameterError(
                "invalid number of jobs",
                [f"{jobs} calls at once need more open files than the limit of this process"],
                hint=f"use at most {most}, or raise the hard limit (ulimit -Hn)",
            )
        self.lanes = jobs or min(default_jobs(), most)
        self._item_id = item_id
        self._timeout = timeout
        self._caller = caller
        self._executor = PrimitiveExecutor(context=context)
        self.verified: VerifiedChain | None = None

    async def open(self) -> None:
        """Verify the tool once; every call runs this closure."""
        if self.verified is None:
            self.verified = await self._executor.freeze(self._item_id)

    async def run(self, call: Call) -> BatchResult:
        """Run the call. A helper that dies takes its calls with it."""
        result = await self._executor.execute(
            self._item_id,
            call.parameters,
            timeout=self._timeout,
            caller=self._caller,
            verified=self.verified,
        )
        answer = result_of(call, result)
        if answer.outcome == UNKNOWN:
            raise WorkerLost
        return answer

    async def close(self) -> None:
        """Close the executor."""
        await self._executor.aclose()


def _most_jobs() -> int:
    """Calls at once for which the helper, which raises its soft limit, has enough open files."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        return sys.maxsize
    return max(1, (hard - _FILES_OF_HELPER) // _FILES_OF_CALL)


def default_jobs() -> int:
    """Four for each processor: most of a short call is waiting for other processes."""
    return 4 * (os.cpu_count() or 1)


def result_of(call: Call, result: ExecutionResult) -> BatchResult:
    """The result of a call as a batch records it."""
    return BatchResult(
        line=call.line,
        id=call.id,
        outcome=outcome_of(result),
        data=result.data,
        error=result.error,
        attempt=call.attempt,
        duration_ms=round(result.duration_ms, 3),
        run_id=result.metadata.get("run_id"),
    )


def outcome_of(result: ExecutionResult) -> str:
    """One of the outcomes of :mod:`rye.batches.records`."""
    if result.success:
        return OK
    if result.metadata.get("timed_out"):
        return TIMEOUT
    kind = result.metadata.get("error_type")
    if kind == "HelperError":
        return UNKNOWN
    return FAILED if kind in _RAN else REFUSED
