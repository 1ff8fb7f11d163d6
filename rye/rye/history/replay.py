"""Running a recorded call again, and comparing: what would differ, or did.

::

    recorded = recorded_run(history, run_id)          or recorded_receipt(receipt)
    with Replay(recorded, context) as replay:
        replay.give(parameters)                       if they were not kept
        difference = replay.before()                  nothing has run yet
        difference = replay.run(on_output)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from lilux.primitives.errors import IntegrityError
from lilux.primitives.integrity import canonical_json
from lilux.primitives.subprocess.output import output_bytes
from lilux.record import replaced

from rye.context import Context
from rye.errors import HistoryError, ParameterError, RyeError
from rye.executor.run.blocking import BlockingExecutor
from rye.executor.run.confine import Widening
from rye.executor.run.known_chain import program_of
from rye.executor.run.prepare import CallOptions, Preparation, PreparedCall, Preparer
from rye.executor.run.primitives import PRIMITIVE_MAP
from rye.executor.run.result import ExecutionResult
from rye.history.comparison import (
    Difference,
    environment_difference,
    interpreter_difference,
    outcome_difference,
    stream_difference,
)
from rye.history.envelope import Envelope
from rye.history.store import History, opened
from rye.history.stored_tool import stored_tool
from rye.items.permissions import joined, permissions_from_json, permissions_to_json
from rye.recording.digests import SECRET, Secrets, digest
from rye.recording.interpreters import described
from rye.recording.record import CLI, Caller
from rye.spaces.ids import SUBPROCESS
from rye.spaces.model import SpaceName

_SAME = ("stdout", "stderr", "body")
_OTHERS = "permissions: the tool may now do other things than in the run"
_NOT_HERE = (
    "permissions: the run was allowed more than the tool declares, which only the account that "
    "recorded it repeats; decide for yourself with: rye run --allow"
)


class Recorded(NamedTuple):
    """What is known about the run that is repeated."""

    run_id: str
    item: str
    closure: str
    space: SpaceName
    project: str
    """Empty if it is not known, as from a receipt."""
    parameters_sha256: str
    values: Mapping[str, Any] | None
    """The parameters, if they were kept."""
    interpreter: Mapping[str, Any]
    environment: tuple[str, ...]
    permissions: Mapping[str, Any] | None
    ending: Mapping[str, Any]
    output: Mapping[str, Mapping[str, Any]]
    kept: Mapping[str, bytes]
    """The output, by stream, if it was kept."""
    here: bool
    """True if this account recorded it, so that its user had allowed what it was allowed."""


def recorded_run(history: History, run_id: str) -> Recorded:
    """Return what the history knows about a run."""
    record = history.record(run_id)
    return _recorded(
        record,
        project=record["project"],
        parameters=record["parameters"].get("sha256") or "",
        values=record["parameters"].get("values"),
        ending=record,
        output=record.get("output") or {},
        kept=history.outputs(run_id),
        here=not record.get("imported"),
    )


def recorded_receipt(receipt: Envelope) -> Recorded:
    """Return what a verified receipt says about a run."""
    predicate = {**receipt.predicate, "id": receipt.predicate["run"]}
    subjects = {one["name"]: one["digest"] for one in receipt.statement["subject"]}
    return _recorded(
        predicate,
        project="",
        parameters=predicate.get("parameters_sha256") or "",
        values=None,
        ending=predicate["outcome"],
        output={name: one for name, one in subjects.items() if name in _SAME},
        kept={},
        here=False,
    )


def _recorded(
    fields: Mapping[str, Any],
    *,
    project: str,
    parameters: str,
    values: Mapping[str, Any] | None,
    ending: Mapping[str, Any],
    output: Mapping[str, Any],
    kept: Mapping[str, bytes],
    here: bool,
) -> Recorded:
    return Recorded(
        run_id=fields["id"],
        item=fields["item"],
        closure=fields.get("closure") or "",
        space=fields.get("space") or "project",
        project=project,
        parameters_sha256=parameters,
        values=values,
        interpreter=fields.get("interpreter") or {},
        environment=tuple(fields.get("environment") or ()),
        permissions=fields.get("permissions"),
        ending=ending,
        output=output,
        kept=kept,
        here=here,
    )


class Replay:
    """One replay. Use it as a context manager."""

    def __init__(self, recorded: Recorded, context: Context, caller: str = CLI) -> None:
        """``context`` is the caller's; a run is repeated in the project where it ran.

        ``caller`` is the kind of caller that the history has.
        """
        self._caller = caller
        self.recorded = recorded
        project = Path(recorded.project)
        if recorded.project and project.is_dir() and project != context.project_path:
            context = replaced(context, project_path=project)
        self.context = context
        self.result: ExecutionResult | None = None
        self._parameters: Mapping[str, Any] | None = None
        self._widening: Widening | None = None
        self._resources = ExitStack()
        self._preparer = Preparer(context, PRIMITIVE_MAP)
        self._executor = BlockingExecutor(context, start_helper=False, preparer=self._preparer)
        self._stored = False
        self._call: PreparedCall | None = None

    def __enter__(self) -> Self:
        """Raises :class:`HistoryError` for a run that ran nothing."""
        recorded = self.recorded
        if not recorded.closure:
            raise HistoryError(
                f"run {recorded.run_id} ran nothing: it ended with {recorded.ending['outcome']}",
                hint="repeat a run that has a closure",
            )
        space = self._resources.enter_context(
            stored_tool(recorded.closure, recorded.item, recorded.space, self.context)
        )
        if space is not None:
            preparer = Preparer(self.context, PRIMITIVE_MAP, own=(space,))
            if self._gives_closure(preparer):
                self._stored = True
                self._preparer = preparer
                self._executor = BlockingExecutor(
                    self.context, start_helper=False, preparer=preparer
                )
        self._resources.enter_context(self._executor)
        return self

    def _gives_closure(self, preparer: Preparer) -> bool:
        """True if the stored tool, on the runtimes of this machine, is the closure that ran."""
        options = CallOptions(use_lockfile=False)
        try:
            verified = Preparation(preparer, self.recorded.item, options).verify()
        except RyeError:
            return False
        return verified.closure.digest == self.recorded.closure

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._resources.close()

    @property
    def executor(self) -> BlockingExecutor:
        """The executor of the replay, for the schema of the parameters."""
        return self._executor

    @property
    def may_repeat(self) -> bool:
        """True if the tool declares that running it again changes nothing."""
        if self._call is None:
            return False
        annotations = self._call.chain[0].metadata.annotations
        return bool(annotations.get("idempotent") or annotations.get("read_only"))

    def give(self, parameters: Mapping[str, Any] | None) -> None:
        """Use these parameters, or those that were kept; raises :class:`ParameterError`."""
        recorded = self.recorded
        if parameters is not None:
            self._parameters = parameters
        elif recorded.values is not None and SECRET not in recorded.values.values():
            self._parameters = recorded.values
        elif _digest({}) == recorded.parameters_sha256:
            self._parameters = {}
        else:
            kept = "has secret parameters" if recorded.values is not None else "was not kept"
            raise ParameterError(
                f"cannot repeat run {recorded.run_id}",
                [f"its input {kept}"],
                hint=f"give the parameters again: rye replay {recorded.run_id} KEY=VALUE…",
            )

    def before(self) -> Difference | None:
        """Prepare the call, and return the first difference that can be known before it runs.

        Raises the errors of a call that is refused.
        """
        recorded = self.recorded
        # The digest of the closure is a stricter pin than a lockfile, which may have moved on.
        options = CallOptions(unenforced="warn", use_lockfile=not self._stored)
        preparation = Preparation(self._preparer, recorded.item, options)
        self._call = call = preparation.prepare(self._parameters)
        if call.closure.digest != recorded.closure:
            return Difference(
                "closure",
                recorded.closure,
                call.closure.digest,
                f"closure: {recorded.closure[:12]} → {call.closure.digest[:12]}; "
                "the tool, or what it runs on, has changed",
            )
        return (
            self._parameter_difference(call)
            or self._permission_difference(call)
            or self._machine_difference(call)
        )

    def run(self, on_output: Callable[[str, str], None] | None = None) -> Difference | None:
        """Run the call, and return the first difference; :attr:`result` has its result."""
        seen: dict[str, list[str]] = {"stdout": [], "stderr": []}

        def note(stream: str, text: str) -> None:
            seen[stream].append(text)
            if on_output is not None:
                on_output(stream, text)

        self.result = result = self._executor.execute(
            self.recorded.item,
            self._parameters,
            use_lockfile=not self._stored,
            on_output=note,
            widening=self._widening,
            unenforced="warn",
            caller=Caller(kind=self._caller, replays=self.recorded.run_id),
        )
        printed = {name: output_bytes("".join(texts)) for name, texts in seen.items()}
        after = self._new_record(result, printed)
        return outcome_difference(self.recorded.ending, after) or self._output_difference(
            after.get("output") or {}, printed
        )

    def _new_record(
        self, result: ExecutionResult, printed: Mapping[str, bytes]
    ) -> Mapping[str, Any]:
        run_id = result.metadata.get("run_id")
        if run_id is not None:
            with opened(self.context) as history:
                return history.record(run_id)
        # History is off, or could not be written.
        outcome = "ok" if result.success else "failed"
        output = {name: {"sha256": digest(data)} for name, data in printed.items()}
        return {"outcome": outcome, "exit": result.metadata.get("return_code"), "output": output}

    def _output_difference(
        self, after: Mapping[str, Any], printed: Mapping[str, bytes]
    ) -> Difference | None:
        for stream, before in self.recorded.output.items():
            found = stream_difference(
                stream,
                before,
                after.get(stream) or {},
                self.recorded.kept.get(stream),
                printed.get(stream),
            )
            if found is not None:
                return found
        return None

    def _parameter_difference(self, call: PreparedCall) -> Difference | None:
        secrets = Secrets(call.chain[0].metadata.config_schema)
        before = self.recorded.parameters_sha256
        after = _digest(secrets.masked(self._parameters or {}))
        if before == after:
            return None
        return Difference(
            "parameters", before, after, "parameters: other values than those of the run"
        )

    def _permission_difference(self, call: PreparedCall) -> Difference | None:
        """Compare what the tool may do; a call that was widened here is widened again.

        What an import or a receipt says grants nothing: somebody else may have written it.
        """
        declared = call.chain[0].metadata.permissions
        now = None if declared is None else self._preparer.confining.permissions(call.chain, None)
        before = permissions_from_json(self.recorded.permissions)
        if now is None or before is None:
            return None if now is before else _permissions_differ(before, now)
        if _as_sets(joined([before, now])) != _as_sets(before):
            return _permissions_differ(before, now)
        if _as_sets(now) != _as_sets(before):
            if not self.recorded.here:
                return _permissions_differ(before, now, _NOT_HERE)
            self._widening = Widening(permissions=before)
        return None

    def _machine_difference(self, call: PreparedCall) -> Difference | None:
        if call.config.primitive_id != SUBPROCESS:
            return None
        config = call.config.config
        program = program_of(config["command"], config["env"])
        found = described(program, str(self.context.project_path))
        return interpreter_difference(self.recorded.interpreter, found) or environment_difference(
            self.recorded.environment, tuple(config["env"])
        )


def _digest(parameters: Mapping[str, Any]) -> str:
    try:
        return digest(canonical_json(parameters).encode("ascii"))
    except IntegrityError:
        return ""


def _as_sets(permissions: Any) -> dict[str, Any]:
    return {
        name: set(one) if isinstance(one, list) else one
        for name, one in (permissions_to_json(permissions) or {}).items()
    }


def _permissions_differ(before: Any, now: Any, text: str = _OTHERS) -> Difference:
    return Difference(
        "permissions",
        permissions_to_json(before),
        permissions_to_json(now),
        text,
    )
