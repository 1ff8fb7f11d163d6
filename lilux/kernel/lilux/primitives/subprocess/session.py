"""The protocol with ``lilux-proc``, without I/O and without a clock.

A transport writes :attr:`Session.outgoing` to the helper, passes what it reads to
:meth:`Session.receive`, and calls :meth:`Session.tick` when :attr:`Session.next_tick` is due. Times
are seconds of any clock that never goes back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lilux.primitives.errors import HelperError
from lilux.primitives.subprocess.wire import Answer, Decoder, encode
from lilux.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STREAMS = ("stdout", "stderr")
CHANNEL = "channel"

# A helper with a call under way that gives no sign of life for this long is given up.
SILENCE_SECONDS = 5.0
# A cancelled call may take this long beyond the grace of its job. The helper itself waits up to
# five seconds for a process that is stuck in the kernel.
CANCEL_SECONDS = 10.0
# A helper whose connection was closed may take this long to end its jobs and itself.
END_SECONDS = 10.0
# The same for a helper that was given up: it is continued if it was stopped, and then needs
# milliseconds.
GIVEN_UP_END_SECONDS = 1.0

# The silence is divided into this many intervals, with a ping at the end of each but the last. One
# interval is not enough: this process may itself have been stopped or busy.
_INTERVALS = 3
# Job 0 does not exist, so each process that a job depends on answers at once.
_PING = encode({"id": 0, "op": "cancel", "target": 0})

CLOSED = "the connection to lilux-proc was closed"
ENDED = "lilux-proc ended unexpectedly"
_ENDED_BEFORE = "lilux-proc has ended"
_MALFORMED = "lilux-proc sent a malformed frame"
_SILENT = "lilux-proc did not answer"


def connection_lost(reason: str) -> HelperError:
    """Return the error of a call that will get no answer."""
    return HelperError(
        f"{reason} during a call; its processes are being ended",
        hint="try again: the next call starts a new helper",
    )


class Call:
    """One request under way."""

    __slots__ = ("_answer", "_error", "give_up_at", "grace", "number", "op", "owner", "resting")

    def __init__(self, number: int, op: str, grace: float) -> None:
        self.number = number
        self.op = op
        self.grace = grace
        self.give_up_at: float | None = None
        """When a cancelled call has taken too long."""
        self.resting = False
        """True for a prepared process, which ends only when it is told to."""
        self.owner: Any = None
        """Whatever the transport keeps with the call."""
        self._answer: Answer | None = None
        self._error: HelperError | None = None

    @property
    def ended(self) -> bool:
        """True if the call has an answer or an error."""
        return self._answer is not None or self._error is not None

    def end(self, answer: Answer | None, error: HelperError | None = None) -> None:
        """Record the outcome."""
        self._answer = answer
        self._error = error

    @property
    def autopsy(self) -> Mapping[str, Any] | None:
        """What the processes waited for before they were ended, if the answer has that."""
        found = self._answer.header.get("autopsy") if self._answer is not None else None
        return found if _is_autopsy(found) else None

    def result(self) -> Answer:
        """Return the answer of an ended call.

        Raises :class:`HelperError` if there is none, or if it is not an answer to this request.
        """
        if self._answer is None:
            # One lost connection ends many calls, and each raises a separate exception.
            error = self._error or HelperError("the call has not ended")
            raise HelperError(error.reason, hint=error.hint)
        return check_answer(self.op, self._answer)


class Output(Record, frozen=True):
    """An event: a piece of the output of a job."""

    call: Call
    stream: str
    data: bytes


class InputTaken(Record, frozen=True):
    """An event: a job has taken a piece of input, or will never take one on that stream again."""

    call: Call
    stream: str
    wants_more: bool


class Looked(Record, frozen=True):
    """An event: what a job has written so far; ``header["found"]`` is false after its end."""

    call: Call
    header: Mapping[str, Any]
    output: bytes


class Ended(Record, frozen=True):
    """An event: a call has its answer."""

    call: Call


Event = Output | InputTaken | Looked | Ended


class Session:
    """The state of one connection: the calls under way, and the helper's signs of life."""

    def __init__(self) -> None:
        self.outgoing = bytearray()
        """Bytes to write to the helper; report progress with :meth:`sent`."""
        self.calls: dict[int, Call] = {}
        self.closed = False
        self.silent = False
        """True if the helper was given up because it did not answer."""
        self._decoder = Decoder()
        self._last_number = 0
        self._cancels: dict[int, Call] = {}
        self._inputs: dict[int, tuple[Call, str]] = {}
        self._looks: dict[int, Call] = {}
        self._ping_at = 0.0
        self._unanswered_pings = 0
        self._backlog = False

    def start(self, fields: Mapping[str, Any], payload: bytes, now: float) -> Call:
        """Send a request.

        Raises ``ValueError`` for one that cannot be sent, and :class:`HelperError` if the
        connection is closed.
        """
        if self.closed:
            raise connection_lost(_ENDED_BEFORE)
        number = self._next_number()
        self.outgoing += encode({"id": number, **fields}, payload)
        if not self.calls:
            self._ping_at = now + SILENCE_SECONDS / _INTERVALS
            self._unanswered_pings = 0
        call = self.calls[number] = Call(number, fields["op"], fields.get("grace") or 0)
        call.resting = fields.get("start") == "prepare"
        return call

    @property
    def busy(self) -> bool:
        """True if a call is under way that will end by itself."""
        return any(not call.resting for call in self.calls.values())

    def cancel(self, call: Call, now: float) -> None:
        """Ask the helper to end a job. The call still ends with an :class:`Ended` event."""
        call.give_up_at = now + call.grace + CANCEL_SECONDS
        number = self._next_number()
        self._cancels[number] = call
        self.outgoing += encode({"id": number, "op": "cancel", "target": call.number})

    def feed(self, call: Call, stream: str, data: bytes, *, last: bool) -> None:
        """Write to the stdin or the channel of a running job; ``last`` closes the stream.

        Ends with an :class:`InputTaken` event, unless the call ends before.
        """
        if call.number in self.calls:
            number = self._next_number()
            self._inputs[number] = (call, stream)
            fields = {"id": number, "op": "input", "target": call.number, "stream": stream}
            self.outgoing += encode({**fields, "last": last}, data)

    def look(self, call: Call, stdout_from: int, stderr_from: int, limit: int) -> None:
        """Ask for the output of a running job so far; ends with a :class:`Looked` event."""
        if call.number in self.calls:
            number = self._next_number()
            self._looks[number] = call
            fields = {"id": number, "op": "look", "target": call.number, "limit": limit}
            fields |= {"stdout_from": stdout_from, "stderr_from": stderr_from}
            self.outgoing += encode(fields)

    def pause(self, call: Call, *, paused: bool) -> None:
        """Stop the output of one job, or let it continue."""
        if call.number in self.calls:
            op = "pause" if paused else "resume"
            self.outgoing += encode({"id": 0, "op": op, "target": call.number})

    def sent(self, size: int) -> None:
        """Remove bytes that were written from :attr:`outgoing`."""
        del self.outgoing[:size]
        if size and self._backlog:
            # The buffers of the connection were full, so the helper has read some of it.
            self._unanswered_pings = 0
        self._backlog = bool(self.outgoing)

    def receive(self, data: bytes | memoryview) -> Iterator[Event]:
        """Yield the events in ``data``. With no data, yield those left from an interrupted read.

        Raises :class:`HelperError` for malformed data; then the connection cannot be used further.
        """
        if data:
            self._unanswered_pings = 0
        try:
            for answer in self._decoder.feed(data):
                event = self._event(answer)
                if event is not None:
                    yield event
        except (ValueError, KeyError, TypeError):
            raise connection_lost(_MALFORMED) from None

    @property
    def next_tick(self) -> float | None:
        """When :meth:`tick` is due; ``None`` without a call under way."""
        return self._ping_at if self.calls else None

    def tick(self, now: float) -> None:
        """Ping the helper if that is due. Read what has arrived before.

        Raises :class:`HelperError` if the helper did not answer the last pings, or did not end a
        cancelled call in time.
        """
        if not self.calls or now < self._ping_at:
            return
        if self._unanswered_pings == _INTERVALS - 1 or self._cancel_is_overdue(now):
            self.silent = True
            raise connection_lost(_SILENT)
        self._unanswered_pings += 1
        # Not counted from the time that was due: a ping needs its time to be answered.
        self._ping_at = now + SILENCE_SECONDS / _INTERVALS
        self.outgoing += _PING

    def close(self, error: HelperError) -> list[Call]:
        """End all calls with ``error``, and return them."""
        self.closed = True
        calls = list(self.calls.values())
        self.calls.clear()
        self._cancels.clear()
        self._inputs.clear()
        self._looks.clear()
        self.outgoing.clear()
        for call in calls:
            call.end(None, error)
        return calls

    def _next_number(self) -> int:
        self._last_number += 1
        return self._last_number

    def _cancel_is_overdue(self, now: float) -> bool:
        return any(
            call.give_up_at is not None and call.give_up_at <= now for call in self.calls.values()
        )

    def _event(self, answer: Answer) -> Event | None:
        header = answer.header
        kind, number = header["kind"], header["id"]
        call = self.calls.get(number)
        if call is None:
            if (looked_at := self._looks.pop(number, None)) is not None:
                return Looked(looked_at, header, answer.payload)
            return self._event_without_call(header)
        if kind in STREAMS or kind == CHANNEL:
            return Output(call, kind, answer.payload)
        return self._end(call, answer)

    def _event_without_call(self, header: Mapping[str, Any]) -> Event | None:
        if header["kind"] == "error" and header["id"] == 0:
            # A frame that the helper could not read: some call would wait for ever.
            raise ValueError("lilux-proc could not read a frame")
        if (fed := self._inputs.pop(header["id"], None)) is not None:
            return InputTaken(*fed, wants_more=header.get("found") is True)
        call = self._cancels.pop(header["id"], None)
        if call is None or call.ended or call.op != "exec" or header.get("found") is not False:
            return None
        # The job has ended. Its answer is on the way, or was lost when a read was interrupted.
        return self._end(call, None, HelperError("the call was cancelled"))

    def _end(self, call: Call, answer: Answer | None, error: HelperError | None = None) -> Ended:
        # In this order: after an interrupt between the two, the call has ended nevertheless.
        call.end(answer, error)
        self.calls.pop(call.number, None)
        return Ended(call)


