"""The properties for bad input as scenarios of the table."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from torture.fuzzing import BATCH, Fuzz, everything, run_one
from torture.scenario import Outcome, Scenario

SEED = 20261116


def _run(fuzz: Fuzz, times: int, _folder: Path) -> Outcome:
    row = run_one(fuzz, SEED, lambda tried: tried >= times, min(times, BATCH))
    return Outcome(tried=row.tried, failures=row.failures)


SCENARIOS = tuple(
    Scenario(
        name="fuzz-" + fuzz.name.strip(".").replace(" ", "-").lower(),
        what=f"inputs: {fuzz.name}",
        run=partial(_run, fuzz),
        quick=fuzz.few,
        long=fuzz.many,
    )
    for fuzz in everything()
)
