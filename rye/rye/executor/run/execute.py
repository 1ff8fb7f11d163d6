"""``PrimitiveExecutor``: a call is prepared, run and finished.

A call is prepared on the event loop's thread, which takes a fraction of a millisecond. A call with
many dependencies would block the loop, so they are verified in a worker thread. This thread has a
:class:`Preparer` with separate caches, which no other thread uses. The two threads share nothing
but frozen records, so no lock is needed. Parameters, which the caller may change at any time, stay
on the event loop's thread.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType

from rye.context import Context
from rye.executor.chain.anchor import Anchor
from rye.executor.chain.build import MAX_CHAIN_DEPTH, Chain
from rye.executor.chain.dependencies import ManyDependencies
from rye.executor.chain.snapshot import CacheEntry
from rye.executor.config.build import ExecutionConfig
from rye.executor.config.environment import ChainEnvironment
from rye.executor.run.announcer import Announcer
from rye.executor.run.channel import require_user

# Not when something fails: then there may be no descriptor left to import it with.
from rye.executor.run.failure import failure_of
from rye.executor.run.finish import explain_failure, named, noted, result_of, save_lock
from rye.executor.run.live_run import cancelled_on_page
from rye.executor.run.originals import NamingOutput
from rye.executor.run.outcome import Outcome, outcome_of
from rye.executor.run.prepare import (
    CallOptions,
    Preparation,
    PreparedCall,
    Preparer,
    VerifiedChain,
)
from rye.executor.run.primitives import PRIMITIVE_MAP, OnOutput, PrimitivePool
from rye.executor.run.recorded import Recorder
from rye.executor.run.result import ExecutionResult
from rye.executor.run.warmth import Warmth
from rye.items.element import ChainElement, Metadata
from rye.recording.record import Caller
from rye.spaces.model import Resolution

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Future
    from concurrent.futures import ThreadPoolExecutor
    from typing import Any, ClassVar, Self, TypeVar

    from rye.executor.run.channel import Listener
    from rye.executor.run.live_run import LiveRun, Questions
    from rye.executor.run.recorded import Recording
    from rye.recording.spool import Spool

    Result = TypeVar("Result")
    Approve = Callable[[PreparedCall], Awaitable[bool]]
    """Returns True if it waited, for instance for the user: then the call is prepared again, and
    runs only if it is still the same. Raises a ``RyeError`` to refuse it."""


class PrimitiveExecutor:
    """Runs tools by their ids. Any number of calls may run at once in one event loop.

    Use it as an async context manager, or call :meth:`aclose`, to close idle connections.
    """

    PRIMITIVE_MAP: ClassVar[Mapping[str, type[Any]]] = PRIMITIVE_MAP
    MAX_CHAIN_DEPTH: ClassVar[int] = MAX_CHAIN_DEPTH

    def __init__(
        self,
        project_path: Path | str | None = None,
        user_space: Path | str | None = None,
        system_space: Path | str | None = None,
        *,
        context: Context | None = None,
        confined_only: bool = False,
        warm: bool | Callable[[str], bool] = True,
        spool: Spool | None = None,
    ) -> None:
        """``context`` replaces the three paths and the environment of the process.

        ``confined_only`` refuses tools that declare no permissions. ``warm`` prepares processes for
        tools that are called again within a minute; a function returns true for the ids of those
        that are prepared after the first call already. ``spool`` receives the records of the
        calls instead of the user's history.
        """
        self.context = context or Context.from_machine(project_path, user_space, system_space)
        self._preparer = Preparer(self.context, self.PRIMITIVE_MAP, confined_only=confined_only)
        self._recorder = Recorder(self._preparer, spool, moves=spool is None)
        self.announcer = Announcer(self.context.user_space)
        """Shows calls that last to the pages of the user."""
        self._worker = _Worker(self.context, self.PRIMITIVE_MAP)
        self._primitives = PrimitivePool(self.PRIMITIVE_MAP, self.context.user_space)
        self._warmth = Warmth(
            self.context,
            self._preparer.library.disk_cache,
            enabled=warm is not False and self.PRIMITIVE_MAP is PRIMITIVE_MAP,
            at_once=warm if callable(warm) else None,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close idle connections. The executor may be used again."""
        # A call that is still running keeps the old worker, and its thread, until it ends.
        worker, self._worker = self._worker, _Worker(self.context, self.PRIMITIVE_MAP)
        await self._warmth.aclose()
        await self._primitives.aclose()
        self._recorder.close()
        self.announcer.close()
        await worker.flush()
        self._preparer.close()

    async def execute(
        self,
        item_id: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        validate_chain: bool = True,
        use_lockfile: bool = True,
        dry_run: bool = False,
        frozen: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109 - of the job, and by the specification
        on_output: OnOutput | None = None,
        listener: Listener | None = None,
        caller: Caller | None = None,
        approve: Approve | None = None,
        verified: VerifiedChain | None = None,
        run_id: str = "",
        questions: Questions | None = None,
    ) -> ExecutionResult:
        """Run the tool ``item_id``; raises nothing but cancellation, which ends the job.

        ``timeout`` in seconds takes precedence over the chain's. ``frozen`` refuses a tool without
        a lockfile. ``on_output(stream, text)`` receives output as it arrives, and ``listener``
        the tool's progress and questions. A ``dry_run`` prepares the call without running it:
        ``data`` and ``metadata["plan"]`` are the plan. Every other call is recorded in the user's
        history, with its ``caller``. ``approve`` decides about a call that is ready to run; see
        :data:`Approve`. With ``verified``, which :meth:`freeze` returned, the tool runs as it was
        then, whatever has changed since. ``run_id`` is the id of the run in the history, from
        :func:`rye.recording.run_ids.new_run_id`; by default a new one. ``questions`` are those that
        a page may answer. A call that the user cancels on a page has a result, too.
        """
        from asyncio import get_running_loop

        started = time.perf_counter()
        options = CallOptions(
            validate_chain=validate_chain,
            use_lockfile=use_lockfile,
            frozen=frozen,
            timeout=timeout,
        )
        preparation = Preparation(self._preparer, item_id, options)
        recording = None if dry_run else self._recorder.begin(item_id, parameters, caller, run_id)
        live = None if recording is None else self.announcer.begin(recording, questions)
        worker = self._worker
        try:
            if verified is not None:
                call = preparation.complete(preparation.copied(verified), parameters)
            else:
                call = await worker.prepare(preparation, item_id, options, parameters)
            if recording is None:
                from rye.executor.run.plan import planned

                outcome = planned(call, self.context)
            else:
                recording.prepared(call)
                require_user(call.chain[0], listener)
                if approve is not None and await approve(call):
                    recording.waited()
                    preparation = Preparation(self._preparer, item_id, options)
                    again = await worker.prepare(preparation, item_id, options, parameters)
                    call = _unchanged(call, again)
                output = None if on_output is None else NamingOutput(on_output, call.originals)
                run = partial(self._primitives.run, call.config, output, listener, live)
                # Its turn comes when the request is on its way.
                get_running_loop().call_soon(recording.describe)
                answered, warm = await self._warmth.run(call, run)
                ran = named(answered, call)
                if output is not None and (last := output.end()) is not None:
                    await last
                recording.ran(ran)
                await self._compile(call)
                outcome = noted(outcome_of(call.config, ran, call.chain), call, warm=warm)
                if not outcome.success:
                    outcome = explain_failure(outcome, call, self._preparer.environments)
                if outcome.success and call.needs_lock:
                    outcome = await worker.save_lock(call, outcome)
        except Exception as error:  # noqa: BLE001 - the promise is a result for every failure
            outcome = failure_of(error)
        except BaseException:  # cancellation
            if live is None or not live.takes_cancellation():
                self._cancelled(recording, live, preparation.chain)
                raise
            outcome = failure_of(cancelled_on_page(item_id))
        result = result_of(outcome, preparation.chain, preparation.closure, started)
        if recording is not None:
            result = recording.finished(result, preparation.chain)
            self.announcer.end(live, result.error or "")
        return result

    def _cancelled(
        self, recording: Recording | None, live: LiveRun | None, chain: Sequence[ChainElement]
    ) -> None:
        if recording is not None:
            recording.cancelled(chain)
            self.announcer.end(live, "")

    async def freeze(self, item_id: str) -> VerifiedChain:
        """Verify the tool once, for many calls of exactly this closure. Raises a ``RyeError``."""
        return await self._worker.verify(item_id, CallOptions())

    async def _compile(self, call: PreparedCall) -> None:
        """Compile the modules of a tool that is called again."""
        job, compiled = call.compile_job, self._preparer.closures.compiled
        if job is not None and (temporary := compiled.begin(job)):
            try:
                await self._primitives.run(ExecutionConfig.of_process(job.config(temporary)))
            finally:
                compiled.end(job, temporary)

    # The names that the specification gives to single steps.

    @property
    def _chain_cache(self) -> dict[str, CacheEntry[Chain]]:
        return self._preparer.chains.cache

    @property
    def _metadata_cache(self) -> dict[Path, CacheEntry[Metadata]]:
        return self._preparer.library.metadata_cache

    def _resolve_tool_path(self, item_id: str) -> Resolution:
        """Resolve the item: project, then user, then system space."""
        return self._preparer.library.snapshot().resolve(item_id)

    def _build_chain(self, item_id: str) -> Chain:
        """The chain ``[tool, …, primitive]``, from the cache if it is current."""
        return self._preparer.chains.build(item_id, self._preparer.library.snapshot())

    def _resolve_chain_env(self, chain: Sequence[ChainElement]) -> ChainEnvironment:
        """The environment, from the primitive to the tool; a later element overrides."""
        return self._preparer.environments.resolve(chain)

    def _build_execution_config(
        self,
        chain: Sequence[ChainElement],
        parameters: Mapping[str, Any],
        env: ChainEnvironment,
        anchor: Anchor | None = None,
        *,
        timeout: float | None = None,
    ) -> ExecutionConfig:
        """The rendered config of the primitive at the end of the chain."""
        return self._preparer.configs.build(chain, parameters, env, anchor, timeout=timeout)


