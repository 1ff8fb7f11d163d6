"""``rye list``: the rows, the filters, and the errors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from processes import wait_until
from rye.catalogue.catalogue import Catalogue
from rye.spaces import resolver
from rye.spaces.folders import checked_file, is_settled, stamp_of
from rye.spaces.model import Resolution
from rye.spaces.resolver import Resolver
from rye_command import Terminal, environment, rye
from rye_console import Console

TOOL = """\
version: "1.2.0"
executor_id: rye/core/primitives/subprocess
tool_type: shell
description: {description}
"""


@pytest.fixture
def console(tmp_path: Path) -> Console:
    console = Console(tmp_path)
    put(console, "team/hello", "says hello")
    return console


def put(console: Console, item_id: str, description: str, space: str = "project") -> Path:
    text = TOOL.format(description=description)
    return console.project.tool(f"{item_id}.yaml", text, space=space, signed=False)  # type: ignore[arg-type] # a name of one


def listed(console: Console, *args: str) -> list[str]:
    return [each["item_id"] for each in console.json("list", *args)]


def test_a_row_has_id_version_space_and_description(console: Console) -> None:
    done = console("list", "team")
    assert (done.code, done.stdout, done.stderr) == (
        0,
        "team/hello  1.2.0  project  (unconfined) says hello\n",
        "",
    )


def test_runtimes_and_primitives_are_listed_only_with_all(console: Console) -> None:
    ids = listed(console)
    assert "team/hello" in ids
    assert "rye/bash/bash" in ids
    assert not [each for each in ids if each.startswith("rye/core/")]
    everything = listed(console, "--all")
    assert "rye/core/runtimes/bash_runtime" in everything
    assert "rye/core/primitives/subprocess" in everything
    assert not [each for each in everything if "/lib/" in each]


def test_the_list_is_filtered_by_prefix_space_and_type(console: Console) -> None:
    put(console, "mine/own", "of the user", space="user")
    assert listed(console, "rye/f")[0] == "rye/fs/edit"
    assert listed(console, "--space", "user") == ["mine/own"]
    assert listed(console, "--space", "project") == ["team/hello"]
    assert listed(console, "--type", "shell") == ["mine/own", "team/hello"]
    assert "rye/core/runtimes/bash_runtime" in listed(console, "--type", "runtime")


def test_json_has_the_fields_of_the_catalogue(console: Console) -> None:
    (each,) = console.json("list", "team/")
    assert each == {
        "item_id": "team/hello",
        "space": "project",
        "bundle": "",
        "path": str(console.path / ".ai/tools/team/hello.yaml"),
        "version": "1.2.0",
        "tool_type": "shell",
        "executor_id": "rye/core/primitives/subprocess",
        "category": "team",
        "description": "says hello",
        "confined": False,
        "fault": "",
    }


def test_an_unreadable_file_is_listed_and_reported(console: Console) -> None:
    console.project.tool("team/broken.yaml", "executor_id: 3\n", signed=False)
    done = console("list", "team")
    assert done.code == 0
    assert "team/broken  ?      project  cannot be read\n" in done.stdout
    assert done.stderr == (
        "rye: .ai/tools/team/broken.yaml:1: expected an item id or an explicit none, "
        "got a number in 'executor_id'; correct it and sign again\n"
    )


def test_of_many_unreadable_files_the_first_are_named_and_the_rest_counted(
    console: Console,
) -> None:
    for number in range(100):
        console.project.tool(f"team/broken{number:02}.yaml", "executor_id: 3\n", signed=False)
    console.project.tool("team/two.py", "", signed=False)
    console.project.tool("team/two.yaml", "", signed=False)
    done = console("list", "team")
    rows = done.stdout.splitlines()
    assert [row.split()[0] for row in rows] == [
        *(f"team/broken{number:02}" for number in range(20)),
        "team/hello",
    ]
    errors = done.stderr.splitlines()
    assert len(errors) == 21
    assert errors[19].startswith("rye: .ai/tools/team/broken19.yaml:1: expected an item id")
    assert errors[20] == "rye: 81 more files cannot be used; list them with: rye doctor"

    in_json = console("list", "team", "--json")
    assert len([each for each in json.loads(in_json.stdout) if each["fault"]]) == 100
    assert in_json.stderr == done.stderr
    assert console("doctor").stdout.count("expected an item id") == 100


@pytest.mark.parametrize("folder", ["", "team/"])
def test_a_list_does_not_look_up_each_file_by_its_name(
    console: Console, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(100):
        console.project.tool(f"{folder}broken{number}.yaml", "a: [\n", signed=False)
    looked_up: list[str] = []
    checked: list[str] = []
    resolve = Resolver.resolve

    def counted_resolve(self: Resolver, item_id: str, **options: Any) -> Resolution:
        looked_up.append(item_id)
        return resolve(self, item_id, **options)

    def counted_check(folder: str, name: str, root: Path) -> Path:
        checked.append(name)
        return checked_file(folder, name, root)

    monkeypatch.setattr(Resolver, "resolve", counted_resolve)
    monkeypatch.setattr(resolver, "checked_file", counted_check)
    catalogue = Catalogue(console.project.context)
    assert len(catalogue.summaries()) > 100
    for number in range(100):
        # The folder stays unchanged.
        (console.path / f".ai/tools/{folder}broken{number}.yaml").write_text("b: [\n\n")
    assert len(catalogue.summaries()) > 100
    assert [each for each in looked_up if "broken" in each] == []
    assert len([name for name in checked if "broken" in name]) == 200


def test_two_files_with_one_id_are_reported(console: Console) -> None:
    console.project.tool("team/hello.py", "", signed=False)
    done = console("list")
    assert "'team/hello' is both" in done.stderr
    assert "team/hello" not in done.stdout


def test_no_match_says_what_to_do(console: Console) -> None:
    done = console("list", "nowhere/")
    assert (done.code, done.stdout) == (0, "")
    assert done.stderr == "rye: no matching tools; list all with `rye list --all`\n"
    assert console("list", "nowhere/", "--json").stdout == "[]\n"


def test_an_unknown_space_is_misuse(console: Console) -> None:
    assert console("list", "--space", "moon").code == 2


def test_a_description_cannot_control_the_terminal(console: Console) -> None:
    put(console, "team/evil", '"\\e]0;owned\\a\\e[31mred\\u202e \\u009b2J\\r\\nnext"')
    done = console("list", "team/evil")
    assert done.stdout.isprintable() or done.stdout.strip("\n").isprintable()
    assert "\\x1b]0;owned" in done.stdout
    assert done.stdout.count("\n") == 1


def test_a_narrow_terminal_cuts_the_description_and_a_pipe_does_not(console: Console) -> None:
    put(console, "team/wordy", "many words " * 20)
    with Terminal(
        "list", "team", cwd=console.path, user=console.user, env={"NO_COLOR": "1"}, columns=60
    ) as terminal:
        assert terminal.finish() == 0
    assert max(map(len, terminal.shown.splitlines())) == 60
    assert "…" in terminal.shown
    assert "\x1b" not in terminal.shown
    piped = rye("list", "team", cwd=console.path, user=console.user)
    assert "…" not in piped.stdout
    assert "many words " * 19 in piped.stdout


def test_a_list_from_the_index_loads_nothing_heavy(console: Console) -> None:
    folder = str(console.path / ".ai" / "tools" / "team")
    wait_until(lambda: is_settled(stamp_of(folder)), "the folder is old enough to be remembered")
    console("list")
    heavy = ["asyncio", "yaml", "cryptography", "msgspec", "jsonschema_rs", "httpx2", "mcp"]
    script = (
        "import sys; from rye.cli.entry import run_command; code = run_command(['list']);"
        f"print([name for name in {heavy} if name in sys.modules], code, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=console.path,
        env=environment(console.user),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == "[] 0\n"


def test_help_has_examples(console: Console) -> None:
    assert "rye list --type runtime" in console("list", "--help").stdout
