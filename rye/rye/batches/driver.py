"""Runs the calls of a batch: every call is started at most once, and gets one result.

The order of the steps is what makes it safe: a call is in the journal before it is handed to a
backend, and its result is written before anything else is done with it.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from lilux.record import Record

from rye.batches.backends import WorkerLost
from rye.batches.records import FAILED, OK, SKIPPED, TIMEOUT, UNKNOWN, Call, without_result

if TYPE_CHECKING:
    from typing import Protocol

    from rye.batches.backends import Backend
    from rye.batches.records import BatchResult

    class Log(Protocol):
        """Keeps what survives an interruption."""

        async def starting(self, line: int) -> None: ...

        def ended(self, result: BatchResult) -> None: ...


LOST = "the worker died; the call may or may not have run"
MAX_LOST = 3
"""A call whose worker died this often is not tried again: it may be the reason."""
_MAX_LOST_CALLS = 10
"""So many losses for each lane, without a result between them, end the batch."""
# Running calls may finish for this long after the user asked to stop.
GRACE_SECONDS = 10.0
_GOOD = (OK, SKIPPED)
_KEPT_SLOWEST = 5
_KEPT_ERRORS = 1000
_MAX_ERROR = 200


class Options(Record, frozen=True):
    """What the user asked for."""

    max_failures: int | None = None
    """Stop after this many calls without success."""
    retries: int = 0
    rerun_lost: bool = False
    """The tool may run twice: run a call again whose worker died, up to :data:`MAX_LOST` times."""


class Summary:
    """What has happened so far."""

    def __init__(self, total: int, before: Counter[str] | None = None) -> None:
        """``before`` are the outcomes from before an interruption."""
        self.total = total
        self.outcomes: Counter[str] = Counter(before)
        self._before = self.outcomes.total()
        self._failed_before = self.failures
        self.errors: Counter[str] = Counter()
        self.slowest: list[tuple[float, str]] = []
        self.began = time.monotonic()
        self.stopped = ""
        """Why not all calls were started; empty if they were."""
        self.changed = False
        """The tool is another one by now; calls run the version that the batch began with."""
        self.cut_off = 0
        """Calls under way that were ended."""
        self.notes: list[str] = []
        """What the user should know besides."""

    def add(self, result: BatchResult, *, earlier: bool = False) -> None:
        """Count a result; ``earlier`` if it is about what happened before this run."""
        self.outcomes[result.outcome] += 1
        self._failed_before += earlier and result.outcome not in _GOOD
        if result.duration_ms:
            slow = (result.duration_ms, result.id)
            self.slowest = sorted([*self.slowest, slow])[-_KEPT_SLOWEST:]
        if result.error is not None:
            # What follows the first line is about one call, such as the numbers of processes.
            text = result.error.partition("\n")[0][:_MAX_ERROR]
            if text in self.errors or len(self.errors) < _KEPT_ERRORS:
                self.errors[text] += 1

    @property
    def done(self) -> int:
        """Calls with a result, also from before an interruption."""
        return self.outcomes.total()

    @property
    def failures(self) -> int:
        """Calls without success; skipped lines were asked for."""
        return sum(count for one, count in self.outcomes.items() if one not in _GOOD)

    @property
    def new_failures(self) -> int:
        """Those of this run."""
        return self.failures - self._failed_before

    @property
    def seconds_left(self) -> float | None:
        """The expected duration of the rest; ``None`` before the first result."""
        return (self.total - self.done) / self.rate if self.done > self._before else None

    @property
    def rate(self) -> float:
        """Calls a second, since this run began."""
        return (self.done - self._before) / max(time.monotonic() - self.began, 1e-6)


class Driver:
    """One run of a batch, until all calls have a result or somebody stops it."""

    def __init__(  # noqa: PLR0917 - each is one part of the run
        self,
        backend: Backend,
        calls: Iterator[Call | BatchResult],
        log: Log,
        summary: Summary,
        options: Options,
        on_result: Callable[[BatchResult], None] = lambda _: None,
    ) -> None:
        self._backend = backend
        self._calls = calls
        self._log = log
        self.summary = summary
        self._options = options
        self._on_result = on_result
        self._stopping = asyncio.Event()
        self._lanes = 0
        self._lost_calls = 0

    def stop(self, reason: str) -> None:
        """Start no more calls; those under way may finish for :data:`GRACE_SECONDS`."""
        if not self._stopping.is_set():
            self.summary.stopped = reason
            self._stopping.set()

    async def run(self) -> Summary:
        """Run the calls. Cancelling ends those under way, which then have no result."""
        self._lanes = self._backend.lanes
        lanes = [asyncio.create_task(self._lane()) for _ in range(self._lanes)]
        stopping = asyncio.create_task(self._stopping.wait())
        everything = asyncio.create_task(_all(lanes))
        try:
            await asyncio.wait([everything, stopping], return_when=asyncio.FIRST_COMPLETED)
            if not everything.done():
                await asyncio.wait([everything], timeout=GRACE_SECONDS)
            if everything.done():
                everything.result()
        finally:
            everything.cancel()
            stopping.cancel()
            for lane in lanes:
                lane.cancel()
            await asyncio.gather(*lanes, return_exceptions=True)
        return self.summary

    async def _lane(self) -> None:
        """Run one call after the other, until none is left or the slot of the lane is gone."""
        while not self._stopping.is_set() and self._lanes <= self._backend.lanes:
            call = self._next_call()
            if call is None:
                break
            while call is not None:
                call = await self._run(call)
        self._lanes -= 1

    def _next_call(self) -> Call | None:
        """The next call to run. Calls that must not run get their result here."""
        for call in self._calls:
            if isinstance(call, Call):
                return call
            self._end(call, earlier=True)
            if self._stopping.is_set():
                return None
        return None

    async def _run(self, call: Call) -> Call | None:
        """Run the call, and return it if it is tried again."""
        await self._log.starting(call.line)
        try:
            result = await self._backend.run(call)
        except asyncio.CancelledError:
            self.summary.cut_off += 1
            raise
        except WorkerLost:
            self._lost_calls += 1
            if not self._backend.lanes:
                self.stop("every worker was lost")
            elif self._lost_calls >= _MAX_LOST_CALLS * self._backend.lanes:
                self.stop("the workers keep dying")
            if self._options.rerun_lost and call.attempt < MAX_LOST:
                # After a stop it stays without a result, and a resume runs it.
                stopped = self._stopping.is_set()
                return None if stopped else call._replace(attempt=call.attempt + 1)
            result = without_result(call, UNKNOWN, LOST)
        else:
            self._lost_calls = 0
            if self._is_tried_again(result):
                return call._replace(attempt=call.attempt + 1)
        self._end(result)
        return None

    def _is_tried_again(self, result: BatchResult) -> bool:
        if self._stopping.is_set() or result.attempt > self._options.retries:
            return False
        return result.outcome in (FAILED, TIMEOUT)

    def _end(self, result: BatchResult, *, earlier: bool = False) -> None:
        self._log.ended(result)
        self.summary.add(result, earlier=earlier)
        self._on_result(result)
        limit = self._options.max_failures
        if limit is not None and self.summary.new_failures >= limit:
            number = self.summary.new_failures
            self.stop(f"{number} {'call' if number == 1 else 'calls'} did not succeed")


async def _all(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Wait for all; the first error of one is raised at once."""
    await asyncio.gather(*tasks)