def _unchanged(approved: PreparedCall, call: PreparedCall) -> PreparedCall:
    """Return ``call``, which was prepared after ``approved`` was. Raises ``DeclinedError``."""
    if call.closure.digest != approved.closure.digest:
        from rye.errors import DeclinedError

        raise DeclinedError(
            f"{call.chain[0].item_id!r} changed while the call was waiting",
            hint="call it again",
        )
    return call


class _Worker:
    """A thread and a :class:`Preparer` that only this thread touches.

    Both are made when they are first needed, and end with the worker. Calls wait for their turn.
    A call that is cancelled while the thread works for it does not stop the thread; the result is
    dropped.
    """

    def __init__(self, context: Context, primitives: Mapping[str, type[Any]]) -> None:
        self._context = context
        self._primitives = primitives
        self._preparer: Preparer | None = None
        self._threads: ThreadPoolExecutor | None = None

    async def prepare(
        self,
        preparation: Preparation,
        item_id: str,
        options: CallOptions,
        parameters: Mapping[str, Any] | None,
    ) -> PreparedCall:
        """Prepare a call here, and in the thread what would block the event loop."""
        try:
            return preparation.prepare(parameters, few=True)
        except ManyDependencies:
            return preparation.complete(await self.verify(item_id, options), parameters)

    async def verify(self, item_id: str, options: CallOptions) -> VerifiedChain:
        """:meth:`Preparation.verify` and the copy, for any number of dependencies."""
        return await self._run(lambda: self._verified(item_id, options))

    def _verified(self, item_id: str, options: CallOptions) -> VerifiedChain:
        preparation = Preparation(self._own_preparer(), item_id, options)
        return preparation.copied(preparation.verify())

    async def save_lock(self, call: PreparedCall, outcome: Outcome) -> Outcome:
        """:func:`rye.executor.run.finish.save_lock`, which waits for the disk."""
        return await self._run(lambda: save_lock(self._own_preparer().locks, call, outcome))

    async def flush(self) -> None:
        """Write what the next process can use to the disk cache, if the thread was used."""
        if self._threads is not None:
            await self._run(lambda: self._own_preparer().close())

    def _own_preparer(self) -> Preparer:
        if self._preparer is None:
            self._preparer = Preparer(self._context, self._primitives)
        return self._preparer

    def _run(self, work: Callable[[], Result]) -> Future[Result]:
        from asyncio import get_running_loop

        if self._threads is None:
            from concurrent.futures import ThreadPoolExecutor

            self._threads = ThreadPoolExecutor(1, thread_name_prefix="rye-verify")
        return get_running_loop().run_in_executor(self._threads, work)
