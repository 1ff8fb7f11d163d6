"""Processes: run and wait, detach, end, ask. Everything goes through ``lilux-proc``."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from lilux.primitives.helper import Helper, helper_of_loop
from lilux.primitives.helper_process import find_helper
from lilux.primitives.helper_wire import Answer
from lilux.primitives.output_relay import OutputRelay
from lilux.primitives.record import Record
from lilux.primitives.subprocess_config import (
    arguments,
    check_pid,
    check_seconds,
    effective_env,
    exec_request,
    path_text,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OnOutput = Callable[[str, str], object]


class SubprocessResult(Record):
    """The end of a job."""

    success: bool
    """True if the return code is 0."""
    stdout: str
    stderr: str
    return_code: int
    """The exit code; 128 + n after signal n; -1 if it did not start or timed out."""
    duration_ms: float
    timed_out: bool = False
    signal: int | None = None
    """The signal that ended the process, if one did."""
    truncated_stdout: int = 0
    """Bytes left out in the middle of ``stdout``."""
    truncated_stderr: int = 0
    tree_known_by: str = "not_started"
    """How it is known what became of the job's processes: ``subreaper`` (all were seen),
    ``process_group``, ``unknown``, or ``not_started``."""
    background_ended: int = 0
    """Processes that outlived the job's own and were ended."""
    survivors: tuple[int, ...] = ()
    """Processes that could not be ended."""
    output_error: str | None = None
    """Why output did not reach a callback or a file, if it did not."""


class SpawnResult(Record):
    """The start of a detached process."""

    success: bool
    pid: int | None = None
    error: str | None = None
    start_time: int | None = None
    """Tells the process from a later one with the same pid; for ``kill`` and ``status``."""


class KillResult(Record):
    """The end of a process by its pid."""

    success: bool
    pid: int = 0
    method: str = ""
    """``terminated``, ``killed`` or ``already_dead``."""
    error: str | None = None


class StatusResult(Record):
    """Whether a process is alive; a zombie is not."""

    pid: int
    alive: bool


class SubprocessPrimitive:
    """Runs processes. Stateless: the helper belongs to the event loop, not to this object.

    Raises :class:`~lilux.primitives.errors.ConfigurationError` if ``lilux-proc`` is not there.
    """

    def __init__(self) -> None:
        self._lilux_proc = find_helper()

    async def execute(
        self,
        config: Mapping[str, Any],
        params: Mapping[str, Any] | None = None,
        *,
        on_output: OnOutput | None = None,
    ) -> SubprocessResult:
        """Runs ``config["command"]`` and waits for it and for all that it started.

        ``on_output(stream, text)`` gets output as it comes; it may be a coroutine function.
        A config that makes no sense gives a failed result that names the key. Cancelling the
        task ends the whole tree first. Raises :class:`~lilux.primitives.errors.HelperError` if
        the helper dies.
        """
        try:
            request = exec_request(config, {} if params is None else params)
            helper = await self._helper()
            if on_output is None:
                return _exec_result(await helper.request(request.fields, request.input_data), None)
            async with OutputRelay(on_output) as relay:
                fields = {**request.fields, "stream": True}
                answer = await helper.request(fields, request.input_data, relay)
            return _exec_result(answer, relay.error)
        except ValueError as error:
            return _not_started(str(error))

    async def spawn(
        self,
        cmd: str,
        args: Sequence[str],
        log_path: str | os.PathLike[str] | None = None,
        envs: Mapping[str, str] | None = None,
    ) -> SpawnResult:
        """Starts a process that outlives this one, once it really runs.

        Its environment is this process's own with ``envs`` laid over it.
        """
        try:
            fields = {
                "op": "spawn",
                "command": path_text("cmd", cmd),
                "args": arguments(args),
                "log_file": None if log_path is None else path_text("log_path", log_path),
                "env": effective_env(envs, "merge"),
                "env_mode": "exact",
            }
            header = await self._ask(fields)
        except ValueError as error:
            return SpawnResult(success=False, error=str(error))
        return SpawnResult(header["success"], header["pid"], header["error"], header["start_time"])

    async def kill(
        self, pid: int, grace: float = 3.0, *, start_time: int | None = None
    ) -> KillResult:
        """SIGTERM, up to ``grace`` seconds, SIGKILL; a group if ``pid`` leads one."""
        try:
            check_pid(pid)
            check_seconds("grace", grace)
            fields = {"op": "kill", "pid": pid, "grace": grace, "start_time": start_time}
            header = await self._ask(fields)
        except ValueError as error:
            return KillResult(success=False, pid=pid, error=str(error))
        return KillResult(header["success"], pid, header["method"], header["error"])

    async def status(self, pid: int, *, start_time: int | None = None) -> StatusResult:
        """Whether the process is alive. A number that can be no pid is not."""
        try:
            check_pid(pid)
            header = await self._ask({"op": "status", "pid": pid, "start_time": start_time})
        except ValueError:
            return StatusResult(pid, alive=False)
        return StatusResult(pid, header["alive"])

    async def _ask(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        header = (await (await self._helper()).request(fields)).header
        if header["kind"] == "error":
            raise ValueError(header["message"])
        return header

    async def _helper(self) -> Helper:
        return await helper_of_loop(lambda: self._lilux_proc)


def _not_started(reason: str) -> SubprocessResult:
    return SubprocessResult(
        success=False, stdout="", stderr=reason, return_code=-1, duration_ms=0.0
    )


def _exec_result(answer: Answer, output_error: str | None) -> SubprocessResult:
    header, payload = answer.header, answer.payload
    if header["kind"] == "error":
        return _not_started(header["message"])
    cut = header["stdout_bytes"]
    tree = header["tree"]
    return SubprocessResult(
        success=header["success"],
        stdout=payload[:cut].decode("utf-8", "replace"),
        stderr=payload[cut:].decode("utf-8", "replace"),
        return_code=header["return_code"],
        duration_ms=header["duration_ms"],
        timed_out=header["timed_out"],
        signal=header["signal"],
        truncated_stdout=header["truncated"]["stdout"],
        truncated_stderr=header["truncated"]["stderr"],
        tree_known_by=tree["known_by"],
        background_ended=tree["ended"],
        survivors=tuple(tree["survivors"]),
        output_error=output_error or header.get("file_error"),
    )
