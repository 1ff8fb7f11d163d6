"""``rye history`` and ``rye output``: what people and scripts can see of past calls."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from histories import database, folder, records
from rye.cli.history.request import parse_without_click
from rye.errors import HistoryError
from rye.executor.run.blocking import BlockingExecutor
from rye.history.changes import exported, imported
from rye.history.moments import duration_milliseconds, milliseconds_since
from rye.history.query import Wanted
from rye.history.store import opened
from rye.recording.database import open_database
from rye.recording.record import Caller
from rye.recording.run_ids import new_run_id
from rye_command import InProcessRye, rye
from rye_project import Project, says

DAY = 24 * 3600 * 1000


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project in which several callers made five calls."""
    project = Project(tmp_path_factory.mktemp("used"))
    project.settings(
        history={"keep": {"output": ["tools/*"], "parameters": ["tools/*"]}},
        permissions={"unenforced": "allow"},
    )
    works = says(project, "echo out; echo err >&2", name="tools/works")
    fails = says(project, "exit 3", name="tools/fails")
    with BlockingExecutor(project.context) as executor:
        for caller in (
            Caller(kind="cli"),
            Caller(kind="mcp", client="inspector 1.2", token="ci"),
            Caller(kind="mcp", client="inspector2 1.0"),
        ):
            executor.execute(works, {"word": "hello"}, caller=caller)
            time.sleep(0.002)  # so that their ids are in order
        executor.execute(fails, caller=Caller(kind="cli"))
        time.sleep(0.002)
        executor.execute("other/missing", caller=Caller(kind="cli"))
    return project


