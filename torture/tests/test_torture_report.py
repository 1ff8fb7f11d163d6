"""The table tells what was lost, and so does the exit code."""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path

import pytest
from lilux.primitives.subprocess import SubprocessPrimitive

import torture.__main__ as command
from torture import load
from torture.leftovers import Before, Mark, end_all
from torture.report import Row, run
from torture.scenario import CannotBeTriedError, Outcome, Scenario


def scenario(outcome: Outcome | Exception) -> Scenario:
    def work(_times: int, _folder: Path) -> Outcome:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return Scenario(name="name", what="things that go wrong", run=work, quick=1, long=2)


def row_of(outcome: Outcome | Exception) -> Row:
    (row,) = run([scenario(outcome)], quick=True)
    return row


def test_a_row_tells_how_often_and_what_was_lost() -> None:
    row = row_of(Outcome(tried=1_500, lost=("this", "that"), note="a figure"))
    assert row.lost
    first, *others = str(row).splitlines()
    assert first.split() == ["name", "1,500", "2", "0.0", "things", "that", "go", "wrong"]
    assert [line.strip() for line in others] == ["(a figure)", "lost: this", "lost: that"]


def test_a_scenario_that_breaks_off_counts_as_a_loss() -> None:
    row = row_of(RuntimeError("no more"))
    assert row.lost
    assert str(row).endswith("lost: RuntimeError: no more")


def test_a_scenario_that_tried_nothing_counts_as_a_loss() -> None:
    assert row_of(Outcome(tried=0)).lost


def test_what_this_machine_cannot_do_is_told_and_is_no_loss() -> None:
    row = row_of(CannotBeTriedError("there is no compiler"))
    assert not row.lost
    assert str(row).endswith("things that go wrong: not tried, there is no compiler")


@pytest.mark.parametrize(("lost", "code"), [((), 0), (("one",), 1)])
def test_the_exit_code_tells_a_loss(
    lost: tuple[str, ...],
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(command, "SCENARIOS", (scenario(Outcome(tried=3, lost=lost)),))
    assert command.main(["--quick"]) == code
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == ("something was lost" if lost else "nothing was lost")


def test_an_unknown_name_is_refused_with_those_that_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(["no-such-thing"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "no scenario is called 'no-such-thing'; one of: load-processes, " in said


def test_an_answer_that_belongs_to_another_call_is_noticed() -> None:
    words: list[str] = []

    async def swapping(word: str) -> str:
        words.append(word)
        await asyncio.sleep(0)
        return words[0]

    lost = asyncio.run(load._each_its_own(swapping, 0, 5))
    assert len(lost) == 4
    assert lost[0] == f"call 1 was answered with {words[0]!r}"


def test_a_descriptor_that_stays_open_is_noticed() -> None:
    before = Before()
    descriptor = os.open(os.devnull, os.O_RDONLY)
    try:
        assert before._look() == ["descriptors left open: 1"]
    finally:
        os.close(descriptor)
    assert before.left() == []


def test_a_process_that_stays_alive_is_noticed() -> None:
    mark = Mark(random.Random())

    async def leave_one() -> None:
        await SubprocessPrimitive().spawn("sleep", ["60", mark.text])

    asyncio.run(leave_one())
    assert len(mark.alive()) == 1
    end_all(mark)
    assert mark.left() == []
