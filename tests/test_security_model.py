"""Every test that the security model names exists, and every attack test is named in it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODEL = (ROOT / "docs" / "security.md").read_text()
FOLDERS = ("lilux/proc/tests", "lilux/kernel/tests", "rye/tests", "tests")
# These show that a defence does not block normal use, or that a test would detect an attack.
NOT_PROMISES = {
    "test_a_signed_yaml_tool_renamed_to_py_is_not_a_tool",
    "test_a_worktree_and_a_submodule_are_ordinary_repositories",
    "test_an_ai_folder_writable_by_the_users_own_group_is_trusted",
    "test_ordinary_files_are_read",
    "test_ordinary_files_are_written",
    "test_the_hunt_finds_planted_secrets",
}
NAMED = sorted(set(re.findall(r"`(test_\w+)::(test_\w+)`", MODEL)))


def functions_of(path: Path) -> set[str]:
    """Return the names of all test functions in a file."""
    return {
        node.name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
    }


def file_of(stem: str) -> Path:
    found = [path for folder in FOLDERS for path in (ROOT / folder).glob(f"{stem}.py")]
    assert len(found) == 1, f"{stem}.py: {found}"
    return found[0]


@pytest.mark.parametrize(("stem", "test"), NAMED, ids=[f"{one}-{two}" for one, two in NAMED])
def test_every_test_that_the_model_names_exists(stem: str, test: str) -> None:
    assert test in functions_of(file_of(stem))


def test_every_promise_names_a_test() -> None:
    promised = MODEL.split("## What is promised")[1].split("## What is not promised")[0]
    rows = [line for line in promised.splitlines() if line.startswith("|")]
    promises = [row for row in rows if "---" not in row and not row.startswith("| promise |")]
    assert len(promises) > 30
    assert [row for row in promises if "::test_" not in row] == []


def test_every_attack_is_in_the_model() -> None:
    named = {test for _, test in NAMED}
    for path in sorted((ROOT / "rye" / "tests").glob("test_attack_*.py")):
        assert functions_of(path) - named - NOT_PROMISES == set(), path.name
