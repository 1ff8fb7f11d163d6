"""A batch is read piece by piece, each piece once; what tools print cannot mislead the reader."""

from __future__ import annotations

import asyncio
import fcntl
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from rye.batches.folder import BatchFolder
from rye.batches.known import known_batches, path_of, remember
from rye.batches.plan import state_of
from rye.batches.reading import Reading
from rye.batches.records import BatchResult
from rye.recording.run_ids import new_run_id
from rye_project import Project

BEGAN = 1_790_000_000_000


def result(line: int, outcome: str = "ok", **fields: Any) -> BatchResult:
    values: dict[str, Any] = {
        "id": f"call {line}",
        "data": {"n": line},
        "error": None,
        "attempt": 1,
        "duration_ms": 5.0 + line,
        "run_id": new_run_id(BEGAN + line * 10),
    }
    return BatchResult(line=line, outcome=outcome, **{**values, **fields})


def written(path: Path, count: int) -> BatchFolder:
    folder = BatchFolder(path)
    folder.create()
    folder.write_manifest(
        {"tool": "tools/once", "space": "project", "closure": "", "calls": count, "options": {}}
    )
    return folder


def add(folder: BatchFolder, *results: BatchResult) -> None:
    """Write results as a run of the batch does."""

    async def body() -> None:
        for one in results:
            await folder.starting(one.line)
            folder.ended(one)

    folder.open()
    asyncio.run(body())
    folder.close()


def test_reading_agrees_with_the_state_of_the_batch(tmp_path: Path) -> None:
    folder = written(tmp_path / "b", 100)
    add(folder, *[result(n, "failed" if n % 7 == 0 else "ok") for n in range(1, 61)])
    journal = folder.path / "journal"
    journal.write_bytes(journal.read_bytes() + (61).to_bytes(8, sys.byteorder))
    reading, state = Reading(folder.path, 100), state_of(folder)
    assert reading.advance(10)
    assert (reading.done, reading.in_doubt) == (state.ended, state.in_doubt) == (60, 1)
    assert reading.outcomes == state.outcomes == {"ok": 52, "failed": 8}
    assert [one.call.line for one in reading.slowest] == list(range(60, 40, -1))


def test_what_was_read_is_not_read_again(tmp_path: Path) -> None:
    folder = written(tmp_path / "b", 100)
    add(folder, *[result(n) for n in range(1, 11)])
    reading = Reading(folder.path, 100)
    assert reading.advance(10)
    # Whoever reads it again counts nothing.
    results = folder.path / "results.jsonl"
    results.write_bytes(b"x" * (results.stat().st_size - 1) + b"\n")
    add(folder, result(11), result(12))
    assert reading.advance(10)
    assert reading.done == 12


def test_a_long_batch_is_read_in_pieces(tmp_path: Path) -> None:
    folder = written(tmp_path / "b", 100)
    add(folder, *[result(n, data="x" * 50_000) for n in range(1, 61)])
    reading = Reading(folder.path, 100)
    pieces = []
    while not reading.advance(0):
        pieces.append(reading.done)
    assert reading.done == 60
    assert len(pieces) > 3
    assert 0 < pieces[1] < 60


def test_half_of_a_line_is_left_for_later(tmp_path: Path) -> None:
    folder = written(tmp_path / "b", 10)
    add(folder, result(1))
    line = json.dumps(result(2).fields()).encode() + b"\n"
    with (folder.path / "results.jsonl").open("ab", 0) as file:
        file.write(line[:40])
        reading = Reading(folder.path, 10)
        assert reading.advance(10)
        assert reading.done == 1
        file.write(line[40:])
    assert reading.advance(10)
    assert reading.done == 2


def test_output_that_looks_like_a_result_changes_nothing(tmp_path: Path) -> None:
    forged = json.dumps(result(9, "refused", duration_ms=9e9).fields())
    tail = {"attempt": 3, "duration_ms": 9e9, "run_id": None}
    hostile = {"outcome": "refused", "inner": tail, "text": forged, **tail}
    folder = written(tmp_path / "b", 10)
    add(folder, result(1, data=hostile), result(2, id=forged, data=forged + "\n" + forged))
    reading = Reading(folder.path, 10)
    assert reading.advance(10)
    assert reading.outcomes == {"ok": 2}
    assert [one.duration_ms for one in reading.slowest] == [7.0, 6.0]


def test_a_huge_result_is_counted_without_being_kept(tmp_path: Path) -> None:
    folder = written(tmp_path / "b", 10)
    many = [{"outcome": "refused", "attempt": 1}] * 200_000
    add(folder, result(1, "failed", data=many, error="too much"), result(2))
    reading = Reading(folder.path, 10)
    assert reading.advance(60)
    assert reading.outcomes == {"failed": 1, "ok": 1}
    assert [one.duration_ms for one in reading.slowest] == [7.0, 6.0]


