"""`rye cache`: what is stored, and what a prune removes."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from rye.closure.pruning import kept_closures, prune
from rye_console import Console

DAY = 24 * 3600


@pytest.fixture
def console(tmp_path: Path) -> Console:
    """A project whose store has closures of two tools, used today and 40 days ago."""
    console = Console(tmp_path)
    for name in ("new", "old"):
        console.project.command(name, "true")
        assert console.project.run(name, use_lockfile=False).success
    old = next(one for one in store(console).iterdir() if (one / "tool/old.yaml").exists())
    then = time.time() - 40 * DAY
    os.utime(old, (then, then))
    return console


def store(console: Console) -> Path:
    return console.user / ".ai/cache/closures"


def tools(console: Console) -> list[str]:
    return [one["tool"] for one in console.json("cache")]


def test_the_cache_lists_the_last_used_closure_first(console: Console) -> None:
    assert tools(console) == ["new.yaml", "old.yaml"]
    lines = console("cache").stdout.splitlines()
    assert [line.split()[1] for line in lines[:2]] == ["new.yaml", "old.yaml"]
    assert lines[2].startswith("2 closures, ")
    assert lines[2].endswith(f" in {store(console)}")


def test_a_prune_removes_what_was_not_used_for_long(console: Console) -> None:
    assert console("cache", "prune", "--older-than", "50d").stdout.startswith("removed 0 closures")
    assert console("cache", "prune").stdout.startswith("removed 1 closure, ")
    assert tools(console) == ["new.yaml"]


def test_a_prune_keeps_the_last_used_closures_within_a_size(console: Console) -> None:
    (first, _) = kept_closures(str(store(console)))
    removed = prune(str(store(console)), max_age=100 * DAY, max_bytes=first.size)
    assert len(removed) == 1
    assert tools(console) == ["new.yaml"]
    assert prune(str(store(console)), max_age=100 * DAY, max_bytes=first.size - 1) == [first]
    assert console("cache").stdout == f"0 closures, 0 bytes in {store(console)}\n"


def test_everything_can_be_removed_and_tools_still_run(console: Console) -> None:
    (store(console) / ".0000.tmp").mkdir()
    assert console("cache", "prune", "--all").stdout.startswith("removed 2 closures, ")
    assert [one.name for one in store(console).iterdir() if one.name[0] != "."] == []
    assert console.project.run("new").success
    assert tools(console) == ["new.yaml"]


def test_what_a_killed_process_left_is_removed_after_an_hour(console: Console) -> None:
    for name, age in ((".1111.tmp", 0), (".2222.tmp", 7200)):
        folder = store(console) / name
        folder.mkdir()
        os.utime(folder, (time.time() - age, time.time() - age))
    prune(str(store(console)))
    assert [one.name for one in store(console).glob(".*.tmp")] == [".1111.tmp"]


def test_a_daily_prune_removes_old_closures(console: Console) -> None:
    stamp = store(console) / ".pruned"
    os.utime(stamp, (0, 0))
    console.project.command("third", "true")
    console.project.run("third")
    assert tools(console) == ["third.yaml", "new.yaml"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--max-size", "much"), "'much' is not a size; write for example 500MiB or 1GiB"),
        (("--older-than", "long"), "'long' is not a duration; write 30m, 12h or 30d"),
        (("--all", "--max-size", "1GiB"), "--all excludes --older-than and --max-size"),
    ],
)
def test_a_wrong_option_is_refused(
    console: Console, options: tuple[str, ...], message: str
) -> None:
    done = console("cache", "prune", *options)
    assert done.code == 2
    assert message in done.stderr