@pytest.fixture
def run(
    used: Project, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> InProcessRye:
    return InProcessRye(used.path, used.user, monkeypatch, capfd)


def rows(run: InProcessRye, *args: str) -> list[dict[str, Any]]:
    done = run("history", *args, "--json")
    assert done.code == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_the_newest_run_is_listed_first(run: InProcessRye) -> None:
    lines = run("history").stdout.splitlines()
    assert len(lines) == 5
    assert "refused" in lines[0]
    assert lines[0].endswith("other/missing")
    assert "failed (3)" in lines[1]
    assert "inspector 1.2" in lines[3]
    assert [row["id"] for row in rows(run)] == [line.split()[0] for line in lines]


def test_a_list_is_cut_at_its_limit_and_says_so(run: InProcessRye) -> None:
    lines = run("history", "--limit", "2").stdout.splitlines()
    assert lines[2:] == ["the last 2 runs; see more with --limit"]
    assert len(rows(run, "--limit", "2")) == 2


@pytest.mark.parametrize(
    ("options", "items"),
    [
        (["--failed"], ["other/missing", "tools/fails"]),
        (["--tool", "tools/w*"], ["tools/works"] * 3),
        (["--tool", "nothing/*"], []),
        (["--by", "inspector"], ["tools/works"]),
        (["--by", "inspector 1.2"], ["tools/works"]),
        (["--by", "ci"], ["tools/works"]),
        (["--by", "mcp"], ["tools/works"] * 2),
        (["--since", "1d", "--failed", "--by", "cli"], ["other/missing", "tools/fails"]),
        (["--since", "2999-01-01"], []),
    ],
)
def test_runs_are_chosen_by_options(
    run: InProcessRye, options: list[str], items: list[str]
) -> None:
    assert [row["item"] for row in rows(run, *options)] == items


def test_both_parsers_list_the_same(run: InProcessRye, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ["--tool=tools/*", "--failed", "--by", "cli", "--limit", "3", "--json"]
    without = run("history", *options)
    monkeypatch.setattr("rye.cli.history.request.parse_without_click", lambda _: None)
    assert run("history", *options) == without


@pytest.mark.parametrize(
    "words", [["show", "x"], ["--limit", "0"], ["--limit"], ["--help"], ["--nope", "1"], ["x"]]
)
def test_unusual_arguments_are_left_to_click(words: list[str]) -> None:
    assert parse_without_click(words) is None


def test_no_runs_are_reported_as_such(run: InProcessRye) -> None:
    assert run("history", "--since", "2999-01-01").stdout == "no runs\n"
    assert run("history", "--since", "2999-01-01", "--json").stdout == "[]\n"
    assert run("history", "stats", "--tool", "x").stdout == "no runs\n"


def test_a_run_is_shown_by_a_part_of_its_id(run: InProcessRye, used: Project) -> None:
    newest = rows(run)[0]["id"]
    whole = run("history", "show", newest)
    assert run("history", "show", "last") == run("history", "show", newest[-6:]) == whole
    assert whole.stdout.startswith("other/missing\n")
    assert "refused (ItemNotFoundError)" in whole.stdout
    record = json.loads(run("history", "show", rows(run)[4]["id"], "--json").stdout)
    assert record["output"]["stdout"]["text"] == "out\n"
    assert record["parameters"]["values"] == {"word": "hello"}
    assert record["project"] == str(used.path)


@pytest.mark.parametrize(
    ("run_id", "message"),
    [
        ("0" * 20, "no recorded run is '00000000000000000000'; list the runs with: rye history"),
        ("01m", "'01m' is not the id of a run; list the runs with: rye history"),
        ("[0-9]*", "'[0-9]*' is not the id of a run; list the runs with: rye history"),
        ("01", None),
    ],
)
def test_an_unknown_run_is_not_found(run: InProcessRye, run_id: str, message: str | None) -> None:
    done = run("history", "show", run_id)
    assert done.code == 3
    if message is not None:
        assert done.stderr == f"rye: {message}\n"


def test_a_part_of_several_ids_is_not_enough(run: InProcessRye) -> None:
    first = rows(run)[0]["id"][:4]
    done = run("history", "show", first)
    assert (done.code, done.stderr) == (
        3,
        f"rye: several runs are {first!r}; give more of the id\n",
    )


def test_statistics_count_calls_and_failures(run: InProcessRye) -> None:
    for options in ([], ["--since", "1d"]):
        found = json.loads(run("history", "stats", *options, "--json").stdout)
        assert [(one["item"], one["calls"], one["failed"]) for one in found] == [
            ("tools/works", 3, 0),
            ("other/missing", 1, 1),
            ("tools/fails", 1, 1),
        ]
        assert all(0 < one["p50_ms"] <= one["p95_ms"] for one in found)
    text = run("history", "stats").stdout.splitlines()
    assert text[0].split() == ["tool", "calls", "failed", "p50", "p95"]
    assert text[1].startswith("tools/works")
    assert text[1].count("█") == 20


def test_both_ways_to_compute_statistics_agree(run: InProcessRye) -> None:
    quick = json.loads(run("history", "stats", "--json").stdout)
    assert json.loads(run("history", "stats", "--since", "1d", "--json").stdout) == quick


def test_kept_output_is_printed_as_it_was(run: InProcessRye) -> None:
    oldest = rows(run)[4]["id"]
    done = run("output", oldest)
    assert (done.stdout, done.stderr) == ("out\n", "err\n")
    assert run("output", oldest, "--stream", "stderr").stdout == "err\n"


def test_output_that_was_not_kept_is_an_error_that_says_how_to_keep_it(run: InProcessRye) -> None:
    newest = rows(run)[0]["id"]
    done = run("output", newest)
    assert (done.code, done.stdout) == (1, "")
    assert done.stderr == (
        f"rye: the output of run {newest} was not kept; keep it from now on by 'other/missing' in "
        "history.keep.output of ~/.ai/config.yaml\n"
    )


# Changes; each with its own project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.settings(
        history={"keep": {"output": ["*"], "parameters": ["*"]}},
        permissions={"unenforced": "allow"},
    )
    return project


@pytest.fixture
def change(
    project: Project, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> InProcessRye:
    return InProcessRye(project.path, project.user, monkeypatch, capfd)


def test_a_redacted_run_has_no_values(project: Project, change: InProcessRye) -> None:
    project.run(says(project, "echo private-output"), {"word": "private-word"})
    before = records(project)[0]
    assert change("history", "redact", "last").stdout == f"redacted {before['id']}\n"
    (after,) = records(project)
    assert after["redacted"]
    assert after["parameters"] == {"sha256": before["parameters"]["sha256"]}
    assert change("output", "last").code == 1
    files = b"".join(path.read_bytes() for path in folder(project).iterdir())
    assert b"private" not in files


def test_runs_can_be_exported_and_imported(
    project: Project, change: InProcessRye, tmp_path: Path
) -> None:
    project.run(says(project, r"printf 'a\377'"), {"word": "x"})
    project.run("tools/missing")
    text = change("history", "export").stdout
    assert len(text.splitlines()) == 2
    file = tmp_path / "runs.jsonl"
    assert change("history", "export", "--out", file).stdout == f"exported 2 runs to {file}\n"
    assert file.read_text() == text
    assert file.stat().st_mode & 0o777 == 0o600
    change("history", "prune", "--all")
    assert change("history", "import", file).stdout == "imported 2 runs\n"
    assert change("history", "import", file).stdout == "imported 0 runs; 2 were there\n"
    again = [json.loads(line) for line in change("history", "export").stdout.splitlines()]
    assert again == [{**json.loads(line), "imported": True} for line in text.splitlines()]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not JSON"),
        ("[]", "not a record"),
        ('{"id": "x"}', "not a record: the id is not one of a run"),
    ],
)
def test_a_bad_import_changes_nothing(
    project: Project, change: InProcessRye, tmp_path: Path, line: str, reason: str
) -> None:
    project.run("tools/missing")
    file = tmp_path / "runs.jsonl"
    file.write_text(change("history", "export").stdout + line)
    change("history", "prune", "--all")
    done = change("history", "import", file)
    assert (done.code, done.stderr) == (1, f"rye: line 2: {reason}; nothing was imported\n")
    assert records(project) == []


