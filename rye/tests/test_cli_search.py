"""``rye search``: the words of a command line, and the answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from rye_console import Console


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Console:
    return Console(tmp_path_factory.mktemp("search"))


def test_the_best_comes_first_with_its_description(console: Console) -> None:
    done = console("search", "read", "file")
    assert (done.code, done.stderr) == (0, "")
    first = done.stdout.splitlines()[0]
    assert first.startswith("rye/fs/read ")
    assert "Reads a UTF-8 text file" in first


def test_json_has_entries_with_scores_in_order(console: Console) -> None:
    hits = console.json("search", "read", "file", "--limit", "3")
    assert hits[0]["item_id"] == "rye/fs/read"
    assert len(hits) == 3
    assert hits[0]["score"] > hits[1]["score"]
    assert hits[0]["schema"]["required"] == ["path"]


def test_runtimes_are_found_only_if_asked_for(console: Console) -> None:
    assert "rye/core" not in console("search", "runtime").stdout
    assert "rye/core/runtimes/bash_runtime" in console("search", "bash runtime", "--all").stdout


def test_nothing_that_fits_says_what_to_do(console: Console) -> None:
    done = console("search", "xyzzyx")
    assert (done.code, done.stdout) == (0, "")
    assert done.stderr == (
        "rye: nothing fits 'xyzzyx'; try fewer or other words, or see `rye list`\n"
    )
    assert console.json("search", "xyzzyx") == []


@pytest.mark.parametrize("args", [(), ("x", "--limit", "0")])
def test_misuse_is_told(console: Console, args: tuple[str, ...]) -> None:
    assert console("search", *args).code == 2


def test_hostile_text_is_shown_harmless(tmp_path: Path) -> None:
    console = Console(tmp_path)
    text = 'executor_id: rye/core/primitives/subprocess\ndescription: "evil \\e[2J"\n'
    console.project.tool("team/evil.yaml", text, signed=False)
    assert console("search", "evil").stdout == "team/evil  evil \\x1b[2J\n"
