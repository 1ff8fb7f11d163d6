"""A call from a program without an event loop, which waits until the call ends.

::

    result = execute_blocking("rye/bash/bash", {"command": "echo hi"}, context=context)

The call is prepared and finished as in ``PrimitiveExecutor.execute``; only the subprocess primitive
is another one, which blocks. A chain that ends in another primitive gets an event loop for that
primitive.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from lilux.primitives.subprocess.blocking import BlockingSubprocess
from lilux.sha256 import prefer_interpreter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import Any, Protocol, Self

    from rye.context import Context
    from rye.executor.chain.snapshot import Snapshot
    from rye.executor.config.build import ExecutionConfig
    from rye.executor.run.announcement import Announcement
    from rye.executor.run.channel import Listener
    from rye.executor.run.confine import Widening
    from rye.executor.run.originals import NamingOutput
    from rye.executor.run.prepare import PreparedCall, Preparer
    from rye.executor.run.recorded import Recorder, Recording
    from rye.executor.run.result import ExecutionResult
    from rye.items.element import ChainElement
    from rye.recording.record import Caller

    OnOutput = Callable[[str, str], None]

    class CallWatch(Protocol):
        """Is called while a call is prepared and run."""

        def step(self, name: str) -> None:
            """The step of this name has ended."""

        def prepared(self, call: PreparedCall, context: Context) -> None:
            """The call is about to run."""


def execute_blocking(
    item_id: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    context: Context | None = None,
    validate_chain: bool = True,
    use_lockfile: bool = True,
    dry_run: bool = False,
    frozen: bool = False,
    timeout: float | None = None,
    on_output: OnOutput | None = None,
) -> ExecutionResult:
    """Run the tool like ``PrimitiveExecutor(context=context).execute(…)``, and wait for its end.

    ``on_output`` must be a plain function. ``KeyboardInterrupt`` is raised after the job and all
    its processes have ended; they also end when this process dies.
    """
    with BlockingExecutor(context, start_helper=not dry_run) as executor:
        return executor.execute(
            item_id,
            parameters,
            validate_chain=validate_chain,
            use_lockfile=use_lockfile,
            dry_run=dry_run,
            frozen=frozen,
            timeout=timeout,
            on_output=on_output,
        )


class BlockingExecutor:
    """``PrimitiveExecutor`` for one call at a time, in one thread. Use it as a context manager.

    Entering starts the helper process, which gets ready while the modules of this package are
    imported and the call is prepared; ``start_helper=False`` saves that for a dry run. The imports
    inside the methods are there for the same reason.
    """

    def __init__(
        self,
        context: Context | None = None,
        *,
        start_helper: bool = True,
        preparer: Preparer | None = None,
    ) -> None:
        """``preparer`` prepares the calls; by default one for the context."""
        self._context = context
        self._start_helper = start_helper
        self._subprocess = BlockingSubprocess()
        self._preparer = preparer
        self._recorder: Recorder | None = None
        self._seen: tuple[str, Snapshot] | None = None
        self._announcement: Announcement | None = None

    def __enter__(self) -> Self:
        prefer_interpreter()
        try:
            if self._start_helper:
                self._subprocess.start_early()
        except BaseException:  # an interrupt: the with statement does not call __exit__ yet
            self._subprocess.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._subprocess.close()
        if self._recorder is not None:
            self._recorder.close()
        if self._preparer is not None:
            self._preparer.close()

    def declared_schema(self, item_id: str) -> Mapping[str, Any] | None:
        """The schema of the parameters as the item's file declares it. Nothing is verified.

        ``None`` also for an item that cannot be found or read: executing it reports the reason. A
        call of the same item that follows at once uses the file as it was read here.
        """
        from rye.errors import RyeError

        snapshot = self._parts().library.snapshot()
        self._seen = (item_id, snapshot)
        try:
            return snapshot.metadata(snapshot.resolve(item_id)).config_schema
        except RyeError:
            return None

    def execute(
        self,
        item_id: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        validate_chain: bool = True,
        use_lockfile: bool = True,
        dry_run: bool = False,
        frozen: bool = False,
        timeout: float | None = None,
        on_output: OnOutput | None = None,
        listener: Listener | None = None,
        widening: Widening | None = None,
        unenforced: str = "refuse",
        watch: CallWatch | None = None,
        caller: Caller | None = None,
        stdin: Callable[[], int | None] | None = None,
    ) -> ExecutionResult:
        """As :func:`execute_blocking`; the last five are for a person's own call.

        ``stdin`` is called for a tool that reads the stdin of its caller, and returns the
        descriptor that is copied to the tool.
        """
        from rye.executor.run.channel import require_user
        from rye.executor.run.failure import failure_of
        from rye.executor.run.finish import explain_failure, named, noted, result_of, save_lock
        from rye.executor.run.originals import NamingOutput
        from rye.executor.run.outcome import outcome_of
        from rye.executor.run.prepare import CallOptions, Preparation, no_step
        from rye.executor.run.stdin import reads_stdin

        started = time.perf_counter()
        options = CallOptions(
            validate_chain=validate_chain,
            use_lockfile=use_lockfile,
            frozen=frozen,
            timeout=timeout,
            widening=widening,
            unenforced=unenforced,
        )
        parts = self._parts()
        on_step = no_step if watch is None else watch.step
        preparation = Preparation(
            parts, item_id, options, snapshot=self._snapshot_of(item_id), on_step=on_step
        )
        recording = None if dry_run else self._recorded(parts).begin(item_id, parameters, caller)
        try:
            call = preparation.prepare(parameters)
            if watch is not None:
                watch.prepared(call, parts.context)
            if recording is None:
                from rye.executor.run.plan import planned

                outcome = planned(call, parts.context)
            else:
                recording.prepared(call)
                output = None if on_output is None else NamingOutput(on_output, call.originals)
                source = stdin() if stdin is not None and reads_stdin(call.chain) else None
                require_user(call.chain[0], listener if source is None else None)
                ran = named(self._run(call.config, output, listener, source, recording), call)
                if output is not None:
                    output.end()
                recording.ran(ran)
                self._compile(call)
                on_step("run")
                outcome = noted(outcome_of(call.config, ran, call.chain), call)
                if not outcome.success:
                    outcome = explain_failure(outcome, call, parts.environments)
                if outcome.success and call.needs_lock:
                    outcome = save_lock(parts.locks, call, outcome)
        except Exception as error:  # noqa: BLE001 - the promise is a result for every failure
            on_step("until the error")
            outcome = failure_of(error)
        except BaseException:  # an interrupt
            self._cancelled(recording, preparation.chain)
            raise
        result = result_of(outcome, preparation.chain, preparation.closure, started)
        if recording is not None:
            result = recording.finished(result, preparation.chain)
            self._withdraw(result.error or "")
        parts.flush()
        on_step("finish")
        return result

    def not_enforced(self, result: ExecutionResult) -> list[str]:
        """The permissions that were not enforced for a call, unless the user accepts that."""
        from rye.executor.run.confine import missing_parts

        found = missing_parts(result.metadata)
        return [] if found and self._parts().confining.accepts_unenforced else found

    def _cancelled(self, recording: Recording | None, chain: Sequence[ChainElement]) -> None:
        if recording is not None:
            recording.cancelled(chain)
            self._withdraw("")

    def _withdraw(self, error: str) -> None:
        """Tell pages that the call has ended, and was recorded."""
        announcement, self._announcement = self._announcement, None
        if announcement is not None:
            announcement.end(error)

    def _compile(self, call: PreparedCall) -> None:
        """Compile the modules of a tool that is called again."""
        job, compiled = call.compile_job, self._parts().closures.compiled
        if job is not None and (temporary := compiled.begin(job)):
            try:
                self._subprocess.execute(job.config(temporary), {})
            finally:
                compiled.end(job, temporary)

    def _parts(self) -> Preparer:
        if self._preparer is None:
            from rye.context import Context
            from rye.executor.run.prepare import Preparer
            from rye.executor.run.primitives import PRIMITIVE_MAP

            self._preparer = Preparer(self._context or Context.from_machine(), PRIMITIVE_MAP)
        return self._preparer

    def _recorded(self, parts: Preparer) -> Recorder:
        if self._recorder is None:
            from rye.executor.run.recorded import Recorder

            self._recorder = Recorder(parts, moves=False)
        return self._recorder

    def _snapshot_of(self, item_id: str) -> Snapshot | None:
        """The snapshot that :meth:`declared_schema` made for this call, if it was just asked."""
        seen, self._seen = self._seen, None
        return seen[1] if seen is not None and seen[0] == item_id else None

    def _run(
        self,
        config: ExecutionConfig,
        on_output: NamingOutput | None,
        listener: Listener | None,
        source: int | None,
        recording: Recording,
    ) -> Any:
        from rye.executor.config.build import MCP_TOOL
        from rye.spaces.ids import SUBPROCESS

        if config.primitive_id == SUBPROCESS and MCP_TOOL not in config.config:
            from rye.executor.run.announcement import Announcement
            from rye.executor.run.channel import Conversation

            conversation = Conversation(listener, source)
            announcement = Announcement(recording, conversation, self._parts().context.user_space)
            self._announcement = announcement
            result = self._subprocess.execute(
                config.config, config.params, on_output=on_output, dialogue=conversation.dialogue
            )
            announcement.result = result
            return result
        return _run_in_loop(config, on_output, listener, self._parts().context, recording)


def _run_in_loop(
    config: ExecutionConfig,
    on_output: NamingOutput | None,
    listener: Listener | None,
    context: Context,
    recording: Recording,
) -> Any:
    """Run any other primitive, in an event loop that ends with it."""
    import asyncio

    from rye.executor.run.announcer import Announcer
    from rye.executor.run.interruptible_loop import run_interruptibly
    from rye.executor.run.live_run import cancelled_on_page
    from rye.executor.run.primitives import PRIMITIVE_MAP, PrimitivePool
    from rye.recording.record import CANCELLED, FAILED, OK

    async def run() -> Any:
        pool = PrimitivePool(PRIMITIVE_MAP, context.user_space)
        announcer = Announcer(context.user_space)
        live = announcer.begin(recording, None)
        outcome = CANCELLED
        try:
            result = await pool.run(config, on_output, listener, live)
            outcome = OK if result.success else FAILED
        except asyncio.CancelledError:
            if live is None or not live.takes_cancellation():
                raise
            raise cancelled_on_page(recording.item_id) from None
        finally:
            if live is not None:
                announcer.withdraw(live, outcome)
            announcer.close()
            await pool.aclose()
        return result

    return run_interruptibly(run())
