"""One table: what was tried, how often, what was lost, and how long it took."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from torture.scenario import CannotBeTriedError, Outcome, Scenario

_MOST_SENTENCES = 10
HEAD = f"{'scenario':28} {'tried':>8} {'lost':>5} {'seconds':>8}  what"


@dataclass(frozen=True, kw_only=True)
class Row:
    """A scenario that was run, or one that could not be."""

    scenario: Scenario
    outcome: Outcome | None
    seconds: float
    reason: str = ""

    @property
    def lost(self) -> bool:
        """Whether anything was; a scenario that tried nothing proves nothing."""
        return self.outcome is not None and (bool(self.outcome.lost) or not self.outcome.tried)

    def __str__(self) -> str:
        name, what = self.scenario.name, self.scenario.what
        if self.outcome is None:
            return f"{name:28} {'-':>8} {'-':>5} {'-':>8}  {what}: not tried, {self.reason}"
        figures = f"{self.outcome.tried:>8,} {len(self.outcome.lost):>5} {self.seconds:>8.1f}"
        lines = [f"{name:28} {figures}  {what}"]
        if self.outcome.note:
            lines.append(f"{'':53}({self.outcome.note})")
        lines += [f"    lost: {sentence}" for sentence in self.outcome.lost[:_MOST_SENTENCES]]
        if (more := len(self.outcome.lost) - _MOST_SENTENCES) > 0:
            lines.append(f"    and {more} more")
        return "\n".join(lines)


def run(scenarios: Iterable[Scenario], *, quick: bool) -> Iterator[Row]:
    """Runs them one after the other; a row as soon as one has ended."""
    for scenario in scenarios:
        began = time.monotonic()
        outcome: Outcome | None = None
        reason = ""
        with tempfile.TemporaryDirectory(prefix="torture-") as folder:
            try:
                outcome = scenario.run(scenario.quick if quick else scenario.long, Path(folder))
            except CannotBeTriedError as error:
                reason = str(error)
            except Exception as error:  # noqa: BLE001 - the other scenarios are to be run as well
                outcome = Outcome(tried=1, lost=(f"{type(error).__name__}: {error}",))
        yield Row(
            scenario=scenario, outcome=outcome, seconds=time.monotonic() - began, reason=reason
        )
