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

from rye.errors import HistoryError
from rye.executor.caches import BoundedDict
from rye.executor.config.build import MCP_TOOL
from rye.executor.run.prepare import PreparedCall, Preparer
from rye.executor.run.result import ExecutionResult
from rye.items.element import ChainElement
from rye.items.permissions import permissions_to_json
from rye.recording.digests import (
    ANSWER_OF_SERVER,
    Secrets,
    digest,
    digest_of_description,
    output_digests,
    without_output,
)
from rye.recording.interpreters import stamp
from rye.recording.record import (
    CANCELLED,
    ERROR,
    FAILED,
    OK,
    REFUSED,
    TIMEOUT,
    Caller,
    fragment_of,
    line_of,
    this_program,
    trace_id,
    utc_text,
)
from rye.recording.run_ids import new_run_id
from rye.recording.settings import HistoryConfig, HistorySettings
from rye.recording.spool import Spool, history_folder
from rye.spaces.ids import SUBPROCESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rye.recording.writer import Writer

OUTCOME_OF_ERROR = {
    "ToolFailed": FAILED,
    "ToolTimedOut": TIMEOUT,
    "RequestFailed": FAILED,
    "PrimitiveFailed": FAILED,
    "ToolNotStarted": ERROR,
    "NotEnforcedError": REFUSED,
    "UpstreamChangedError": REFUSED,
    "UpstreamFailed": ERROR,
    "UpstreamToolFailed": FAILED,
    "CancelledOnPageError": CANCELLED,
}
"""The error types of a call that passed every check. Their messages may contain output."""
_NOTES = (
    "closure",
    "limit",
    "survivors",
    "background_ended",
    "status_code",
    "autopsy",
    "denials",
)
_CALLER = ("client", "token", "program", "traceparent", "replays", "shown")
_FRESH_SECONDS = 1.0
_NO_PARAMETERS = digest(b"{}")


class Recorder:
    """Records the calls of one executor."""

    def __init__(self, preparer: Preparer, spool: Spool | None = None, *, moves: bool) -> None:
        """``moves`` is for a long-lived program: it moves its lines into the database, too."""
        self._preparer = preparer
        self._config = HistoryConfig(preparer.context, preparer.library.disk_cache)
        self._spool = spool or Spool(history_folder(preparer.context.user_space))
        self._writer: Writer | None = None
        if moves:
            from rye.recording.writer import Writer

            self._writer = Writer(self._spool.folder)
        self._reported = False
        self._program: Caller | None = None
        self._caller: tuple[Caller | None, str] = (None, "")
        self.project = str(preparer.context.project_path)
        self._chains: dict[str, _KnownChain] = BoundedDict()

    def begin(
        self,
        item_id: str,
        parameters: Mapping[str, Any] | None,
        caller: Caller | None,
        run_id: str = "",
    ) -> Recording:
        """Return the record of a call that begins now; ``run_id`` is its id, if it has one."""
        if caller is None:
            caller = self._program = self._program or this_program()
        return Recording(self, item_id, parameters, caller, run_id)

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
                run_id, line = recording.line(fields, settings)
                self._spool.append(run_id, line, max_bytes=settings.retention.size)
                noted["run_id"] = run_id
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

    def close(self) -> None:
        """Close the spool. The recorder may be used again."""
        self._spool.close()

    def known(self, chain: Sequence[ChainElement]) -> _KnownChain:
        """What the records of a chain have in common; kept until the chain is built again."""
        tool = chain[0].item_id
        known = self._chains.get(tool)
        if known is None or known.chain is not chain:
            known = self._chains[tool] = _KnownChain(chain, self.project)
        return known

    def called_by(self, caller: Caller) -> str:
        """Who made a call, as JSON without braces; most calls of a process have one caller."""
        known, fragment = self._caller
        if known is not caller:
            given = [(name, getattr(caller, name)) for name in _CALLER]
            fields = {"by": caller.kind, **{name: value for name, value in given if value}}
            if caller.traceparent and (trace := trace_id(caller.traceparent)):
                fields["trace_id"] = trace
            fragment = fragment_of(fields)
            self._caller = (caller, fragment)
        return fragment

    def unknown(self, item_id: str) -> str:
        """The fields of a call whose chain could not be built, as JSON without braces."""
        return fragment_of({"item": item_id, "project": self.project})


class _KnownChain:
    """The part of a record that is the same for many calls, as text.

    Encoding it again for each call would take longer than everything else in the record.
    """

    def __init__(self, chain: Sequence[ChainElement], project: str) -> None:
        self.chain = chain
        self.secrets = Secrets(chain[0].metadata.config_schema)
        self._own = fragment_of({"project": project, **_fields_of_chain(chain)})
        self._state: object = None
        self._with_call = ""
        self._program: tuple[float, object, dict[str, Any]] = (0.0, None, {})

    def fragment(self, call: PreparedCall | None) -> str:
        """The fields of the chain and of a prepared call, as JSON without braces."""
        if call is None:
            return self._own
        config = call.config.config
        names = program = None
        if call.config.primitive_id == SUBPROCESS:
            names = tuple(config["env"])
            program = self._stamp(config["command"], config["env"])
        permissions, widened = call.config.permissions, call.options.widening is not None
        state = (names, program, permissions, widened)
        if state != self._state:
            fields: dict[str, Any] = {}
            if names is not None:
                fields = {"environment": sorted(names), "interpreter": program}
            if permissions is not None:
                fields["permissions"] = permissions_to_json(permissions)
            if widened:
                fields["widened"] = True
            more = fragment_of(fields)
            self._with_call = f"{self._own},{more}" if more else self._own
            self._state = state
        return self._with_call

    def _stamp(self, command: str, env: Mapping[str, str]) -> dict[str, Any]:
        """The program that a call starts, as it was at most a second ago."""
        now = time.monotonic()
        key = (command, env.get("PATH"))
        looked, known, found = self._program
        if known != key or now - looked > _FRESH_SECONDS:
            found = program_of(command, env)
            self._program = (now, key, found)
        return found


