"""The result of a job, made from the answer of ``lilux-proc``."""

from __future__ import annotations

from lilux.primitives.subprocess.wire import Answer
from lilux.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from lilux.primitives.subprocess.confinement import ConfinementReport
    from lilux.primitives.subprocess.observation import Observation


class SubprocessResult(Record):
    """The result of a job."""

    success: bool
    """True if the return code is 0."""
    stdout: str
    stderr: str
    return_code: int
    """The exit code; 128 + n after signal n; -1 if the job did not start or timed out."""
    duration_ms: float
    timed_out: bool = False
    signal: int | None = None
    """The signal that killed the process, if any."""
    truncated_stdout: int = 0
    """Bytes left out in the middle of ``stdout``."""
    truncated_stderr: int = 0
    tree_known_by: str = "not_started"
    """How the processes of the job were tracked: ``subreaper`` (all of them were),
    ``process_group``, ``unknown``, or ``not_started``."""
    background_ended: int = 0
    """Number of processes that outlived the command and were ended."""
    survivors: tuple[int, ...] = ()
    """Pids of processes that could not be ended."""
    output_error: str | None = None
    """Why output did not reach a callback or a file, if that failed."""
    limit: str | None = None
    """The limit of its confinement that the job exceeded: ``memory``, ``cpu``, ``processes`` or
    ``file_size``."""
    confinement: ConfinementReport | None = None
    """What was enforced, if the job was confined and started."""
    autopsy: Mapping[str, Any] | None = None
    """What the processes waited for when the time was over: ``processes`` (each with ``pid``,
    ``parent``, ``command``, ``state``, ``cpu_seconds``, ``memory_bytes``, ``waits_for`` and perhaps
    ``stack``), ``unexamined``, ``output`` (the last lines), ``elapsed_ms``, and ``missing`` if
    something could not be found out. No text contains a value of the environment."""
    observation: Observation | None = None
    """What the job tried, if that was asked for with ``observe`` and the job started."""
    raw_stdout: bytes | None = None
    """The bytes, if they are not UTF-8: then ``stdout`` has replacement characters."""
    raw_stderr: bytes | None = None


def not_started(reason: str) -> SubprocessResult:
    """Return the result of a job that was not started."""
    return SubprocessResult(
        success=False, stdout="", stderr=reason, return_code=-1, duration_ms=0.0
    )


def exec_result(answer: Answer, output_error: str | None) -> SubprocessResult:
    """Return the result in an answer; ``output_error`` is why a callback missed output."""
    header, payload = answer.header, answer.payload
    if header["kind"] == "error":
        return not_started(header["message"])
    confinement = None
    if "confinement" in header:
        from lilux.primitives.subprocess.confinement import confinement_report

        confinement = confinement_report(header["confinement"])
    observation = None
    if "observation" in header:
        from lilux.primitives.subprocess.observation import observation_of

        observation = observation_of(header["observation"])
    cut = header["stdout_bytes"]
    stdout, raw_stdout = _decoded(payload[:cut])
    stderr, raw_stderr = _decoded(payload[cut:])
    tree = header["tree"]
    return SubprocessResult(
        success=header["success"],
        stdout=stdout,
        stderr=stderr,
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
        limit=header.get("limit"),
        confinement=confinement,
        autopsy=header.get("autopsy"),
        observation=observation,
        raw_stdout=raw_stdout,
        raw_stderr=raw_stderr,
    )


def _decoded(data: bytes) -> tuple[str, bytes | None]:
    """The text, and the bytes if the text does not say what they are."""
    try:
        return data.decode(), None
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace"), data
