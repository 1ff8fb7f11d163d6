"""A prepared process: a program that has loaded everything, and is copied for each call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from lilux.primitives.errors import LiluxError, NotPreparedError
from lilux.primitives.subprocess.aio import Helper
from lilux.primitives.subprocess.dialogue import Dialogue
from lilux.primitives.subprocess.output import OnAutopsy, OnOutput
from lilux.primitives.subprocess.relay import run_job
from lilux.primitives.subprocess.request import ExecRequest, asking_for_autopsy, exec_request
from lilux.primitives.subprocess.result import SubprocessResult, exec_result, not_started
from lilux.primitives.subprocess.wire import Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MAX_LINE = 64 * 1024
_MAX_COMPLAINT = 16 * 1024


class PreparedProcess:
    """A prepared process. It ends with its helper, by :meth:`aclose`, or by itself."""

    def __init__(self, helper: Helper) -> None:
        self._helper = helper
        self._number = 0
        self._job: asyncio.Task[Answer | LiluxError] | None = None
        self._printed = _FirstLine()

    @property
    def report(self) -> bytes:
        """The line that it printed when it was ready."""
        return self._printed.line

    @property
    def alive(self) -> bool:
        """True if it may take a call."""
        return self._helper.alive and self._job is not None and not self._job.done()

    async def execute(
        self,
        config: Mapping[str, Any],
        params: Mapping[str, Any] | None = None,
        *,
        on_output: OnOutput | None = None,
        on_autopsy: OnAutopsy | None = None,
        dialogue: Dialogue | None = None,
    ) -> SubprocessResult:
        """Make a call: like ``SubprocessPrimitive.execute``, but a copy of this process runs.

        The confinement has to be that of this process. Raises :class:`NotPreparedError` if no copy
        can be made; the call has had no effect then.
        """
        try:
            request = exec_request(config, {} if params is None else params)
            if not self.alive:
                raise NotPreparedError(
                    "the prepared process is not running", hint="prepare it again"
                )
            fields = asking_for_autopsy(request.fields, on_autopsy)
            fields = {**fields, "start": {"prepared": self._number}}
            data = request.input_data
            answer, missed = await run_job(
                self._helper,
                fields,
                data,
                on_output=on_output,
                on_autopsy=on_autopsy,
                dialogue=dialogue,
            )
        except ValueError as error:
            return not_started(str(error))
        if answer.header.get("error") == "not_prepared":
            reason, _, hint = answer.header["message"].partition("; ")
            raise NotPreparedError(reason, hint=hint)
        return exec_result(answer, missed)

    async def aclose(self) -> None:
        """End the process; calls that run go on. May be called again."""
        if self._job is not None:
            self._job.cancel()
            await asyncio.wait([self._job])

    async def _start(self, request: ExecRequest) -> None:
        resting = {"start": "prepare", "stream": True, "timeout": None}
        job = self._helper.request(
            {**request.fields, **resting, "output_limit": _MAX_COMPLAINT},
            request.input_data,
            self._printed,
            on_number=self._set_number,
        )
        self._job = asyncio.create_task(_quiet(job))
        ready = asyncio.ensure_future(self._printed.wait())
        try:
            await asyncio.wait([self._job, ready], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self.aclose()
            raise
        finally:
            ready.cancel()
        if not self._printed.line:
            await self.aclose()
            raise NotPreparedError(_reason(self._job.result()))

    def _set_number(self, number: int) -> None:
        self._number = number


async def prepare(helper: Helper, request: ExecRequest) -> PreparedProcess:
    """Start a prepared process; see ``SubprocessPrimitive.prepare``."""
    process = PreparedProcess(helper)
    await process._start(request)
    return process


async def _quiet(job: Awaitable[Answer]) -> Answer | LiluxError:
    """The answer of the job, or why there is none: nobody may wait for the task."""
    try:
        return await job
    except LiluxError as error:
        return error


def _reason(outcome: Answer | LiluxError) -> str:
    if isinstance(outcome, LiluxError):
        return str(outcome)
    return exec_result(outcome, None).stderr.strip() or "the process ended before it was ready"


class _FirstLine:
    """Keeps the first line of stdout."""

    def __init__(self) -> None:
        self.line = b""
        self._part = b""
        self._complete = asyncio.Event()

    async def wait(self) -> None:
        await self._complete.wait()

    def take(self, stream: str, data: bytes, _pause: Callable[[bool], None]) -> None:
        if stream != "stdout" or self.line or len(self._part) > _MAX_LINE:
            return
        self._part += data
        line, end, _ = self._part.partition(b"\n")
        if end:
            self.line = line
            self._complete.set()
