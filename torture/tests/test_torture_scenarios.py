"""The short version of every scenario, and the long one with a marker."""

from __future__ import annotations

from pathlib import Path

import pytest

from torture.catalogue import FAULTS, SCENARIOS
from torture.scenario import Scenario, ScenarioSkippedError


# The fuzzing scenarios are tested beside the code that they feed.
@pytest.mark.parametrize("scenario", FAULTS, ids=[scenario.name for scenario in FAULTS])
def test_a_scenario_passes(scenario: Scenario, tmp_path: Path) -> None:
    expect_no_failure(scenario, scenario.quick, tmp_path)


@pytest.mark.torture
@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario.name for scenario in SCENARIOS])
def test_a_scenario_passes_in_the_long_version(scenario: Scenario, tmp_path: Path) -> None:
    expect_no_failure(scenario, scenario.long, tmp_path)


def expect_no_failure(scenario: Scenario, times: int, folder: Path) -> None:
    try:
        outcome = scenario.run(times, folder)
    except ScenarioSkippedError as reason:
        pytest.skip(str(reason))
    assert outcome.failures == ()
    assert outcome.tried > 0
