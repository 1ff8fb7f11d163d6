"""The process primitive: run, detach, kill and query processes through ``lilux-proc``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from lilux.primitives.subprocess.aio import Helper, helper_of_loop
from lilux.primitives.subprocess.binary import find_helper
from lilux.primitives.subprocess.confinement import ConfinementReport, probe_report
from lilux.primitives.subprocess.dialogue import Dialogue
from lilux.primitives.subprocess.output import OnAutopsy, OnOutput
from lilux.primitives.subprocess.prepared import PreparedProcess, prepare
from lilux.primitives.subprocess.relay import run_job
from lilux.primitives.subprocess.request import (
    arguments,
    asking_for_autopsy,
    check_pid,
    check_seconds,
    effective_env,
    exec_request,
    path_text,
)
from lilux.primitives.subprocess.result import SubprocessResult, exec_result, not_started
from lilux.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["KillResult", "SpawnResult", "StatusResult", "SubprocessPrimitive", "SubprocessResult"]


class SpawnResult(Record):
    """The result of starting a detached process."""

    success: bool
    pid: int | None = None
    error: str | None = None
    start_time: int | None = None
    """Distinguishes the process from a later one with the same pid; pass it to ``kill`` and
    ``status``."""


class KillResult(Record):
    """The result of killing a process."""

    success: bool
    pid: int = 0
    method: str = ""
    """``terminated``, ``killed`` or ``already_dead``."""
    error: str | None = None


class StatusResult(Record):
    """The state of a process; a zombie is not alive."""

    pid: int
    alive: bool


class SubprocessPrimitive:
    """Runs processes. It has no state: the helper belongs to the event loop.

    Raises :class:`~lilux.primitives.errors.ConfigurationError` if ``lilux-proc`` is not installed.
    """

    def __init__(self) -> None:
        self._lilux_proc = find_helper()

    async def execute(
        self,
        config: Mapping[str, Any],
        params: Mapping[str, Any] | None = None,
        *,
        on_output: OnOutput | None = None,
        on_autopsy: OnAutopsy | None = None,
        dialogue: Dialogue | None = None,
    ) -> SubprocessResult:
        """Run ``config["command"]`` and wait for it and for every process that it started.

        ``on_output(stream, text)`` gets output while the job runs; it may be a coroutine function.
        In its text, lone surrogates represent bytes that are not UTF-8, as in PEP 383.
        An invalid config gives a failed result that names the key. If the task is cancelled, the
        whole process tree is ended first; ``on_autopsy(autopsy)``, which must not raise, gets what
        its processes waited for, as ``SubprocessResult.autopsy`` has it after a timeout.
        ``dialogue`` talks to the job while it runs. Raises
        :class:`~lilux.primitives.errors.HelperError` if the helper dies or stops answering.
        """
        try:
            request = exec_request(config, {} if params is None else params)
            helper = await self._helper()
            fields, data = asking_for_autopsy(request.fields, on_autopsy), request.input_data
            answer, missed = await run_job(
                helper,
                fields,
                data,
                on_output=on_output,
                on_autopsy=on_autopsy,
                dialogue=dialogue,
            )
            return exec_result(answer, missed)
        except ValueError as error:
            return not_started(str(error))

    async def prepare(
        self, config: Mapping[str, Any], params: Mapping[str, Any] | None = None
    ) -> PreparedProcess:
        """Start a process that is copied for each call, and wait until it has printed a line.

        The program must know how to be copied; see ``docs/warm-starts.md``. Its stdout is only for
        that line. Raises ``ValueError`` for an invalid config, and
        :class:`~lilux.primitives.errors.NotPreparedError` with what it printed to stderr if it ends
        before the line.
        """
        request = exec_request(config, {} if params is None else params)
        return await prepare(await self._helper(), request)

    async def spawn(
        self,
        cmd: str,
        args: Sequence[str],
        log_path: str | os.PathLike[str] | None = None,
        envs: Mapping[str, str] | None = None,
    ) -> SpawnResult:
        """Start a process that outlives this one, and return once it runs.

        Its environment is that of this process, updated with ``envs``.
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
        """Send SIGTERM, wait up to ``grace`` seconds, send SIGKILL.

        The signals go to the whole process group if ``pid`` is its leader.
        """
        try:
            check_pid(pid)
            check_seconds("grace", grace)
            fields = {"op": "kill", "pid": pid, "grace": grace, "start_time": start_time}
            header = await self._ask(fields)
        except ValueError as error:
            return KillResult(success=False, pid=pid, error=str(error))
        return KillResult(header["success"], pid, header["method"], header["error"])

    async def status(self, pid: int, *, start_time: int | None = None) -> StatusResult:
        """Return the state of the process. A number that cannot be a pid is not alive."""
        try:
            check_pid(pid)
            header = await self._ask({"op": "status", "pid": pid, "start_time": start_time})
        except ValueError:
            return StatusResult(pid, alive=False)
        return StatusResult(pid, header["alive"])

    async def probe_confinement(self) -> ConfinementReport:
        """Return which parts of a confinement this machine can enforce."""
        return probe_report((await (await self._helper()).request({"op": "probe"})).header)

    async def _ask(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        header = (await (await self._helper()).request(fields)).header
        if header["kind"] == "error":
            raise ValueError(header["message"])
        return header

    async def _helper(self) -> Helper:
        return await helper_of_loop(lambda: self._lilux_proc)
