"""Batches as rows: how far each has come, how it ended, how fast it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from rye.batches.folder import BatchFolder
from rye.batches.timeline import Timeline
from rye.recording.run_ids import milliseconds_of
from rye.ui.batch_charts import active_ms
from rye.ui.batch_readings import Look, Readings
from rye.ui.tool_rows import Mark
from rye.ui.values import duration


class BatchRow(NamedTuple):
    """One batch."""

    name: str
    path: Path
    tool: str
    created: int
    """Milliseconds since 1970."""
    total: int
    done: int
    failed: int
    in_doubt: int
    state: Mark
    running: bool
    rate: float
    """Calls a second; 0 if that is not known."""
    read: int
    """The part of its results that was read, in percent."""

    @property
    def progress(self) -> str:
        """How many calls have a result; not all of them may have been read."""
        least = "at least " if self.read < 100 else ""
        return f"{least}{self.done:,} of {self.total:,} calls"

    @property
    def speed(self) -> str:
        """How fast it is or was, and when it will end."""
        if not self.rate:
            return ""
        text = f"{self.rate:,.0f} a second" if self.rate >= 10 else f"{self.rate:.2g} a second"
        if self.running and self.done < self.total and self.read == 100:
            left = (self.total - self.done) / self.rate * 1000
            return f"{text}, about {duration(left)} left"
        return text


def batch_row(
    name: str, path: Path, manifest: dict[str, Any], readings: Readings, seconds: float
) -> BatchRow:
    """Read a batch on, and return its row."""
    total = int(manifest["calls"])
    # Before the results: a batch that has ended since then is complete.
    running = BatchFolder(path).is_running()
    with readings.look(path, total, seconds) as look:
        return row_of(name, path, manifest, look, running=running)


def row_of(
    name: str, path: Path, manifest: dict[str, Any], look: Look, *, running: bool
) -> BatchRow:
    """Return the row of a batch that was read."""
    reading, total = look.reading, int(manifest["calls"])
    return BatchRow(
        name=name,
        path=path,
        tool=str(manifest["tool"]),
        created=milliseconds_of(name),
        total=total,
        done=reading.done,
        failed=reading.failed,
        in_doubt=reading.in_doubt,
        state=_state(look, total, running=running),
        running=running,
        rate=_rate(reading.timeline),
        read=100 if look.complete else min(int(reading.share_read * 100), 99),
    )


def _state(look: Look, total: int, *, running: bool) -> Mark:
    if running:
        return Mark("running", "note")
    if not look.complete:
        return Mark("being read")
    if look.reading.done < total:
        return Mark("interrupted", "warn")
    return Mark("ended, with failures", "warn") if look.reading.failed else Mark("ended", "good")


def _rate(timeline: Timeline) -> float:
    count = sum(one.total for one in timeline.counts.values())
    return count / (active_ms(timeline) / 1000) if count else 0.0
