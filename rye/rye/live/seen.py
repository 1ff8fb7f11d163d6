"""The calls that a page has seen: what they are, and their output so far, in bounded memory."""

from __future__ import annotations

import codecs
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from rye.plaintext import escaped

MAX_RUNS = 200
"""Ended runs are forgotten from this number on, the oldest first."""
THIS_PAGE = "this page"
"""The caller of what a person starts on the page."""
_KEPT = 256 * 1024
_MAX_TOTAL = 64 * 1024 * 1024
_MAX_PARAMETERS = 64 * 1024


class Shown(NamedTuple):
    """An output stream at one moment."""

    text: str
    """What was kept."""
    end: int
    """The number of characters so far, also of those that were forgotten."""

    @property
    def forgotten(self) -> int:
        """The number of characters before :attr:`text`."""
        return self.end - len(self.text)


class SeenOutput:
    """One output stream: its last part, as text that can be shown."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self.now = Shown("", 0)
        """Replaced as a whole, since a page is made in another thread."""

    def add(self, data: bytes, *, final: bool = False) -> None:
        """Add bytes as they were written; those that are not UTF-8 are shown as escapes."""
        self.add_text(self._decoder.decode(data, final))

    def add_text(self, text: str) -> None:
        """Add text."""
        shown = escaped(text.replace("\r\n", "\n"))
        self.now = Shown((self.now.text + shown)[-_KEPT:], self.now.end + len(shown))

    @property
    def text(self) -> str:
        """What was kept."""
        return self.now.text

    def after(self, position: int) -> str:
        """What was added after this number of characters, as far as it was kept."""
        new = self.now.end - position
        return self.now.text[-new:] if new > 0 else ""


class WaitingQuestion(NamedTuple):
    """A question that waits for the user."""

    question_id: str
    message: str
    schema: Mapping[str, Any]
    """The form: an object of plain fields; without fields, it is a yes or no."""


class Ended(NamedTuple):
    """How a call ended."""

    outcome: str
    error: str
    duration_ms: float


class Part(NamedTuple):
    """How far a call, or a batch, has come."""

    progress: float
    total: float | None
    message: str


class Told(NamedTuple):
    """What a page may do to a call."""

    cancel: Callable[[], Awaitable[str]]
    """Ends the call; returns why that was not possible, or an empty text."""
    answer: Callable[[str, Mapping[str, Any]], Awaitable[str]]
    """Answers a question by its id, in the form of an MCP client."""


class SeenRun:
    """One call, or one batch."""

    def __init__(self, run_id: str, item: str, client: str, *, started: int | None = None) -> None:
        self.run_id = run_id
        self.item = item
        self.client = client
        """Who calls, in words."""
        self.started = int(time.time() * 1000) if started is None else started
        """Milliseconds since 1970."""
        self.is_ours = False
        """True if the process of the page makes the call, and hears of it as of the others."""
        self.project = ""
        self.parameters: Mapping[str, Any] = {}
        self.stdout = SeenOutput()
        self.stderr = SeenOutput()
        self.pid = 0
        """The first process of the tool, 0 if it is not known."""
        self.part: Part | None = None
        self.questions: Mapping[str, WaitingQuestion] = {}
        """By id; replaced as a whole, as :attr:`SeenOutput.now` is."""
        self.ended: Ended | None = None
        self.told: Told | None = None

    @property
    def seconds(self) -> float:
        """How long it has run."""
        if self.ended is not None:
            return self.ended.duration_ms / 1000
        return max(0.0, time.time() - self.started / 1000)

    def end(self, outcome: str, error: str = "", duration_ms: float | None = None) -> None:
        """Note the end; only the first one counts."""
        if self.ended is None:
            lasted = self.seconds * 1000 if duration_ms is None else duration_ms
            self.ended = Ended(outcome, error, lasted)
            self.questions = {}
            self.told = None


class SeenRuns:
    """The calls of one page, by their ids."""

    def __init__(self) -> None:
        self._runs: dict[str, SeenRun] = {}

    def add(self, run: SeenRun) -> SeenRun:
        """Add a run, or return the one with the same id."""
        known = self._runs.setdefault(run.run_id, run)
        self._forget()
        return known

    def get(self, run_id: str) -> SeenRun | None:
        """Return a run, ``None`` if the page has not seen it or has forgotten it."""
        return self._runs.get(run_id)

    @property
    def under_way(self) -> list[SeenRun]:
        """The calls that have not ended, the latest first."""
        found = [run for run in list(self._runs.values()) if run.ended is None]
        return sorted(found, key=lambda run: run.run_id, reverse=True)

    @property
    def over(self) -> list[SeenRun]:
        """The calls that have ended, the latest first."""
        found = [run for run in list(self._runs.values()) if run.ended is not None]
        return sorted(found, key=lambda run: run.run_id, reverse=True)

    def _forget(self) -> None:
        over = self.over
        total = sum(len(run.stdout.text) + len(run.stderr.text) for run in self._runs.values())
        while over and (len(over) > MAX_RUNS or total > _MAX_TOTAL):
            oldest = over.pop()
            total -= len(oldest.stdout.text) + len(oldest.stderr.text)
            del self._runs[oldest.run_id]


def shown_parameters(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """The parameters, without values that are too long to be shown."""
    import json

    room = _MAX_PARAMETERS
    shown: dict[str, Any] = {}
    for name, value in parameters.items():
        try:
            room -= len(json.dumps(value))
        except (TypeError, ValueError, RecursionError):
            shown[name] = f"({type(value).__name__})"
        else:
            shown[name] = value if room >= 0 else "(too long to be shown)"
    return shown
