"""Calls that are started from the page."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from rye.errors import BusyError
from rye.live.seen import (
    THIS_PAGE,
    Part,
    SeenRun,
    SeenRuns,
    Told,
    WaitingQuestion,
    shown_parameters,
)
from rye.recording.record import CANCELLED, UI, Caller
from rye.recording.run_ids import new_run_id

if TYPE_CHECKING:
    from rye.context import Context
    from rye.executor.run.channel import Progress, Question, Reply
    from rye.executor.run.execute import PrimitiveExecutor
    from rye.executor.run.prepare import PreparedCall
    from rye.executor.run.result import ExecutionResult

_MAX_CALLS = 32
_EVERY_SECONDS = 0.1


class Calls:
    """Runs tools for the person at the page."""

    def __init__(self, context: Context, runs: SeenRuns) -> None:
        self._context = context
        self._runs = runs
        self._loop: asyncio.AbstractEventLoop | None = None
        self._executor: PrimitiveExecutor | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def start(self, item_id: str, parameters: Mapping[str, Any]) -> str:
        """Start a call and return the id of its run at once; ``/runs/{id}`` shows its output.

        May be called by any thread. What is wrong with the call is said on the page of the run.
        Raises ``BusyError`` if too many calls run.
        """
        if self._loop is None or len(self._tasks) >= _MAX_CALLS:
            raise BusyError(
                f"the page runs {len(self._tasks)} calls already", hint="wait until one has ended"
            )
        run_id = new_run_id(int(time.time() * 1000))
        run = SeenRun(run_id, item_id, THIS_PAGE)
        run.project = str(self._context.project_path)
        self._runs.add(run)
        self._loop.call_soon_threadsafe(self._begin, run, dict(parameters))
        return run_id

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Calls may be started during the block; they have ended after it."""
        self._loop = asyncio.get_running_loop()
        try:
            yield
        finally:
            self._loop = None
            tasks = list(self._tasks.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if self._executor is not None:
                await self._executor.aclose()

    async def end_replays(self) -> None:
        """Cancel replays, which run within their requests, until this is cancelled itself."""
        while True:
            for run in self._runs.under_way:
                if run.is_ours and run.told is not None:
                    await run.told.cancel()
            # One that has just begun is not known yet.
            await asyncio.sleep(_EVERY_SECONDS)

    def _begin(self, run: SeenRun, parameters: Mapping[str, Any]) -> None:
        task = asyncio.create_task(self._call(run, parameters))
        self._tasks[run.run_id] = task
        task.add_done_callback(lambda _: self._tasks.pop(run.run_id, None))

    async def _call(self, run: SeenRun, parameters: Mapping[str, Any]) -> None:
        if self._executor is None:
            from rye.executor.run.execute import PrimitiveExecutor

            self._executor = PrimitiveExecutor(context=self._context)
        asker = _Asker(run)
        run.told = Told(lambda: self._cancel(run), asker.take)

        async def note(call: PreparedCall) -> bool:
            from rye.recording.digests import Secrets

            masked = Secrets(call.chain[0].metadata.config_schema).masked(call.parameters)
            run.parameters = shown_parameters(masked)
            return False

        def add(stream: str, text: str) -> None:
            (run.stderr if stream == "stderr" else run.stdout).add_text(text)

        try:
            result = await self._executor.execute(
                run.item,
                parameters,
                on_output=add,
                listener=asker,
                approve=note,
                caller=Caller(kind=UI),
                run_id=run.run_id,
            )
        except asyncio.CancelledError:
            run.end(CANCELLED, "you cancelled it")
            raise
        _finish(run, result)

    async def _cancel(self, run: SeenRun) -> str:
        task = self._tasks.get(run.run_id)
        if task is None:
            return "the call has ended"
        task.cancel()
        await asyncio.wait([task])
        return ""


def _finish(run: SeenRun, result: ExecutionResult) -> None:
    from rye.executor.run.recorded import OUTCOME_OF_ERROR
    from rye.recording.record import OK, REFUSED

    if "return_code" not in result.metadata and result.data is not None:
        # A tool that prints nothing, such as a request.
        data = result.data
        run.stdout.add_text(data if isinstance(data, str) else json.dumps(data, indent=2))
    kind = str(result.metadata.get("error_type"))
    outcome = OK if result.success else OUTCOME_OF_ERROR.get(kind, REFUSED)
    run.end(outcome, result.error or "", result.duration_ms)


class _Asker:
    """What a tool reports and asks during a call of the page."""

    def __init__(self, run: SeenRun) -> None:
        self._run = run
        self._waiting: dict[str, asyncio.Future[Mapping[str, Any]]] = {}

    def progress(self, progress: Progress) -> None:
        self._run.part = Part(progress.progress, progress.total, progress.message)

    async def ask(self, question: Question) -> Reply:
        from rye.executor.run.channel import DECLINED, answered
        from rye.mcp.elicitation import QuestionForm

        form = QuestionForm(question.schema)
        fault = ""
        while True:
            message = f"{question.message}\n\n{fault}" if fault else question.message
            answer = await self._answer_of(message, form.schema)
            if answer.get("action") != "accept":
                return DECLINED
            value, fault = form.read(answer.get("content") or {})
            if not fault:
                return answered(value)

    async def _answer_of(self, message: str, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        question_id = secrets.token_hex(8)
        future: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[question_id] = future
        waiting = WaitingQuestion(question_id, message, schema)
        self._run.questions = {**self._run.questions, question_id: waiting}
        try:
            return await future
        finally:
            left = {name: one for name, one in self._run.questions.items() if name != question_id}
            self._run.questions = left
            del self._waiting[question_id]

    async def take(self, question_id: str, answer: Mapping[str, Any]) -> str:
        """Answer a question; return why that was not possible."""
        future = self._waiting.get(question_id)
        if future is None or future.done():
            return "the question has been answered"
        future.set_result(answer)
        return ""
