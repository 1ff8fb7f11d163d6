"""The page ``/history``: which runs it lists."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from rye.recording.record import utc_text
from rye.recording.run_ids import new_run_id
from rye_command import rye
from rye_project import Project
from ui_session import Visitor, served_page

DAY = 24 * 3600 * 1000
BEGAN = 1_790_000_000_000


def record(number: int, **fields: object) -> dict[str, object]:
    """A run of the test, a minute after the one before it."""
    began = BEGAN + number * 60_000
    return {
        "id": new_run_id(began),
        "time": utc_text(began),
        "by": "cli",
        "project": "/somewhere",
        "item": f"tools/t{number}",
        "outcome": "ok",
        "ms": {"prepare": 1.0, "run": 2.0, "total": 3.5},
        "parameters": {},
        **fields,
    }


HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e"


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    root: Path = tmp_path_factory.mktemp("history")
    project = Project(root)
    _ = project.context
    runs = [record(number) for number in range(120)]
    runs.append(record(200, item="special/one", outcome="failed", exit=3, by="mcp", client="cur 1"))
    runs.append(record(201, item="special/two", outcome="refused", reason=HOSTILE))
    runs.append(record(202, item=HOSTILE, by="mcp", client=HOSTILE))
    (root / "runs.jsonl").write_text("".join([json.dumps(one) + "\n" for one in runs]))
    (project.user / ".ai" / "config.yaml").write_text("history: {retention: {days: 36500}}\n")
    done = rye("history", "import", root / "runs.jsonl", cwd=project.path, user=project.user)
    assert done.code == 0, done.stderr
    with served_page(project) as page:
        yield page.enter()


def tools(text: str) -> list[str]:
    return re.findall(r'<td class="tool anywhere">(?:<a [^>]*>)?([^<]*)', text)


def test_the_newest_runs_are_first_and_every_run_is_on_one_page(visitor: Visitor) -> None:
    path, seen = "/history?tool=tools/*", []
    while path:
        text = visitor.get(path).text
        seen += tools(text)
        older = re.search(r'<a href="([^"]*)" rel="next">Older', text)
        path = older[1].replace("&amp;", "&") if older else ""
    assert seen == [f"tools/t{number}" for number in reversed(range(120))]


def test_the_newer_page_is_the_one_before(visitor: Visitor) -> None:
    first = visitor.get("/history?tool=tools/*").text
    older = re.search(r'<a href="([^"]*)" rel="next">Older', first)
    assert older is not None
    second = visitor.get(older[1].replace("&amp;", "&")).text
    newer = re.search(r'<a href="([^"]*)" rel="prev">← Newer', second)
    assert newer is not None
    again = visitor.get(newer[1].replace("&amp;", "&")).text
    assert tools(again) == tools(first)
    assert "Newer" not in again


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("tool=special", ["special/two", "special/one"]),
        ("tool=special/o*", ["special/one"]),
        ("by=cur", ["special/one"]),
        ("outcome=refused", ["special/two"]),
        ("outcome=not-ok", ["special/two", "special/one"]),
        ("outcome=failed&by=mcp", ["special/one"]),
        ("outcome=failed&by=cli", []),
        ("tool=special&since=2100-01-01", []),
        ("tool=special&until=2000-01-01", []),
        ("tool=special&since=2000-01-01&until=2100-01-01", ["special/two", "special/one"]),
    ],
)
def test_filters_choose_runs(visitor: Visitor, query: str, expected: list[str]) -> None:
    text = visitor.get(f"/history?{query}").text
    assert tools(text) == expected
    assert ("No run matches." in text) == (not expected)


def test_a_moment_that_cannot_be_read_is_explained_in_the_form(visitor: Visitor) -> None:
    answer = visitor.get("/history?since=yesterday")
    assert answer.status == 200
    assert "&#39;yesterday&#39; is not a moment; write 30m, 12h, 1d or a date" in answer.text
    assert 'aria-invalid="true"' in answer.text


def test_ids_and_clients_of_others_are_text(visitor: Visitor) -> None:
    text = visitor.get("/history").text
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[31m\\u202e" in text
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_a_tool_of_another_project_is_named_with_it_and_not_linked(visitor: Visitor) -> None:
    text = visitor.get("/history?tool=special/one").text
    assert 'special/one<span class="under">in /somewhere</span>' in text
    assert 'href="/tools/special/one"' not in text


def test_a_place_that_is_not_an_id_is_harmless(visitor: Visitor) -> None:
    for place in ("before=%27%22%3Cb%3E", "after=%00", "before=zzzz", "page=-1"):
        assert visitor.get(f"/history?{place}").status == 200
