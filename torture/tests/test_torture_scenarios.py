"""Every scenario of the torture table: its short version always, its long one by a marker."""

from __future__ import annotations

from pathlib import Path

import pytest

from torture.catalogue import FAULTS, SCENARIOS
from torture.scenario import CannotBeTriedError, Scenario


# Bad input has tests of its own, beside what it is fed to.
@pytest.mark.parametrize("scenario", FAULTS, ids=[scenario.name for scenario in FAULTS])
def test_nothing_is_lost(scenario: Scenario, tmp_path: Path) -> None:
    expect_no_loss(scenario, scenario.quick, tmp_path)


@pytest.mark.torture
@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario.name for scenario in SCENARIOS])
def test_nothing_is_lost_in_the_long_version(scenario: Scenario, tmp_path: Path) -> None:
    expect_no_loss(scenario, scenario.long, tmp_path)


def expect_no_loss(scenario: Scenario, times: int, folder: Path) -> None:
    try:
        outcome = scenario.run(times, folder)
    except CannotBeTriedError as reason:
        pytest.skip(str(reason))
    assert outcome.lost == ()
    assert outcome.tried > 0