def program_of(command: str, env: Mapping[str, str]) -> dict[str, Any]:
    """The program that a command starts, as it is now."""
    path = command if os.sep in command else which(command, env) or command
    return stamp(str(path))


class Recording:
    """One call on its way to a record. Use it once."""

    def __init__(
        self,
        recorder: Recorder,
        item_id: str,
        parameters: Mapping[str, Any] | None,
        caller: Caller,
        run_id: str = "",
    ) -> None:
        self._recorder = recorder
        self.item_id = item_id
        self.parameters: Mapping[str, Any] = {} if parameters is None else parameters
        self.caller = caller
        self.started = time.time_ns() // 1_000_000
        """Milliseconds since 1970."""
        self._run_id = run_id
        self._clock = time.perf_counter()
        self.call: PreparedCall | None = None
        """What runs, once it is known."""
        self.outcome = CANCELLED
        """One of the outcomes, once the call has ended."""
        self._result: Any = None
        self._ms: dict[str, float] = {}

    @property
    def run_id(self) -> str:
        """The id of the run; made when it is first needed."""
        if not self._run_id:
            self._run_id = new_run_id(self.started)
        return self._run_id

    def prepared(self, call: PreparedCall) -> None:
        """Note that everything was checked, and that the tool starts."""
        self.call = call
        self._lap("prepare")

    def waited(self) -> None:
        """Note that the call waited: for the user, who agreed, or for its turn."""
        self._lap("wait")

    def ran(self, result: Any) -> None:
        """Note what the primitive returned."""
        self._result = result
        self._lap("run")

    def finished(self, result: ExecutionResult, chain: Sequence[ChainElement]) -> ExecutionResult:
        """Append the record, and return the result with the id of the run in its metadata."""
        metadata = result.metadata
        fields = self._outcome(result)
        self.outcome = fields["outcome"]
        fields["chain"] = chain
        if confinement := metadata.get("confinement"):
            fields["enforced"] = confinement["enforced"]
            if confinement["missing"]:
                fields["missing"] = confinement["missing"]
        for name in _NOTES:
            if value := metadata.get(name):
                fields[name] = value
        noted = self._recorder.finish(self, fields)
        if isinstance(metadata, dict):  # nobody else has seen it yet
            metadata.update(noted)
            return result
        return replaced(result, metadata={**metadata, **noted})

    def cancelled(self, chain: Sequence[ChainElement]) -> None:
        """Append the record of a call that was cancelled or interrupted."""
        self._recorder.finish(self, {"outcome": CANCELLED, "chain": chain})

    def described(self) -> dict[str, Any]:
        """What a page shows of the call while it runs. Secrets are masked as in the record."""
        caller, call = self.caller, self.call
        values: Mapping[str, Any] = {}
        if call is not None:
            values = self._recorder.known(call.chain).secrets.masked(call.parameters)
        return {
            "item": self.item_id if call is None else call.chain[0].item_id,
            "client": caller.client or caller.program,
            "kind": caller.kind,
            "project": self._recorder.project,
            "parameters": values,
        }

    def line(self, fields: dict[str, Any], settings: HistorySettings) -> tuple[str, bytes]:
        """Return the id of the run, and its record as a line."""
        chain, call = fields.pop("chain"), self.call
        run_id = self.run_id
        self._ms["total"] = self._since_start()
        durations = ",".join([f'"{name}":{taken:.3f}' for name, taken in self._ms.items()])
        # None of these needs an escape.
        parts = [
            f'"id":"{run_id}","time":"{utc_text(self.started)}","ms":{{{durations}}}',
            self._recorder.called_by(self.caller),
        ]
        if not chain:
            # Nothing says which of them are secret, and a short secret is guessed from a digest.
            fields["parameters"] = {}
            about = self._recorder.unknown(self.item_id)
            return run_id, line_of(*parts, fragment_of(fields), about)
        known, item = self._recorder.known(chain), chain[0].item_id
        fields["parameters"] = _parameters(
            self.parameters, known.secrets, keeps=settings.keeps_parameters(item)
        )
        keeps = settings.keeps_output(item)
        if not keeps:
            fields = without_output(fields)
        parts.append(fragment_of(fields))
        if call is not None and self._result is not None:
            of_server = MCP_TOOL in call.config.config
            kind = ANSWER_OF_SERVER if of_server else call.config.primitive_id
            output = output_digests(kind, self._result, keeps=keeps)
            parts.append(f'"output":{{{output}}}')
        return run_id, line_of(*parts, known.fragment(call))

    def _outcome(self, result: ExecutionResult) -> dict[str, Any]:
        metadata = result.metadata
        fields: dict[str, Any] = {"outcome": OK}
        if not result.success:
            kind = str(metadata.get("error_type"))
            fields["outcome"] = OUTCOME_OF_ERROR.get(kind) or (ERROR if self._result else REFUSED)
            fields["error_type"] = kind
            if self._result is None or kind == "UpstreamChangedError":
                # The message of a check never contains a value of the caller.
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
    if not given:
        return {"sha256": _NO_PARAMETERS, "values": {}} if keeps else {"sha256": _NO_PARAMETERS}
    masked = secrets.masked(given)
    try:
        described: dict[str, Any] = {"sha256": digest(canonical_json(masked).encode("ascii"))}
    except IntegrityError:
        return {}
    if keeps:
        described["values"] = masked
    return described
