"""The page of a run: what it shows, and what it may do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from histories import records
from live_session import live_run
from rye.recording.record import utc_text
from rye.recording.run_ids import new_run_id
from rye.ui.access import form_token
from rye.ui.run_facts import process_tree, steps_of
from rye_command import rye
from rye_project import Project, says
from ui_session import Visitor, served_page

SECRET = "hunter2-xyzzy"
HOSTILE = "<img src=x onerror=alert(1)>\x1b[31m\u202e"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("runs"), shipped_system=True)
    config = project.user / ".ai" / "config.yaml"
    config.write_text(
        'history: {keep: {parameters: ["kept/*"], output: ["kept/*"]}}\n'
        "permissions: {unenforced: allow}\n"
    )
    return project


@pytest.fixture(scope="module")
def acting(project: Project) -> Iterator[Visitor]:
    with served_page(project, "--run") as page:
        yield page.enter()


def run_of(project: Project, item: str, parameters: dict[str, object] | None = None) -> str:
    """Run a tool, and return the id of its run."""
    result = project.run(item, parameters)
    assert "run_id" in result.metadata, result.error
    return str(result.metadata["run_id"])


def imported(project: Project, root: Path, **fields: object) -> str:
    """Import a run that somebody else wrote, and return its id."""
    began = 1_790_000_000_000
    made = {
        "id": new_run_id(began),
        "time": utc_text(began),
        "by": "cli",
        "project": "",
        "item": "others/tool",
        "outcome": "timeout",
        "ms": {"total": 1.0},
        "parameters": {},
        **fields,
    }
    (root / "run.jsonl").write_text(json.dumps(made) + "\n")
    done = rye("history", "import", root / "run.jsonl", cwd=project.path, user=project.user)
    assert done.code == 0, done.stderr
    return str(made["id"])


def test_kept_output_is_shown_in_parts_as_text(project: Project, acting: Visitor) -> None:
    says(project, "printf '<b>bold</b>\\033[31m'; head -c 70000 /dev/zero | tr '\\0' x", "kept/big")
    run_id = run_of(project, "kept/big")
    first = acting.get(f"/runs/{run_id}?stream=stdout").text
    assert "&lt;b&gt;bold&lt;/b&gt;\\x1b[31m" in first
    assert "Part 1 of 2" in first
    second = acting.get(f"/runs/{run_id}?stream=stdout&part=2").text
    assert "Part 2 of 2" in second
    assert "bold" not in second
    for part in ("-1", "99", "x", "9" * 40):
        assert acting.get(f"/runs/{run_id}?part={part}").status == 200


def test_output_that_was_not_kept_is_named_by_its_digest(project: Project, acting: Visitor) -> None:
    says(project, f"echo {SECRET}", "tools/quiet")
    text = acting.get(f"/runs/{run_of(project, 'tools/quiet')}").text
    assert "The output itself was not kept." in text
    assert SECRET not in text


def test_secret_parameters_are_not_shown(project: Project, acting: Visitor) -> None:
    schema = {
        "type": "object",
        "properties": {"pin": {"type": "string", "writeOnly": True}, "name": {"type": "string"}},
    }
    says(project, "true", "kept/secret", config_schema=schema)
    text = acting.get(
        f"/runs/{run_of(project, 'kept/secret', {'pin': SECRET, 'name': 'Ada'})}"
    ).text
    assert SECRET not in text
    assert "(secret)" in text
    assert "Ada" in text


def test_an_autopsy_is_a_tree_and_its_texts_are_text(
    project: Project, acting: Visitor, tmp_path: Path
) -> None:
    processes = [
        {"pid": 7, "parent": 1, "command": "sh", "waits_for": "waiting for child 8"},
        {"pid": 8, "parent": 7, "command": HOSTILE, "waits_for": HOSTILE},
        {"pid": 9, "parent": 7, "command": "cat", "waits_for": "reading a pipe"},
    ]
    run_id = imported(project, tmp_path, autopsy={"processes": processes}, reason=HOSTILE)
    text = acting.get(f"/runs/{run_id}").text
    assert "<img" not in text.partition("<main")[2]
    assert "\u202e" not in text
    assert text.count('<ul class="tree">') == 2
    assert text.count("<ul") == text.count("</ul>")
    assert "The run was imported; its receipt is made where it was recorded." in text


def test_processes_that_claim_to_be_their_own_parents_are_all_listed() -> None:
    circle = [{"pid": 1, "parent": 2}, {"pid": 2, "parent": 1}, {"pid": 3, "parent": 3}]
    assert sorted(node.process["pid"] for node in process_tree(circle)) == [1, 2, 3]


def test_steps_follow_each_other() -> None:
    steps = steps_of({"prepare": 1.0, "wait": 1.0, "run": 6.0, "total": 10.0})
    assert [(one.start, one.width) for one in steps] == [(0, 10), (10, 10), (20, 60), (80, 20)]
    assert steps[-1].name == "Finish and record"


def test_a_receipt_is_made_on_request_and_verified(project: Project, acting: Visitor) -> None:
    says(project, "echo hi", "tools/hi")
    path = f"/runs/{run_of(project, 'tools/hi')}"
    assert "No receipt has been made." in acting.get(path).text
    made = acting.post(f"{path}/receipt", {"csrf": acting.form_token(path)})
    assert made.status == 303
    text = acting.get(path).text
    assert re.search(r"Valid: signed by [0-9a-f]{16}, your own key\.", text)


def test_a_replay_names_the_first_difference(project: Project, acting: Visitor) -> None:
    says(project, "ls", "kept/list", annotations={"idempotent": True})
    path = f"/runs/{run_of(project, 'kept/list')}"
    token = {"csrf": acting.form_token(path), "anyway": "on", "yes": "on"}
    before = len(records(project))
    acting.post(f"{path}/replay", {**token, "compare": "1"})
    assert len(records(project)) == before
    (project.path / "0-new").write_text("")
    text = acting.post(f"{path}/replay", {**token, "run": "1"}).text
    assert "stdout differs at line 1" in text
    found = re.search(r'href="(/runs/[^"]*)">Open the new run', text)
    assert found is not None
    assert f'repeats <a href="{path}">' in acting.get(found[1]).text
    assert records(project)[-1]["by"] == "ui"


def test_a_replay_that_differs_already_says_that_nothing_has_run(
    project: Project, acting: Visitor
) -> None:
    says(project, "true", "kept/true", annotations={"idempotent": True})
    # The page has other variables than the process of the test.
    path = f"/runs/{run_of(project, 'kept/true')}"
    before = len(records(project))
    text = acting.post(f"{path}/replay", {"csrf": acting.form_token(path), "run": "1"}).text
    assert "First difference: environment: now with" in text
    assert "It has not run, because something differs already; allow that to run it" in text
    assert len(records(project)) == before


def test_a_replay_under_way_is_on_the_live_page_and_ends_with_the_page(tmp_path: Path) -> None:
    project = Project(tmp_path, shipped_system=True)
    says(project, '[ -e "$PWD.ran" ] && exec sleep 600; touch "$PWD.ran"', "tools/once")
    path = f"/runs/{run_of(project, 'tools/once')}"
    with ThreadPoolExecutor() as pool:
        with served_page(project, "--run") as page:
            visitor = page.enter()
            allowed = {"csrf": visitor.form_token(path), "anyway": "on", "yes": "on", "run": "1"}
            answer = pool.submit(visitor.post, f"{path}/replay", allowed)
            again = live_run(visitor)
            assert "called by this page" in visitor.get(again).text
            assert "Cancel the call" in visitor.get(again).text
        # The page has ended, with nothing on stderr, although the tool would still run.
        text = answer.result().text
    assert "exit: 0 → cancelled" in text
    assert records(project)[-1]["outcome"] == "cancelled"


def test_a_secret_is_given_again_for_a_replay_and_stays_out_of_the_page(
    project: Project, acting: Visitor
) -> None:
    schema = {
        "type": "object",
        "properties": {"pin": {"type": "integer", "writeOnly": True}, "name": {"type": "string"}},
        "required": ["pin", "name"],
    }
    fields = {"config_schema": schema, "annotations": {"idempotent": True}}
    project.command("kept/pin", "/bin/sh", "-c", "test $1 = 739106", "sh", "{pin}", **fields)
    path = f"/runs/{run_of(project, 'kept/pin', {'pin': 739106, 'name': 'Ada'})}"
    text = acting.get(path).text
    assert re.search(r'<input type="password" id="secret-1" name="again.pin"[^>]*>', text)
    token = {"csrf": acting.form_token(path), "run": "1", "anyway": "on"}
    text = acting.post(f"{path}/replay", token).text
    assert "its input has secret parameters" in text
    text = acting.post(f"{path}/replay", {**token, "again.pin": "x739106"}).text
    assert "a secret parameter: expected an integer; give it again" in text
    assert "739106" not in text
    text = acting.post(f"{path}/replay", {**token, "again.pin": "739106"}).text
    assert "739106" not in text
    assert "Open the new run" in text
    assert records(project)[-1]["outcome"] == "ok"


def test_who_signed_and_which_signal_ended_it_are_named(project: Project, acting: Visitor) -> None:
    says(project, "kill -TERM $$", "kept/killed")
    text = acting.get(f"/runs/{run_of(project, 'kept/killed')}").text
    assert re.search(r"<dd>you \([0-9a-f]{16}\)", text)
    assert "<dd>15 (SIGTERM)</dd>" in text


def test_a_tool_that_may_change_something_is_not_repeated_unasked(
    project: Project, acting: Visitor
) -> None:
    says(project, "echo x >> changed", "kept/changes")
    path = f"/runs/{run_of(project, 'kept/changes')}"
    token = acting.form_token(path)
    text = acting.post(f"{path}/replay", {"csrf": token, "run": "1", "anyway": "on"}).text
    assert "kept/changes may change something again; allow that to run it" in text, re.findall(
        r"notice[^<]*<", text
    )
    assert (project.path / "changed").read_text() == "x\n"


def test_another_site_cannot_replay_or_sign(project: Project, acting: Visitor) -> None:
    says(project, "echo x >> forged", "kept/forged")
    path = f"/runs/{run_of(project, 'kept/forged')}"
    for action in ("replay", "receipt"):
        fields = {"run": "1", "yes": "on", "anyway": "on"}
        assert acting.post(f"{path}/{action}", fields).status == 403
    assert (project.path / "forged").read_text() == "x\n"
    assert "No receipt has been made." in acting.get(path).text


def test_a_read_only_page_offers_neither_replay_nor_receipt(project: Project) -> None:
    says(project, "echo x >> shown", "kept/shown")
    path = f"/runs/{run_of(project, 'kept/shown')}"
    with served_page(project) as page:
        visitor = page.enter()
        text = visitor.get(path).text
        assert 'method="post"' not in text
        assert "rye replay" in text
        fields = {"csrf": form_token(visitor.cookie.partition("=")[2]), "run": "1", "yes": "on"}
        for action in ("replay", "receipt"):
            assert visitor.post(f"{path}/{action}", fields).status == 403
    assert (project.path / "shown").read_text() == "x\n"


def test_a_run_that_is_not_there_is_a_page_of_its_own(acting: Visitor) -> None:
    for run_id in ("0" * 20, "%3Cb%3E", "x", "..%2f..", "%00abc"):
        answer = acting.get(f"/runs/{run_id}")
        assert answer.status == 404, run_id
        assert "<b>" not in answer.text


def test_a_refused_run_says_why_before_anything_else(project: Project, acting: Visitor) -> None:
    path = project.tool("tools/unsigned.sh", "echo hi\n", signed=False)
    text = acting.get(f"/runs/{run_of(project, 'tools/unsigned')}").text
    why = text.index('<p class="notice bad">tools/unsigned is not signed: ')
    assert why < text.index("Where the time went")
    assert f"rye sign {path}</p>" in text
    # Nothing ran, so there was no interpreter.
    assert "Interpreter" not in text


def test_a_denial_is_recorded_with_its_name_only_if_output_is_kept(project: Project) -> None:
    for item in ("kept/denied", "tools/denied"):
        script = f"echo token > {project.user}/private"
        says(project, script, item, permissions={"run": ["system"]})
        assert not project.run(item).success
    kept, other = [one.get("denials") for one in records(project)[-2:]]
    assert kept is not None
    assert other is not None
    assert kept[0]["target"].endswith("/private")
    assert [sorted(one) for one in other] == [["key", "tried"] for _ in other]
