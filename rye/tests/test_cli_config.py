"""`rye config` and `rye help`."""

import re
from pathlib import Path

import pytest
from approved_project import approve
from rye.cli.config.settings import VARIABLES
from rye_command import Completed
from rye_console import Console

SOURCES = Path(__file__).parents[1] / "rye"
# Variables that Rye sets for tools, or that name no setting of their own.
NOT_SETTINGS = {
    "RYE_ANCHOR_PATH",
    "RYE_CHANNEL",
    "RYE_COMPLETE",
    "RYE_INTERPRETER",
    "RYE_PARAM_",
    "RYE_PROJECT_PATH",
    "RYE_STDIN",
}


@pytest.fixture
def console(tmp_path: Path) -> Console:
    return Console(tmp_path)


def rows(done: Completed) -> dict[str, list[str]]:
    found = [re.split(r"  +", line) for line in done.stdout.splitlines()]
    return {name: rest for name, *rest in found}


def test_every_setting_is_shown_with_its_value_and_where_it_comes_from(console: Console) -> None:
    console("init", "--json")
    console.env["RYE_FS_ALLOW"] = "/srv"
    config = console.user / ".ai" / "config.yaml"
    config.write_text("permissions: {unenforced: allow}\nhistory: {days: 30}\n")
    done = console("config")
    assert done.code == 0, done.stderr
    found = rows(done)
    assert found["project"] == [str(console.path), "the nearest directory that contains .ai"]
    assert found["user space"] == [str(console.user), "environment, USER_SPACE"]
    assert found["system space"][1] == "package rye"
    assert found["lilux-proc"][0].endswith("/lilux-proc")
    assert re.fullmatch("[0-9a-f]{16}", found["key"][0])
    assert found["permissions.unenforced"] == ["allow", str(config)]
    assert found["grants"] == ["-", "default"]
    assert found["history.days"] == ["30", str(config)]
    assert found["mcp.featured"] == ["-", "default"]
    assert found["RYE_FS_ALLOW"] == ["/srv", "environment"]
    assert found["RYE_GIT_ALLOW"] == ["-", "default"]
    assert found["RYE_PYTHON"][1] in ("PATH", "environment")


def test_a_value_that_is_not_used_is_reported_with_the_reason(console: Console) -> None:
    config = console.path / ".ai" / "config.yaml"
    config.write_text("mcp: {featured: [a, 'b/*']}\n")
    done = console("config", "mcp.featured")
    assert done.stdout == '["a", "b/*"]\n'
    assert "you have not approved the unsigned parts of this project" in done.stderr
    approve(console.project.context)
    assert console("config", "mcp.featured") == Completed(0, '["a", "b/*"]\n', "")
    (console.user / ".ai" / "config.yaml").write_text("permissions: {unenforced: maybe}\n")
    done = console("config", "permissions.unenforced")
    assert "expected refuse or allow in 'permissions.unenforced'" in done.stderr


def test_secrets_are_not_shown(console: Console) -> None:
    console.env["RYE_MCP_TOKEN"] = "s3cret"
    assert "s3cret" not in console("config").stdout
    assert "s3cret" not in console("config", "--json").stdout
    assert console("config", "RYE_MCP_TOKEN").stdout == "(set, not shown)\n"


def test_an_unknown_setting_is_an_error(console: Console) -> None:
    assert console("config", "nope") == Completed(
        3, "", "rye: there is no setting 'nope'; list the settings with: rye config\n"
    )


def test_every_variable_of_the_code_is_a_setting(console: Console) -> None:
    named = set()
    for path in SOURCES.rglob("*"):
        if path.suffix in (".py", ".yaml"):
            named |= set(re.findall(r"\bRYE_[A-Z_]+", path.read_text()))
    listed = {one["name"] for one in console.json("config")}
    assert named - listed - NOT_SETTINGS == set(), "add them to VARIABLES in cli/config/settings.py"
    assert set(VARIABLES) <= listed


# rye help


@pytest.mark.parametrize(
    ("words", "same"),
    [
        ([], ["--help"]),
        (["run"], ["run", "--help"]),
        (["trust", "add"], ["trust", "add", "--help"]),
    ],
)
def test_help_is_that_of_the_command(console: Console, words: list[str], same: list[str]) -> None:
    done = console("help", *words)
    assert done == console(*same)
    assert done.stdout.startswith("Usage: rye ")


def test_help_of_a_tool_shows_its_parameters(console: Console) -> None:
    assert console("help", "grep") == console("run", "rye/fs/grep", "--help")


def test_help_of_nothing_known_is_an_error(console: Console) -> None:
    assert console("help", "nope").code == 3
    done = console("help", "trust", "nope")
    assert done == Completed(2, "", "rye: no such command 'trust nope'; see `rye help --help`\n")