_TEXT_OR_NONE = (str, type(None))
_NUMBER_OR_NONE = (int, type(None))
_FIELDS: Mapping[str, Mapping[str, type | tuple[type, ...]]] = {
    "exec": {
        "success": bool,
        "return_code": int,
        "duration_ms": (int, float),
        "timed_out": bool,
        "signal": _NUMBER_OR_NONE,
        "stdout_bytes": int,
        "truncated": dict,
        "tree": dict,
    },
    "spawn": {
        "success": bool,
        "pid": _NUMBER_OR_NONE,
        "error": _TEXT_OR_NONE,
        "start_time": _NUMBER_OR_NONE,
    },
    "kill": {"success": bool, "method": str, "error": _TEXT_OR_NONE},
    "status": {"alive": bool},
    "probe": {"enforced": dict, "missing": list},
}
_ERROR = {"message": str}
_TRUNCATED = {"stdout": int, "stderr": int}
_MISSING = {"part": str, "reason": str}
_TREE = {"known_by": str, "ended": int, "survivors": list}
_AUTOPSY = {"processes": list, "unexamined": int, "output": dict}
_LAST_LINES = {"stdout": str, "stderr": str}
_PROCESS = {"pid": int, "command": str, "waits_for": str}


def check_answer(op: str, answer: Answer) -> Answer:
    """Return ``answer`` if it is one to ``op``, else raise :class:`HelperError`."""
    header = answer.header
    fields = _ERROR if header["kind"] == "error" else _FIELDS[op]
    fits = _has(header, fields)
    if fits and fields is _FIELDS["exec"]:
        fits = (
            _has(header["truncated"], _TRUNCATED)
            and _has(header["tree"], _TREE)
            and _is_autopsy(header.get("autopsy"))
            and 0 <= header["stdout_bytes"] <= len(answer.payload)
            and ("confinement" not in header or _is_report(header["confinement"]))
        )
    elif fits and fields is _FIELDS["probe"]:
        fits = _is_report(header)
    if not fits:
        raise HelperError(
            f"lilux-proc sent an answer to {op} that this version of lilux cannot read",
            hint="install lilux and lilux-proc of the same release",
        )
    return answer


def _is_report(report: Any) -> bool:
    return (
        isinstance(report, dict)
        and _has(report, _FIELDS["probe"])
        and all(isinstance(mechanism, str) for mechanism in report["enforced"].values())
        and all(isinstance(one, dict) and _has(one, _MISSING) for one in report["missing"])
    )


def _is_autopsy(autopsy: Any) -> bool:
    """True for a complete autopsy, and for none."""
    if autopsy is None:
        return True
    return (
        isinstance(autopsy, dict)
        and _has(autopsy, _AUTOPSY)
        and _has(autopsy["output"], _LAST_LINES)
        and all(isinstance(one, dict) and _has(one, _PROCESS) for one in autopsy["processes"])
    )


def _has(values: Mapping[str, Any], fields: Mapping[str, type | tuple[type, ...]]) -> bool:
    for name, kind in fields.items():
        if name not in values or not isinstance(values[name], kind):
            return False
    return True
