"""Suggestions for misspelt names."""

import time

import pytest
from rye.suggestions import closest, closest_ids, one_typo_away

KNOWN = ("executor_id", "config", "config_schema", "description")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("config", "config"),
        ("confg", "config"),
        ("conffig", "config"),
        ("comfig", "config"),
        ("conifg", "config"),
        ("CONFIG-SCHEMA", "config_schema"),
        ("executorId", "executor_id"),
        ("cnofgi", None),
        ("conf", None),
        ("", None),
    ],
)
def test_one_typo_or_another_style_is_recognised(name: str, meant: str | None) -> None:
    assert one_typo_away(name, KNOWN) == meant


def test_the_most_similar_name_comes_first() -> None:
    assert closest("descripton", KNOWN) == ["description"]
    assert closest("config_shcema", KNOWN, limit=2) == ["config_schema", "config"]
    assert closest("unlike", KNOWN) == []
    assert closest("config_shcema", KNOWN, limit=2, cutoff=0.75) == ["config_schema"]


def test_ids_with_the_same_last_part_come_before_similar_ids() -> None:
    known = ["rye/fs/grep", "files/grab", "files/greps", "rye/git/git"]
    assert closest_ids("files/grep", known) == ["rye/fs/grep", "files/greps", "files/grab"]
    assert closest_ids("gti", ["rye/git/git"]) == []
    assert closest_ids("pyton_runtime", ["a/b/c/python_runtime"]) == ["a/b/c/python_runtime"]


def test_many_known_ids_are_searched_quickly() -> None:
    known = [f"team{number}/folder/some_tool_{number}" for number in range(5000)]
    started = time.perf_counter()
    assert closest_ids("team7/folder/some_tol_7", known)[0] == "team7/folder/some_tool_7"
    assert time.perf_counter() - started < 2