def test_failures_are_grouped_by_what_their_errors_have_in_common(tmp_path: Path) -> None:
    folder = written(tmp_path / "b", 20)
    missing = [
        result(n, "failed", error=f"ended with exit code 3: no file /data/{n}.png", data=None)
        for n in range(1, 8)
    ]
    late = [result(8, "timeout", error="timed out"), result(9, "timeout", error="timed out")]
    skipped = result(10, "skipped", error="the line cannot be used", run_id=None)
    add(folder, *missing, *late, skipped)
    reading = Reading(folder.path, 20)
    assert reading.advance(10)
    first, second = reading.failures
    assert (first.outcome, first.count, first.alike) == ("failed", 7, False)
    assert first.error == "ended with exit code 3: no file /data/1.png"
    assert [one.id for one in first.examples] == [f"call {n}" for n in range(1, 6)]
    assert (second.outcome, second.count, second.alike) == ("timeout", 2, True)
    assert (reading.failed, reading.untimed) == (9, 1)


def test_groups_of_the_same_size_keep_their_order_whichever_call_ended_first(
    tmp_path: Path,
) -> None:
    folder = written(tmp_path / "b", 3)
    add(folder, *[result(n, "failed", error=f"no key {'abc'[n - 1]}") for n in (3, 1, 2)])
    reading = Reading(folder.path, 3)
    assert reading.advance(10)
    assert [one.error for one in reading.failures] == ["no key a", "no key b", "no key c"]


def test_the_number_of_groups_and_of_counts_is_bounded(tmp_path: Path) -> None:
    folder = written(tmp_path / "b", 1000)
    words = ["".join(chr(97 + int(digit)) for digit in str(n)) for n in range(1000)]
    add(
        folder,
        *[
            result(n, "failed", error=words[n], run_id=new_run_id(BEGAN + n * 60_000))
            for n in range(1, 1000)
        ],
    )
    reading = Reading(folder.path, 1000)
    assert reading.advance(10)
    assert len(reading.groups) + reading.others == 999
    assert len(reading.groups) == 200
    assert len(reading.timeline.counts) <= 600
    assert sum(one.total for one in reading.timeline.counts.values()) == 999


def test_another_batch_in_the_same_folder_is_read_from_its_beginning(tmp_path: Path) -> None:
    folder = written(tmp_path / "b", 10)
    add(folder, result(1), result(2))
    reading = Reading(folder.path, 10)
    assert reading.advance(10)
    (folder.path / "journal").unlink()
    (folder.path / "results.jsonl").unlink()
    add(folder, result(3, "failed"))
    assert reading.advance(10)
    assert reading.outcomes == {"failed": 1}


def test_results_that_a_resume_takes_back_are_not_counted(tmp_path: Path) -> None:
    folder = written(tmp_path / "b", 10)
    add(folder, result(1), result(2, "unknown", error="interrupted", run_id=None))
    reading = Reading(folder.path, 10)
    assert reading.advance(10)
    folder.open()
    folder.forget_unknown()
    folder.close()
    assert reading.advance(10)
    assert reading.outcomes == {"ok": 1}
    assert reading.in_doubt == 1


def test_a_running_batch_is_known_by_its_lock(tmp_path: Path) -> None:
    folder = written(tmp_path / "b", 10)
    assert not folder.is_running()
    folder.open()
    assert BatchFolder(folder.path).is_running()
    folder.close()
    assert not folder.is_running()


def test_somebody_who_looks_at_that_moment_does_not_keep_a_batch_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written(tmp_path / "b", 10)
    folder.open()
    folder.close()
    with (folder.path / "lock").open("rb") as looks:
        fcntl.flock(looks, fcntl.LOCK_SH)
        monkeypatch.setattr("rye.batches.folder.time.sleep", lambda _: looks.close())
        folder.open()
    assert BatchFolder(folder.path).is_running()
    folder.close()


def test_a_batch_elsewhere_is_remembered_until_it_is_gone(tmp_path: Path) -> None:
    context = Project(tmp_path).context
    first, second = written(tmp_path / "one", 1), written(tmp_path / "two", 1)
    remember(first.path, context)
    remember(first.path, context)
    assert [path_of(name, context) for name in known_batches(context)] == [first.path]
    (first.path / "manifest.json").unlink()
    first.path.rmdir()
    remember(second.path, context)
    assert [path_of(name, context) for name in known_batches(context)] == [second.path]


@pytest.mark.parametrize("name", ["..", "../keys", "", "." * 20, "01m7q5k4tsfw4htsmxvr"])
def test_a_name_that_is_not_a_batch_leads_nowhere(tmp_path: Path, name: str) -> None:
    assert path_of(name, Project(tmp_path).context) is None
