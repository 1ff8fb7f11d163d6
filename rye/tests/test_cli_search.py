"""``rye search``: results, order and errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from rye_console import Console


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Console:
    return Console(tmp_path_factory.mktemp("search"))


def test_the_best_match_comes_first(console: Console) -> None:
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


def test_runtimes_are_found_only_with_all(console: Console) -> None:
    assert "rye/core" not in console("search", "runtime").stdout
    assert "rye/core/runtimes/bash_runtime" in console("search", "bash runtime", "--all").stdout


def test_no_match_says_what_to_do(console: Console) -> None:
    done = console("search", "xyzzyx")
    assert (done.code, done.stdout) == (0, "")
    assert done.stderr == "rye: no tool matches 'xyzzyx'; try other words, or see `rye list`\n"
    assert console.json("search", "xyzzyx") == []


@pytest.mark.parametrize("args", [(), ("x", "--limit", "0")])
def test_misuse_exits_with_2(console: Console, args: tuple[str, ...]) -> None:
    assert console("search", *args).code == 2


def test_control_characters_in_a_description_are_escaped(tmp_path: Path) -> None:
    console = Console(tmp_path)
    text = 'executor_id: rye/core/primitives/subprocess\ndescription: "evil \\e[2J"\n'
    console.project.tool("team/evil.yaml", text, signed=False)
    assert console("search", "evil").stdout == "team/evil  evil \\x1b[2J\n"
