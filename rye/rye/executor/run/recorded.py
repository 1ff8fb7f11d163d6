"""Every call that is not a dry run leaves a record: from its parts to a line in the spool.

::

    recording = recorder.begin(item_id, parameters, caller)
    recording.prepared(call)
    recording.describe()                   while the tool runs
    recording.ran(result)                  what the primitive returned
    result = recording.finished(result, chain)

A call never fails because of its record: what goes wrong is in ``metadata["history_error"]``, once
for each executor.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from lilux.primitives.errors import IntegrityError
from lilux.primitives.integrity import canonical_json
from lilux.record import Record, replaced

from rye.errors import HistoryError
from rye.executor.caches import BoundedDict
from rye.executor.config.build import MCP_TOOL
from rye.executor.run.known_chain import KnownChain
from rye.executor.run.prepare import PreparedCall, Preparer
from rye.executor.run.result import ExecutionResult
from rye.items.element import ChainElement
from rye.recording.digests import (
    ANSWER_OF_SERVER,
    Secrets,
    digest,
    output_digests,
    without_output,
)
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
        self._chains: dict[str, KnownChain] = BoundedDict()

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
            settings = self.settings()
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

    def settings(self) -> HistorySettings:
        """The user's settings. Raises :class:`HistoryError` if they cannot be read."""
        return self._config.current()

    def close(self) -> None:
        """Close the spool. The recorder may be used again."""
        self._spool.close()

    def known(self, chain: Sequence[ChainElement]) -> KnownChain:
        """What the records of a chain have in common; kept until the chain is built again."""
        tool = chain[0].item_id
        known = self._chains.get(tool)
        if known is None or known.chain is not chain:
            known = self._chains[tool] = KnownChain(chain, self.project)
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


class _Beginning(Record, frozen=True):
    """The part of a record that is known when its tool starts."""

    chain: Sequence[ChainElement]
    run: str
    """The id and the time, as JSON without braces."""
    parameters: Mapping[str, Any]
    about: str
    """The fields of the chain and of the prepared call, in the same form."""


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
        self._beginning: _Beginning | None = None

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

    def describe(self) -> None:
        """Do what can be done for the record while the tool runs; :meth:`line` does the rest."""
        try:
            if self.call is not None and self._recorder.settings().enabled:
                self._beginning = self._begun(self.call.chain)
        except Exception:  # noqa: BLE001 - it fails again at the end, where it is reported
            self._beginning = None

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
        begun = self._beginning
        if begun is None or begun.chain is not chain:
            begun = self._begun(chain)
        self._ms["total"] = self._since_start()
        durations = ",".join([f'"{name}":{taken:.3f}' for name, taken in self._ms.items()])
        parts = [begun.run, f'"ms":{{{durations}}}', self._recorder.called_by(self.caller)]
        run_id, fields["parameters"] = self.run_id, begun.parameters
        if not chain:
            return run_id, line_of(*parts, fragment_of(fields), begun.about)
        known, item = self._recorder.known(chain), chain[0].item_id
        if settings.keeps_parameters(item):
            # Both from the same values: the caller may have changed them since.
            fields["parameters"] = _parameters(self.parameters, known.secrets, keeps=True)
        keeps = settings.keeps_output(item)
        if not keeps:
            fields = without_output(fields)
        parts.append(fragment_of(fields))
        if call is not None and self._result is not None:
            of_server = MCP_TOOL in call.config.config
            kind = ANSWER_OF_SERVER if of_server else call.config.primitive_id
            output = output_digests(kind, self._result, keeps=keeps)
            parts.append(f'"output":{{{output}}}')
        return run_id, line_of(*parts, begun.about)

    def _begun(self, chain: Sequence[ChainElement]) -> _Beginning:
        # Neither of them needs an escape.
        run = f'"id":"{self.run_id}","time":"{utc_text(self.started)}"'
        if not chain:
            # Nothing says which of them are secret, and a short secret is guessed from a digest.
            return _Beginning(chain, run, {}, self._recorder.unknown(self.item_id))
        known = self._recorder.known(chain)
        parameters = _parameters(self.parameters, known.secrets, keeps=False)
        return _Beginning(chain, run, parameters, known.fragment(self.call))

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
