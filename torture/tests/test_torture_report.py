"""The table and the exit code report failures."""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path

import pytest
from lilux.primitives.subprocess import SubprocessPrimitive

import torture.__main__ as command
from torture import load
from torture.leftovers import Baseline, Mark, kill_all
from torture.report import Row, run
from torture.scenario import Outcome, Scenario, ScenarioSkippedError


def scenario(outcome: Outcome | Exception) -> Scenario:
    def work(_times: int, _folder: Path) -> Outcome:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return Scenario(name="name", what="things that go wrong", run=work, quick=1, long=2)


def row_of(outcome: Outcome | Exception) -> Row:
    (row,) = run([scenario(outcome)], quick=True)
    return row


def test_a_row_shows_attempts_and_failures() -> None:
    row = row_of(Outcome(tried=1_500, failures=("this", "that"), note="a figure"))
    assert row.failed
    first, *others = str(row).splitlines()
    assert first.split() == ["name", "1,500", "2", "0.0", "things", "that", "go", "wrong"]
    assert [line.strip() for line in others] == ["(a figure)", "failed: this", "failed: that"]


def test_an_exception_in_a_scenario_is_a_failure() -> None:
    row = row_of(RuntimeError("no more"))
    assert row.failed
    assert str(row).endswith("failed: RuntimeError: no more")


def test_a_scenario_that_tried_nothing_is_a_failure() -> None:
    assert row_of(Outcome(tried=0)).failed


def test_a_skipped_scenario_is_reported_and_is_not_a_failure() -> None:
    row = row_of(ScenarioSkippedError("there is no compiler"))
    assert not row.failed
    assert str(row).endswith("things that go wrong: skipped, there is no compiler")


@pytest.mark.parametrize(("failures", "code"), [((), 0), (("one",), 1)])
def test_the_exit_code_reports_a_failure(
    failures: tuple[str, ...],
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(command, "SCENARIOS", (scenario(Outcome(tried=3, failures=failures)),))
    assert command.main(["--quick"]) == code
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == ("some scenarios failed" if failures else "all scenarios passed")


def test_an_unknown_name_is_refused_with_the_known_names(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(["no-such-thing"])
    assert ended.value.code == 2
    output = capsys.readouterr().err
    assert "unknown scenario 'no-such-thing'; choose from: load-processes, " in output


def test_an_answer_that_belongs_to_another_call_is_noticed() -> None:
    words: list[str] = []

    async def swapping(word: str) -> str:
        words.append(word)
        await asyncio.sleep(0)
        return words[0]

    failures = asyncio.run(load._call_many(swapping, 0, 5))
    assert len(failures) == 4
    assert failures[0] == f"call 1 was answered with {words[0]!r}"


def test_a_descriptor_that_stays_open_is_noticed() -> None:
    before = Baseline()
    descriptor = os.open(os.devnull, os.O_RDONLY)
    try:
        assert before._look() == ["descriptors left open: 1"]
    finally:
        os.close(descriptor)
    assert before.leftovers() == []


def test_scenarios_with_the_same_seed_have_different_marks() -> None:
    random.seed(1)
    first = Mark()
    random.seed(1)
    assert first.text != Mark().text


def test_a_process_that_stays_alive_is_noticed() -> None:
    mark = Mark()

    async def leave_one() -> None:
        await SubprocessPrimitive().spawn("sleep", ["60", mark.text])

    asyncio.run(leave_one())
    assert len(mark.alive()) == 1
    kill_all(mark)
    assert mark.leftovers() == []
