"""Every call that is not a dry run leaves a record: from its parts to a line in the spool.

::

    recording = recorder.begin(item_id, parameters, caller)
    recording.prepared(call)
    recording.ran(result)                  what the primitive returned
    result = recording.finished(result, chain)

A call never fails because of its record: what goes wrong is in ``metadata["history_error"]``, once
for each executor.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence

from lilux.primitives.errors import IntegrityError
from lilux.primitives.integrity import canonical_json
from lilux.record import replaced
from lilux.runtime.env_resolver.interpreters import which

from rye.context import Context
from rye.errors import HistoryError
from rye.executor.caches import BoundedDict
from rye.executor.run.prepare import PreparedCall, Preparer
from rye.executor.run.result import ExecutionResult
from rye.items.element import ChainElement
from rye.items.permissions import permissions_to_json
from rye.recording.digests import Secrets, digest, digest_of_description
from rye.recording.interpreters import stamp
from rye.recording.record import (
    CANCELLED,
    ERROR,
    FAILED,
    OK,
    REFUSED,
    TIMEOUT,
    Caller,
    line_of,
    this_program,
    trace_id,
    utc_text,
)
from rye.recording.run_ids import new_run_id
from rye.recording.settings import HistoryConfig, HistorySettings
from rye.recording.spool import append, history_folder
from rye.spaces.ids import HTTP_CLIENT, SUBPROCESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rye.recording.writer import Writer

_FROM_A_RUN = {
    "ToolFailed": FAILED,
    "ToolTimedOut": TIMEOUT,
    "RequestFailed": FAILED,
    "PrimitiveFailed": FAILED,
    "ToolNotStarted": ERROR,
    "NotEnforcedError": REFUSED,
}
"""The error types of a call that passed every check. Their messages may contain output."""


class Recorder:
    """Records the calls of one executor."""

    def __init__(self, preparer: Preparer, *, moves: bool = False) -> None:
        """``moves`` is for a long-lived program: it moves its lines into the database, too."""
        self._preparer = preparer
        self._config = HistoryConfig(preparer.context, preparer.library.disk_cache)
        self._folder = history_folder(preparer.context.user_space)
        self._writer: Writer | None = None
        if moves:
            from rye.recording.writer import Writer

            self._writer = Writer(self._folder)
        self._reported = False
        self._program: Caller | None = None
        self._chains: dict[str, tuple[Sequence[ChainElement], Secrets, dict[str, Any]]] = (
            BoundedDict()
        )

    def begin(
        self, item_id: str, parameters: Mapping[str, Any] | None, caller: Caller | None
    ) -> Recording:
        """Return the record of a call that begins now."""
        if caller is None:
            caller = self._program = self._program or this_program()
        return Recording(self, item_id, parameters, caller)

    def finish(self, recording: Recording, fields: dict[str, Any]) -> dict[str, Any]:
        """Append the record to the spool, and return what the metadata says about it."""
        error: HistoryError | None = None
        try:
            settings = self._config.current()
        except HistoryError as fault:
            settings, error = HistorySettings(), fault
        noted: dict[str, Any] = {}
        if settings.enabled:
            try:
                record = recording.record(fields, settings)
                append(
                    self._folder,
                    record["id"],
                    line_of(record),
                    max_bytes=settings.retention.size,
                )
                noted["run_id"] = record["id"]
                if self._writer is not None:
                    self._writer.appended(settings.retention)
                    error = error or self._writer.fault
            except HistoryError as fault:
                error = fault
            except Exception as fault:  # noqa: BLE001 - the call itself is over, and well
                error = HistoryError(f"unexpected {type(fault).__name__} in the record")
        if error is not None and not self._reported:
            self._reported = True
            noted["history_error"] = str(error)
        return noted

    def about(self, chain: Sequence[ChainElement]) -> tuple[Secrets, dict[str, Any]]:
        """What the records of a chain have in common; kept until the chain is built again."""
        tool = chain[0].item_id
        known = self._chains.get(tool)
        if known is None or known[0] is not chain:
            known = self._chains[tool] = (
                chain,
                Secrets(chain[0].metadata.config_schema),
                _fields_of_chain(chain),
            )
        return known[1], known[2]

    def program(self, command: str, env: Mapping[str, str]) -> dict[str, Any]:
        """The program that a call starts, as it is now."""
        path = command if os.sep in command else which(command, env) or command
        return stamp(str(path))

    @property
    def context(self) -> Context:
        """The context of the executor."""
        return self._preparer.context

    def permissions(self, call: PreparedCall) -> dict[str, Any] | None:
        """Everything that the call may do; ``None`` if the tool is not confined."""
        if call.chain[0].metadata.permissions is None:
            return None
        confining = self._preparer.confining
        return permissions_to_json(confining.permissions(call.chain, call.options.widening))


class Recording:
    """One call on its way to a record. Use it once."""

    def __init__(
        self,
        recorder: Recorder,
        item_id: str,
        parameters: Mapping[str, Any] | None,
        caller: Caller,
    ) -> None:
        self._recorder = recorder
        self._item_id = item_id
        self._parameters = {} if parameters is None else parameters
        self._caller = caller
        self._started = time.time_ns() // 1_000_000
        self._clock = time.perf_counter()
        self._call: PreparedCall | None = None
        self._result: Any = None
        self._ms: dict[str, float] = {}

    def prepared(self, call: PreparedCall) -> None:
        """Note that everything was checked, and that the tool starts."""
        self._call = call
        self._lap("prepare")

    def asked(self) -> None:
        """Note that the user was asked about the call, and agreed."""
        self._lap("ask")

    def ran(self, result: Any) -> None:
        """Note what the primitive returned."""
        self._result = result
        self._lap("run")

    def finished(self, result: ExecutionResult, chain: Sequence[ChainElement]) -> ExecutionResult:
        """Append the record, and return the result with the id of the run in its metadata."""
        metadata = result.metadata
        fields = self._outcome(result)
        fields["chain"] = chain
        if confinement := metadata.get("confinement"):
            fields["enforced"] = confinement["enforced"]
            if confinement["missing"]:
                fields["missing"] = confinement["missing"]
        for name in ("closure", "limit", "survivors", "background_ended", "status_code"):
            if value := metadata.get(name):
                fields[name] = value
        if autopsy := metadata.get("autopsy"):
            fields["autopsy"] = autopsy
        noted = self._recorder.finish(self, fields)
        return replaced(result, metadata={**metadata, **noted}) if noted else result

    def cancelled(self, chain: Sequence[ChainElement]) -> None:
        """Append the record of a call that was cancelled or interrupted."""
        self._recorder.finish(self, {"outcome": CANCELLED, "chain": chain})

    def record(self, fields: dict[str, Any], settings: HistorySettings) -> dict[str, Any]:
        """Return the record: what the call is, and ``fields``."""
        chain = fields.pop("chain")
        secrets, about = self._recorder.about(chain) if chain else (Secrets(None), {})
        item = about.get("item", self._item_id)
        self._ms["total"] = self._since_start()
        caller = self._caller
        record: dict[str, Any] = {
            "id": new_run_id(self._started),
            "time": utc_text(self._started),
            "by": caller.kind,
            "item": item,
            "project": str(self._recorder.context.project_path),
            **about,
            **fields,
            "ms": {name: round(taken, 3) for name, taken in self._ms.items()},
        }
        for name in ("client", "token", "program", "traceparent", "replays", "shown"):
            if value := getattr(caller, name):
                record[name] = value
        if trace := trace_id(caller.traceparent):
            record["trace_id"] = trace
        if (call := self._call) is not None:
            self._add_call(record, call)
        keeps = bool(chain) and settings.keeps_parameters(item)
        record["parameters"] = _parameters(self._parameters, secrets, keeps=keeps)
        keeps = bool(chain) and settings.keeps_output(item)
        if "autopsy" in record and not keeps:
            record["autopsy"] = _without_output(record["autopsy"])
        if self._result is not None and call is not None:
            record["output"] = _output(call.config.primitive_id, self._result, keeps=keeps)
        return record

    def _add_call(self, record: dict[str, Any], call: PreparedCall) -> None:
        config = call.config.config
        if call.config.primitive_id == SUBPROCESS:
            record["environment"] = sorted(config["env"])
            record["interpreter"] = self._recorder.program(config["command"], config["env"])
        permissions = self._recorder.permissions(call)
        if permissions is not None:
            record["permissions"] = permissions
        if call.options.widening is not None:
            record["widened"] = True

    def _outcome(self, result: ExecutionResult) -> dict[str, Any]:
        metadata = result.metadata
        fields: dict[str, Any] = {"outcome": OK}
        if not result.success:
            kind = str(metadata.get("error_type"))
            fields["outcome"] = _FROM_A_RUN.get(kind) or (ERROR if self._result else REFUSED)
            fields["error_type"] = kind
            if self._result is None:
                # The message of a check never contains a value.
                fields["reason"] = result.error
        if "return_code" in metadata:
            fields["exit"] = metadata["return_code"]
        if "signal" in metadata:
            fields["signal"] = metadata["signal"]
        return fields

    def _lap(self, name: str) -> None:
        self._ms[name] = self._since_start() - sum(self._ms.values())

    def _since_start(self) -> float:
        return (time.perf_counter() - self._clock) * 1000


def _fields_of_chain(chain: Sequence[ChainElement]) -> dict[str, Any]:
    tool = chain[0]
    metadata = tool.metadata
    return {
        "item": tool.item_id,
        "version": tool.version,
        "space": tool.space,
        "signers": list(dict.fromkeys([one.signer for one in chain if one.signer])),
        "chain": {one.item_id: one.integrity for one in chain},
        "described": digest_of_description(metadata.description, metadata.config_schema),
    }


def _parameters(given: Any, secrets: Secrets, *, keeps: bool) -> dict[str, Any]:
    """The digest of the parameters, and their values if they are kept.

    A caller of the API may pass anything, such as a mapping that contains itself.
    """
    if not isinstance(given, Mapping):
        return {}
    masked = secrets.masked(given)
    try:
        described: dict[str, Any] = {"sha256": digest(canonical_json(masked).encode("ascii"))}
    except IntegrityError:
        return {}
    if keeps:
        described["values"] = masked
    return described


def _without_output(autopsy: Mapping[str, Any]) -> dict[str, Any]:
    """What the processes waited for, without what they printed and the values in their stacks."""
    kept = ("pid", "parent", "command", "state", "cpu_seconds", "memory_bytes", "waits_for")
    processes = [{name: one[name] for name in kept if name in one} for one in autopsy["processes"]]
    rest = {name: value for name, value in autopsy.items() if name not in ("processes", "output")}
    return {**rest, "processes": processes}


def _output(primitive: str, result: Any, *, keeps: bool) -> dict[str, Any]:
    """Sizes and digests of the output, and the output itself if it is kept."""
    if primitive == SUBPROCESS:
        return {
            "stdout": _stream(result.raw_stdout, result.stdout, result.truncated_stdout, keeps),
            "stderr": _stream(result.raw_stderr, result.stderr, result.truncated_stderr, keeps),
        }
    body = result.body if primitive == HTTP_CLIENT else None
    if body is None:
        return {}
    text = body if isinstance(body, str) else canonical_json(body)
    return {"body": _stream(None, text, 0, keeps)}


def _stream(raw: bytes | None, text: str, left_out: int, keeps: bool) -> dict[str, Any]:
    data = text.encode("utf-8", "surrogatepass") if raw is None else raw
    described: dict[str, Any] = {"bytes": len(data), "sha256": digest(data)}
    if left_out:
        described["left_out"] = left_out
    if keeps and raw is None:
        described["text"] = text
    elif keeps:
        described["hex"] = data.hex()
    return described
