"""A cluster of simulated workers for the real driver of a batch, in simulated time.

The event loop has a clock of its own, which jumps to the next event when everybody waits. So an
hour of a thousand workers passes in seconds, a run with the same seed is the same everywhere, and
nothing depends on the machine. The driver is the one that runs real batches; only its backend, its
journal and the disk are simulated. :func:`simulate` checks the rules while it runs, and raises
``AssertionError`` for one that was broken.
"""

from __future__ import annotations

import asyncio
import random
import selectors
import time
from collections import Counter, defaultdict
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from rye.batches.backends import WorkerLost
from rye.batches.backends.slots import Slots
from rye.batches.driver import MAX_LOST, Driver, Options, Summary
from rye.batches.group_sync import GroupSync
from rye.batches.records import FAILED, OK, UNKNOWN, BatchResult, Call, without_result
from rye.executor.run.prepare import VerifiedChain

T = TypeVar("T")
LONG, SLOW = 20, 10
NEVER = float("inf")


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """What is simulated. Durations are in seconds."""

    workers: int = 1_000
    calls: int = 100_000
    call_seconds: float = 1.0
    """The mean; the durations are exponential."""
    long_calls: float = 0.0
    """The share of calls that take :data:`LONG` times as long."""
    slow_workers: float = 0.0
    """The share of workers that take :data:`SLOW` times as long."""
    failing: float = 0.0
    """The share of attempts that fail."""
    dying_workers: float = 0.0
    """The share of workers that die, at any time."""
    message_seconds: float = 0.001
    """From the driver to a worker."""
    journal_seconds: float = 0.0
    """One wait for the disk."""
    retries: int = 0
    repeats: bool = False
    """The tool may run twice."""
    killed_at: float = NEVER
    """The driver dies at this time, and the batch is resumed."""
    seed: int = 1


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What a simulation found."""

    outcomes: Counter[str]
    stopped: str
    """Why it ended early; empty if it did not."""
    makespan: float
    ideal: float
    """No schedule can end earlier: the living workers share all work at their own speed."""
    busy: float
    """The share of their time in which living workers ran calls, while calls were left."""
    tail: float
    """From the moment at which no call was left to the end."""
    longest: float
    """The longest call on its worker, with all its attempts."""
    idlest: float
    """The longest time that a worker waited while calls were left."""
    most_in_flight: int
    cpu_us: float
    """CPU time for each call: the driver and the simulation together."""


class _Clock(selectors.DefaultSelector):
    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        assert timeout is not None, "everybody waits, and nothing will happen"
        self.now += max(timeout, 0)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes only while everybody waits."""

    def __init__(self) -> None:
        self._clock = _Clock()
        super().__init__(self._clock)

    def time(self) -> float:
        """The simulated time."""
        return self._clock.now


