"""The pages of batches: progress, rate over time, failures in groups, slowest calls."""

from __future__ import annotations

import asyncio
import html
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import wait_until
from rye.batches.folder import BatchFolder
from rye.batches.records import BatchResult
from rye.recording.run_ids import new_run_id
from rye_command import rye
from rye_project import Project
from ui_session import Visitor, served_page

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e"
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
HOUR = 3_600_000


def words(text: str) -> str:
    """The text of a page, without markup."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("batches"), shipped_system=True)
    script = '[ "$1" -lt 8 ] || { echo "no image $1" >&2; exit 3; }'
    project.command("jobs/resize", "/bin/sh", "-c", script, "sh", "{n}", config_schema=SCHEMA)
    _ = project.context
    calls = project.path / "calls.jsonl"
    calls.write_text("".join([json.dumps({"n": n}) + "\n" for n in range(10)]))
    done = rye(
        "batch", "jobs/resize", calls, "--dir", "elsewhere", cwd=project.path, user=project.user
    )
    assert done.code == 1, done.stderr
    return project


@pytest.fixture(scope="module")
def visitor(project: Project) -> Iterator[Visitor]:
    with served_page(project) as page:
        yield page.enter()


@pytest.fixture
def hostile(project: Project) -> Iterator[BatchFolder]:
    """A batch that runs, of 1,000 calls; two have ended, with three hours between them."""
    began = 1_790_000_000_000
    folder = BatchFolder(project.user / ".ai" / "batches" / new_run_id(began))
    folder.create()
    folder.write_manifest(
        {
            "tool": HOSTILE,
            "space": "project",
            "closure": "",
            "calls": 1000,
            "options": {"timeout": 2.5, "out": HOSTILE, "env": ["X"]},
        }
    )

    async def body() -> None:
        for line in (1, 2, 3):
            await folder.starting(line)
        for line in (1, 2):
            run_id = new_run_id(began + line * 3 * HOUR)
            folder.ended(
                BatchResult(line, HOSTILE, "failed", None, HOSTILE, 1, 2000.0 * line, run_id)
            )

    folder.open()
    asyncio.run(body())
    yield folder
    folder.close()
    shutil.rmtree(folder.path)


def link_of(visitor: Visitor, tool: str) -> str:
    found = re.findall(rf'href="(/batches/\w+)">{tool}<', visitor.get("/batches").text)
    assert len(found) == 1
    return str(found[0])


def test_the_list_has_batches_of_other_folders_with_their_progress(
    visitor: Visitor, project: Project
) -> None:
    shown = words(visitor.get("/batches").text)
    assert re.search(
        rf"jobs/resize 20[\d: -]+ {project.path}/elsewhere "
        r"ended, with failures 10 of 10 calls 2 [\d.,]+ a second",
        shown,
    )


def test_the_page_of_a_batch_groups_its_failures_and_names_the_slowest_calls(
    visitor: Visitor,
) -> None:
    text = visitor.get(link_of(visitor, "jobs/resize")).text
    shown = words(text)
    assert "10 of 10 calls" in shown
    assert "ok 8 · failed 2" in shown
    assert "'jobs/resize' ended with exit code 3: no image 8" in shown
    assert re.search(r"For instance 1 failed .* no image 8 9 1 failed .* no image 9 10 ", shown)
    assert "The 10 slowest calls" in shown
    assert "data-events" not in text
    run = re.search(r'href="(/runs/\w+)">9</a>', text)
    assert run is not None
    assert "Exit code 3" in words(visitor.get(run[1]).text)


def test_the_drawings_say_in_words_what_they_show(visitor: Visitor) -> None:
    text = visitor.get(link_of(visitor, "jobs/resize")).text
    assert re.search(r'aria-label="Rate over time: 10 calls in [^"]* a second, at most ', text)
    assert re.search(r'aria-label="Durations: 10 calls; the most, \d+, took ', text)
    assert 'class="bar-bad"' in text


def test_a_running_batch_says_what_is_under_way_and_reports_its_end(
    visitor: Visitor, hostile: BatchFolder
) -> None:
    path = f"/batches/{hostile.path.name}"
    text = visitor.get(path).text
    shown = words(text)
    assert "running" in shown
    assert "2 of 1,000 calls" in shown
    assert "1 under way." in shown
    assert "1 long pause is left out" in shown
    assert "Time limit 2.5 s" in shown
    events = re.search(r'data-events="([^"]*)"', text)
    assert events is not None
    hostile.close()
    assert "event: reload" in visitor.get(html.unescape(events[1])).text
    ended = words(visitor.get(path).text)
    assert "interrupted" in ended
    assert f"Go on with: rye batch resume {hostile.path}" in ended
    assert "1 started and has no result: nobody knows whether they ran." in ended


def test_ids_errors_and_tools_of_a_batch_are_text(visitor: Visitor, hostile: BatchFolder) -> None:
    for path in ("/batches", f"/batches/{hostile.path.name}"):
        text = visitor.get(path).text
        assert "alert(1)" in text
        assert "<script>alert" not in text
        assert "\x1b" not in text
        assert "\u202e" not in text


def test_a_folder_that_is_not_a_batch_is_not_shown(visitor: Visitor, project: Project) -> None:
    (project.user / ".ai" / "batches" / "notes").mkdir()
    empty = project.user / ".ai" / "batches" / new_run_id(1)
    empty.mkdir()
    assert visitor.get("/batches").text.count('class="main"') == 1
    assert visitor.get("/batches/notes").status == 404
    assert visitor.get("/batches/..%2Fkeys").status == 404
    answer = visitor.get(f"/batches/{empty.name}")
    assert answer.status == 409
    assert "is not a batch" in answer.text


def test_a_view_does_not_wait_for_a_batch_that_takes_long_to_read(tmp_path: Path) -> None:
    project = Project(tmp_path)
    _ = project.context
    folder = BatchFolder(project.user / ".ai" / "batches" / new_run_id(1_790_000_000_000))
    folder.create()
    folder.write_manifest(
        {"tool": "tools/t", "space": "project", "closure": "", "calls": 30_000, "options": {}}
    )
    line = json.dumps(BatchResult(1, "x", "ok", "y" * 40, None, 1, 2.0, "0" * 20).fields())
    numbered = line.replace('{"line": 1,', '{"line": %d,')
    with (folder.path / "results.jsonl").open("w") as results:
        results.writelines([numbered % n + "\n" for n in range(1, 30_001)])
    with served_page(project) as page:
        visitor = page.enter()
        first = words(visitor.get("/batches").text)
        assert re.search(r"at least [\d,]+ of 30,000 calls", first)
        path = f"/batches/{folder.path.name}"
        wait_until(lambda: "30,000 of 30,000 calls" in visitor.get(path).text, "all read")
        assert "being read" not in visitor.get(path).text
