"""The table of scenarios: attempts, failures and duration."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from torture.scenario import Outcome, Scenario, ScenarioSkippedError

_MAX_FAILURES_SHOWN = 10
HEAD = f"{'scenario':28} {'tried':>8} {'failed':>6} {'seconds':>8}  what"


@dataclass(frozen=True, kw_only=True)
class Row:
    """A scenario that was run or skipped."""

    scenario: Scenario
    outcome: Outcome | None
    seconds: float
    reason: str = ""

    @property
    def failed(self) -> bool:
        """True if there was a failure, or if nothing was tried."""
        return self.outcome is not None and (bool(self.outcome.failures) or not self.outcome.tried)

    def __str__(self) -> str:
        name, what = self.scenario.name, self.scenario.what
        if self.outcome is None:
            return f"{name:28} {'-':>8} {'-':>6} {'-':>8}  {what}: skipped, {self.reason}"
        figures = f"{self.outcome.tried:>8,} {len(self.outcome.failures):>6} {self.seconds:>8.1f}"
        lines = [f"{name:28} {figures}  {what}"]
        if self.outcome.note:
            lines.append(f"{'':54}({self.outcome.note})")
        lines += [
            f"    failed: {sentence}" for sentence in self.outcome.failures[:_MAX_FAILURES_SHOWN]
        ]
        if (more := len(self.outcome.failures) - _MAX_FAILURES_SHOWN) > 0:
            lines.append(f"    and {more} more")
        return "\n".join(lines)


def run(scenarios: Iterable[Scenario], *, quick: bool) -> Iterator[Row]:
    """Run the scenarios one after the other, and yield a row after each."""
    for scenario in scenarios:
        started = time.monotonic()
        outcome: Outcome | None = None
        reason = ""
        with tempfile.TemporaryDirectory(prefix="torture-") as folder:
            try:
                outcome = scenario.run(scenario.quick if quick else scenario.long, Path(folder))
            except ScenarioSkippedError as error:
                reason = str(error)
            except Exception as error:  # noqa: BLE001 - the other scenarios must still run
                outcome = Outcome(tried=1, failures=(f"{type(error).__name__}: {error}",))
        yield Row(
            scenario=scenario, outcome=outcome, seconds=time.monotonic() - started, reason=reason
        )