def run_virtually(body: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine in simulated time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(body)


class _Worker:
    def __init__(self, slowness: float, dies_at: float) -> None:
        self.slowness = slowness
        self.dies_at = dies_at
        self.busy = 0.0
        self.free_since = 0.0

    def work_until(self, at: float) -> float:
        """What it can have done, in seconds of a worker of normal speed."""
        return min(at, self.dies_at) / self.slowness


class Cluster:
    """The simulated backend: one call at a time on each worker."""

    verified: VerifiedChain | None = None

    def __init__(self, scenario: Scenario, journal: Journal) -> None:
        self._scenario = scenario
        self._journal = journal
        self._random = random.Random(scenario.seed)  # noqa: S311 - the same every time
        span = 1.5 * scenario.calls * scenario.call_seconds / scenario.workers
        self.workers = [self._worker(span) for _ in range(scenario.workers)]
        self._slots = Slots(dict.fromkeys(self.workers, 1))
        self.ran: Counter[int] = Counter()
        self.work = self.idlest = 0.0
        self.taken: defaultdict[int, float] = defaultdict(float)
        """The seconds that each call took, with all its attempts."""
        for worker in self.workers:
            if worker.dies_at < NEVER:
                asyncio.get_running_loop().call_at(worker.dies_at, self._slots.lose, worker)

    def _worker(self, span: float) -> _Worker:
        slow = self._random.random() < self._scenario.slow_workers
        dies = self._random.random() < self._scenario.dying_workers
        return _Worker(SLOW if slow else 1, self._random.uniform(0, span) if dies else NEVER)

    @property
    def lanes(self) -> int:
        """The workers that are alive."""
        return self._slots.living

    async def open(self) -> None:
        """Nothing to do."""

    async def close(self) -> None:
        """Nothing to do."""

    async def run(self, call: Call) -> BatchResult:
        """Run the call on a free worker."""
        asked = now()
        worker = await self._slots.take()
        # Only a call that was lost, and may run again, may wait for a worker.
        waited = now() > asked
        assert self._scenario.repeats or not waited, "a call waits, but is in the journal"
        if self._journal.left:
            self.idlest = max(self.idlest, now() - worker.free_since)
        try:
            await asyncio.sleep(self._scenario.message_seconds)
            return await self._run(worker, call)
        finally:
            worker.free_since = now()
            self._slots.give_back(worker)

    async def _run(self, worker: _Worker, call: Call) -> BatchResult:
        assert call.line in self._journal.started, "a call runs before it is in the journal"
        duration = self._random.expovariate(1 / self._scenario.call_seconds)
        if self._random.random() < self._scenario.long_calls:
            duration *= LONG
        failed = self._random.random() < self._scenario.failing
        taken = duration * worker.slowness
        self.ran[call.line] += 1
        lived = min(taken, max(0.0, worker.dies_at - now()))
        begun = now()
        try:
            await asyncio.sleep(lived)
        finally:
            # Less if the driver died.
            worked = now() - begun
            worker.busy += max(0.0, min(now(), self._journal.drained_at) - begun)
            self.work += worked / worker.slowness
            self.taken[call.line] += worked
        if lived < taken:
            raise WorkerLost
        outcome, error = (FAILED, "it failed") if failed else (OK, None)
        return BatchResult(call.line, call.id, outcome, None, error, call.attempt, taken, None)


class Journal:
    """The simulated journal and results."""

    def __init__(self, scenario: Scenario) -> None:
        self.left = scenario.calls
        """Calls that the driver has not taken yet."""
        self.drained_at = NEVER
        self.started: set[int] = set()
        self.results: dict[int, str] = {}
        self.most_in_flight = 0
        self._scenario = scenario
        self._sync = GroupSync(lambda: asyncio.sleep(scenario.journal_seconds))

    def remaining(self) -> Iterator[Call | BatchResult]:
        """The calls that have no result; those in doubt run again only if they may."""
        for line in range(1, self._scenario.calls + 1):
            if line in self.results:
                continue
            call = Call(line, str(line), {})
            if line in self.started and not self._scenario.repeats:
                yield without_result(call, UNKNOWN, "in doubt")
            else:
                self.left -= line not in self.started
                if not self.left:
                    self.drained_at = min(self.drained_at, now())
                yield call

    async def starting(self, line: int) -> None:
        """A call is about to start."""
        self.started.add(line)
        self.most_in_flight = max(self.most_in_flight, len(self.started) - len(self.results))
        if self._scenario.journal_seconds:
            await self._sync.wait()

    def ended(self, result: BatchResult) -> None:
        """A call has a result."""
        assert result.line not in self.results, "a call has two results"
        self.results[result.line] = result.outcome


def now() -> float:
    """The simulated time."""
    return asyncio.get_running_loop().time()


def simulate(scenario: Scenario) -> Figures:
    """Run the scenario, and check that every rule held."""
    return run_virtually(_simulate(scenario))


async def _simulate(scenario: Scenario) -> Figures:
    journal = Journal(scenario)
    cluster = Cluster(scenario, journal)
    before = time.process_time()
    killed = asyncio.create_task(_drive(scenario, cluster, journal))
    await asyncio.wait([killed], timeout=min(scenario.killed_at, 1e9))
    if killed.done():
        stopped = killed.result()
    else:
        killed.cancel()
        await asyncio.wait([killed])
        stopped = await _drive(scenario, cluster, journal)
    cpu = time.process_time() - before
    figures = Figures(
        outcomes=Counter(journal.results.values()),
        stopped=stopped,
        makespan=now(),
        ideal=_ideal(cluster),
        busy=_share_busy(cluster, min(now(), journal.drained_at)),
        tail=now() - min(now(), journal.drained_at),
        longest=max(cluster.taken.values()),
        idlest=cluster.idlest,
        most_in_flight=journal.most_in_flight,
        cpu_us=cpu * 1e6 / scenario.calls,
    )
    _check(scenario, cluster, journal, figures)
    return figures


async def _drive(scenario: Scenario, cluster: Cluster, journal: Journal) -> str:
    options = Options(retries=scenario.retries, rerun_lost=scenario.repeats)
    summary = Summary(scenario.calls, Counter(journal.results.values()))
    await Driver(cluster, journal.remaining(), journal, summary, options).run()
    return summary.stopped


def _check(scenario: Scenario, cluster: Cluster, journal: Journal, figures: Figures) -> None:
    assert figures.stopped or len(journal.results) == scenario.calls, "a call has no result"
    runs = max(cluster.ran.values())
    allowed = 1 + scenario.retries + (MAX_LOST if scenario.repeats else 0)
    assert runs <= allowed, f"a call ran {runs} times"
    assert figures.most_in_flight <= scenario.workers, "more calls are under way than workers"
    # Nobody waits while calls are left, so the end is then at most one call away.
    waits = 2 if scenario.killed_at == NEVER else 4
    pause = waits * scenario.journal_seconds + 1e-6
    assert figures.idlest <= pause, f"a worker waited for {figures.idlest:.3f} s"
    sent = allowed * (pause + scenario.message_seconds)
    assert figures.tail <= figures.longest + sent, "calls were held back until the end"


def _ideal(cluster: Cluster) -> float:
    """The time at which the workers that lived can have done all work that was done."""
    low, high = 0.0, now()
    for _ in range(60):
        middle = (low + high) / 2
        done = sum(worker.work_until(middle) for worker in cluster.workers)
        low, high = (low, middle) if done >= cluster.work else (middle, high)
    return high


def _share_busy(cluster: Cluster, until: float) -> float:
    lived = sum(min(worker.dies_at, until) for worker in cluster.workers)
    return sum(worker.busy for worker in cluster.workers) / lived