@pytest.mark.parametrize(
    ("field", "value", "where"),
    [
        ("item", 5, "Expected `str`, got `int` - at `$.item`"),
        ("exit", 10**30, "Expected `int` <= 9223372036854775807 - at `$.exit`"),
        ("ms", {}, "Object missing required field `total`"),
        ("output", {"stdout": 3}, "Expected `object`, got `int` - at `$.output[...]`"),
        ("parameters", None, "Expected `object`, got `null` - at `$.parameters`"),
    ],
)
def test_an_import_that_no_page_could_show_is_refused(
    project: Project, field: str, value: Any, where: str
) -> None:
    project.run("tools/missing")
    with opened(project.context) as history:
        (line,) = exported(history, Wanted())
        forged = {**json.loads(line), "id": "0" * 20, field: value}
        with pytest.raises(HistoryError) as caught:
            imported(history, [json.dumps(forged)])
    assert str(caught.value) == f"line 1: not a record: {where}; nothing was imported"


def test_an_import_adds_nothing_to_a_run_that_is_there(
    project: Project, change: InProcessRye, tmp_path: Path
) -> None:
    project.run(says(project, "echo private"), {"word": "x"})
    file = tmp_path / "runs.jsonl"
    change("history", "export", "--out", file)
    change("history", "redact", "last")
    assert change("history", "import", file).stdout == "imported 0 runs; 1 were there\n"
    assert "was not kept" in change("output", "last").stderr
    change("history", "prune", "--all")
    change("history", "import", file)
    assert "imported" in change("history", "show", "last").stdout


def test_pruning_follows_the_config_or_the_option(project: Project, change: InProcessRye) -> None:
    now = time.time_ns() // 1_000_000
    project.run("tools/missing")
    line = json.loads(change("history", "export").stdout)
    change("history", "prune", "--all")
    old = [{**line, "id": new_run_id(now - days * DAY)} for days in (60, 40, 20, 1)]
    text = "\n".join(map(json.dumps, old))
    (folder(project) / "spool.jsonl").write_text(text)
    assert change("history", "prune").stdout == "removed 0 runs\n"
    project.settings(history={"retention": {"days": 50}})
    assert change("history", "prune").stdout == "removed 1 run\n"
    assert len(rows(change)) == 3
    assert change("history", "prune", "--older-than", "30d").stdout == "removed 1 run\n"
    assert change("history", "prune", "--all").stdout == "removed 2 runs\n"
    with database(project) as connection:
        assert connection.execute("SELECT count(*) FROM details").fetchone()[0] == 0
    assert change("history", "prune", "--all", "--older-than", "1d").code == 2


def test_a_spool_that_cannot_be_moved_is_reported_beside_the_list(
    project: Project, change: InProcessRye
) -> None:
    project.run("tools/missing")
    assert len(rows(change)) == 1
    project.run("tools/missing")
    (folder(project) / "moving.lock").unlink()
    (folder(project) / "moving.lock").mkdir()
    done = change("history")
    assert done.code == 0
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr.startswith("rye: the newest runs are missing: ")


def test_the_history_of_a_read_only_home_can_be_read(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.run("tools/missing")
    assert len(records(project)) == 1
    status = os.statvfs(folder(project))
    read_only = SimpleNamespace(f_flag=status.f_flag | os.ST_RDONLY)
    monkeypatch.setattr(os, "statvfs", lambda _: read_only)
    with closing(open_database(str(folder(project)))) as connection:
        assert connection.execute("SELECT item FROM runs").fetchall() == [("tools/missing",)]
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            connection.execute("DELETE FROM runs")


def test_rye_run_records_who_called(project: Project) -> None:
    says(project, "echo hi")
    done = rye("run", "tools/says", "--json", cwd=project.path, user=project.user)
    (record,) = records(project)
    assert json.loads(done.stdout)["metadata"]["run_id"] == record["id"]
    assert record["by"] == "cli"


# Moments


@pytest.mark.parametrize(
    ("text", "seconds"), [("30m", 1800), ("12h", 43200), ("1d", 86400), ("2w", 1209600)]
)
def test_a_moment_is_so_long_ago(text: str, seconds: int) -> None:
    assert milliseconds_since(text, now=10_000_000) == (10_000_000 - seconds) * 1000
    assert duration_milliseconds(text) == seconds * 1000


def test_a_moment_may_be_a_local_date() -> None:
    moment = milliseconds_since("2026-01-31")
    assert time.strftime("%Y-%m-%d %H:%M", time.localtime(moment / 1000)) == "2026-01-31 00:00"
    assert milliseconds_since("2026-01-31T12:00:00+00:00") == 1769860800000


@pytest.mark.parametrize("text", ["", "yesterday", "1y", "-1d", "2026-13-01"])
def test_what_is_not_a_moment_is_an_error(text: str) -> None:
    with pytest.raises(HistoryError, match="is not a moment; write 30m, 12h, 1d or a date such as"):
        milliseconds_since(text)
    with pytest.raises(HistoryError, match="is not a duration; write 30m, 12h or 30d"):
        duration_milliseconds(text)
