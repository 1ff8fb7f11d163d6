"""``rye replay``: the same call again, and the first difference."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from histories import database, records
from rye.history.comparison import (
    environment_difference,
    first_different_line,
    interpreter_difference,
    outcome_difference,
)
from rye_command import InProcessRye
from rye_project import Project, says

AGAIN = {"idempotent": True}
SCHEMA = {"type": "object", "properties": {"word": {"type": "string"}, "n": {"type": "integer"}}}
KEEP = {"keep": {"parameters": ["*"], "output": ["*"]}}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, shipped_system=True)


@pytest.fixture
def rye(
    project: Project, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> InProcessRye:
    monkeypatch.setenv("PATH", project.environ["PATH"])
    return InProcessRye(project.path, project.user, monkeypatch, capfd)


def keep(project: Project, **history: Any) -> None:
    project.settings(history=history, permissions={"unenforced": "allow"})


def tool(project: Project, script: str, **fields: Any) -> str:
    return says(project, script, annotations=AGAIN, config_schema=SCHEMA, **fields)


def replayed(rye: InProcessRye, *args: str) -> dict[str, Any]:
    done = rye("replay", *args, "--json")
    assert done.stdout, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    assert done.code == (0 if report["same"] else 1), done.stderr
    return report


def test_a_run_that_gives_the_same_is_the_same(project: Project, rye: InProcessRye) -> None:
    keep(project, **KEEP)
    item = tool(project, "echo hello; exit 3")
    assert rye("run", item, "word=x", "n=3").code == 3
    run = records(project)[-1]["id"]
    done = rye("replay", "last")
    assert (done.code, done.stdout) == (0, "hello\n")
    assert done.stderr == f"the same: {item}, run {run}\n"
    again = records(project)[-1]
    assert again["replays"] == run
    assert again["parameters"]["values"] == {"word": "x", "n": 3}


def test_parameters_that_were_not_kept_are_given_again(project: Project, rye: InProcessRye) -> None:
    rye("run", tool(project, "echo hello"), "word=x", "n=3")
    run = records(project)[0]["id"]
    done = rye("replay", run)
    assert done.code == 2
    assert done.stderr == (
        f"rye: cannot repeat run {run}: its input was not kept; "
        f"give the parameters again: rye replay {run} KEY=VALUE…\n"
    )
    assert replayed(rye, run, "word=x", "n=3")["same"]
    assert replayed(rye, run, "--params", '{"n": 3, "word": "x"}')["same"]
    other = replayed(rye, run, "word=other", "n=3")
    assert other["difference"]["what"] == "parameters"
    assert not other["ran"]


def test_a_run_without_parameters_needs_none(project: Project, rye: InProcessRye) -> None:
    rye("run", tool(project, "echo hello"))
    assert replayed(rye, "last")["same"]


def test_the_first_different_line_is_named(
    project: Project, rye: InProcessRye, tmp_path: Path
) -> None:
    keep(project, **KEEP)
    counter = tmp_path / "counter"
    counter.write_text("1")
    rye("run", tool(project, f"echo one; echo two; cat {counter}; echo same"))
    counter.write_text("2")
    done = rye("replay", "last")
    assert (done.code, done.stderr) == (1, "stdout differs at line 3\n")
    run = records(project)[0]["id"]
    assert replayed(rye, run)["difference"]["text"] == "stdout differs at line 3"


def test_without_kept_output_the_stream_is_named(
    project: Project, rye: InProcessRye, tmp_path: Path
) -> None:
    counter = tmp_path / "counter"
    counter.write_text("1")
    rye("run", tool(project, f"cat {counter} >&2"))
    counter.write_text("2")
    assert replayed(rye, "last")["difference"]["text"] == "stderr differs"


def test_another_exit_code_is_named_before_the_output(
    project: Project, rye: InProcessRye, tmp_path: Path
) -> None:
    code = tmp_path / "code"
    code.write_text("0")
    rye("run", tool(project, f"cat {code}; exit $(cat {code})"))
    code.write_text("7")
    assert replayed(rye, "last")["difference"]["text"] == "exit: 0 → 7"


def test_a_dry_run_only_compares(project: Project, rye: InProcessRye, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    item = tool(project, f"echo x >> {mark}")
    rye("run", item)
    report = replayed(rye, "last", "--dry-run")
    assert (report["same"], report["ran"]) == (True, False)
    assert mark.read_text() == "x\n"
    run = records(project)[0]["id"]
    assert rye("replay", run, "--dry-run").stdout == f"would run as before: {item}, run {run}\n"


def test_another_interpreter_is_named_before_anything_runs(
    project: Project, rye: InProcessRye, tmp_path: Path
) -> None:
    rye("run", tool(project, "echo hello"))
    records(project)
    with database(project) as connection:
        text = connection.execute("SELECT record FROM details").fetchone()[0]
        record = json.loads(text)
        assert len(record["interpreter"]["sha256"]) == 64
        record["interpreter"] |= {"sha256": "00", "version": "1.0"}
        connection.execute("UPDATE details SET record = ?", [json.dumps(record)])
        connection.commit()
    report = replayed(rye, "last")
    assert report["difference"]["what"] == "interpreter"
    assert not report["ran"]
    assert replayed(rye, "last", "--anyway")["ran"]


def test_a_tool_that_may_change_something_asks_first(project: Project, rye: InProcessRye) -> None:
    item = says(project, "echo hello")
    rye("run", item)
    done = rye("replay", "last")
    assert done.code == 2
    assert "'tools/says' may change something again, and nobody can be asked" in done.stderr
    assert replayed(rye, "last", "--yes")["same"]


def test_what_ran_nothing_cannot_be_repeated(project: Project, rye: InProcessRye) -> None:
    rye("run", "tools/missing")
    run = records(project)[0]["id"]
    done = rye("replay", run)
    assert done.stderr == (
        f"rye: run {run} ran nothing: it ended with refused; repeat a run that has a closure\n"
    )


def test_a_refusal_has_the_exit_code_of_rye_run(project: Project, rye: InProcessRye) -> None:
    item = tool(project, "echo hello")
    rye("run", item)
    path = project.path / ".ai/tools/tools/says.yaml"
    path.write_text(path.read_text().replace("hello", "changed"))
    store = project.user / ".ai" / "cache" / "closures"
    store.rename(store.with_name("gone"))
    done = rye("replay", "last")
    assert done.code in {4, 5}
    assert "changed" in done.stderr


@pytest.mark.parametrize("signed", [True, False])
def test_the_closure_runs_from_the_store_though_the_tool_has_changed(
    project: Project, rye: InProcessRye, signed: bool
) -> None:
    item = tool(project, "echo hello")
    rye("run", item)
    if signed:
        tool(project, "echo changed")
    else:
        path = project.path / ".ai/tools/tools/says.yaml"
        path.write_text(path.read_text().replace("hello", "changed"))
    done = rye("replay", "last")
    assert (done.code, done.stdout) == (0, "hello\n"), done.stderr
    first, second = records(project)
    assert second["closure"] == first["closure"]
    assert second["replays"] == first["id"]


def test_a_closure_that_is_gone_is_named_before_anything_runs(
    project: Project, rye: InProcessRye
) -> None:
    rye("run", tool(project, "echo hello"))
    tool(project, "echo changed")
    project.lockfile("tools/says").unlink()
    store = project.user / ".ai" / "cache" / "closures"
    store.rename(store.with_name("gone"))
    report = replayed(rye, "last")
    assert report["difference"]["what"] == "closure"
    assert "the tool, or what it runs on, has changed" in report["difference"]["text"]
    assert not report["ran"]


def test_a_stored_closure_by_a_key_that_was_revoked_does_not_run(
    project: Project, rye: InProcessRye
) -> None:
    """Trust is decided again: what is stored was trusted once."""
    rye("run", tool(project, "echo hello"))
    record = records(project)[0]
    folder = project.user / ".ai" / "revoked_keys"
    folder.mkdir(mode=0o700)
    (folder / f"{record['signers'][0]}.toml").write_text("")
    done = rye("replay", "last")
    assert done.code == 4
    assert "revoked" in done.stderr


def test_modules_of_a_stored_tool_are_the_old_ones(project: Project, rye: InProcessRye) -> None:
    source = (
        '"""Say a word."""\nimport word\n__version__ = "1.0.0"\n__tool_type__ = "python"\n'
        '__executor_id__ = "rye/core/runtimes/python_runtime"\n'
        'ANNOTATIONS = {"idempotent": True}\n\n\ndef main():\n    return word.WORD\n'
    )
    project.tool("py/__init__.py", "")
    project.tool("py/word.py", 'WORD = "old"\n')
    project.tool("py/say.py", source)
    first = rye("run", "py/say")
    assert first.stdout == "old\n", first.stderr
    project.tool("py/word.py", 'WORD = "new"\n')
    done = rye("replay", "last", "--yes")
    assert (done.code, done.stdout.strip('"\n')) == (0, "old"), done.stderr


def test_a_receipt_can_be_replayed(project: Project, rye: InProcessRye) -> None:
    rye("run", tool(project, "echo hello"), "word=x")
    file = project.path / "receipt.json"
    file.write_text(rye("receipt", "last").stdout)
    assert replayed(rye, "receipt.json", "word=x")["same"]
    rye("receipt", "log", "--out", "log.jsonl")
    assert rye("replay", "log.jsonl", "word=x").stderr == (
        "rye: log.jsonl has 2 receipts, and one can be replayed; pass a file with one line of it\n"
    )
    file.write_text(file.read_text().replace("payload", "payloaD", 1))
    assert rye("replay", "receipt.json", "word=x").code == 4


def test_a_widened_call_is_widened_again_and_no_more(project: Project, rye: InProcessRye) -> None:
    item = tool(project, "echo hello", permissions={"run": ["system"]})
    assert rye("run", "--allow", "read=/usr/share", item).code == 0
    report = replayed(rye, "last", "--dry-run")
    assert report["same"], report
    replayed(rye, "last")
    first, second = records(project)
    assert second["permissions"] == first["permissions"]
    project.grant({"tools": ["*"], "net": ["example.org:443"]})
    assert replayed(rye, first["id"])["difference"]["what"] == "permissions"


def test_an_import_or_a_receipt_grants_nothing_to_a_replay(
    project: Project, rye: InProcessRye
) -> None:
    item = tool(project, "echo hello", permissions={"run": ["system"]})
    assert rye("run", "--allow", "read=/usr/share", item).code == 0
    (run,) = [one["id"] for one in records(project)]
    (project.path / "receipt.json").write_text(rye("receipt", run).stdout)
    (project.path / "runs.jsonl").write_text(rye("history", "export").stdout)
    rye("history", "prune", "--all")
    assert rye("history", "import", "runs.jsonl").code == 0
    for what in (run, "receipt.json"):
        report = replayed(rye, what)
        assert not report["ran"]
        assert report["difference"]["text"] == (
            "permissions: the run was allowed more than the tool declares, which only the account "
            "that recorded it repeats; decide for yourself with: rye run --allow"
        )
    replayed(rye, run, "--anyway")
    assert records(project)[-1]["permissions"]["read"] == []


# Differences in words


def test_versions_of_an_interpreter_are_named() -> None:
    old = {"path": "/usr/bin/python3", "sha256": "a", "version": "3.11.7"}
    new = {"path": "/usr/bin/python3", "sha256": "b", "version": "3.11.9"}
    found = interpreter_difference(old, new)
    assert found is not None
    assert found.text == "interpreter: python3 3.11.7 → 3.11.9"
    assert interpreter_difference(old, {**old, "path": "/opt/python3"}) is None
    patched = interpreter_difference(old, {**old, "sha256": "b"})
    assert patched is not None
    assert patched.text == "interpreter: python3 is another file now"


def test_names_of_variables_are_compared() -> None:
    found = environment_difference(["A", "B"], ["B", "C"])
    assert found is not None
    assert found.text == "environment: now without A and with C"
    assert environment_difference(["A"], ["A"]) is None


def test_endings_are_compared() -> None:
    found = outcome_difference({"outcome": "ok", "exit": 0}, {"outcome": "timeout", "exit": -1})
    assert found is not None
    assert found.text == "exit: 0 → timeout"
    killed = outcome_difference({"outcome": "failed", "signal": 9}, {"outcome": "ok", "exit": 0})
    assert killed is not None
    assert killed.text == "exit: signal 9 → 0"


def test_the_first_different_line_counts_from_one() -> None:
    assert first_different_line(b"a\nb\n", b"a\nc\n") == 2
    assert first_different_line(b"a\n", b"a\nb\n") == 2
    assert first_different_line(b"a", b"a") is None
