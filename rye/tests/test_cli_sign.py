"""``rye sign``: which files arguments name, and the result for each."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from rye.cli.sign.targets import Target, find_targets, own_spaces
from rye.errors import ItemNotFoundError
from rye.spaces.resolver import Resolver
from rye.trust.operations import verify_paths
from rye_command import Terminal
from rye_console import Console
from trust_world import Key

TOOL = 'executor_id: rye/core/primitives/subprocess\nconfig: {command: "true"}\n'


@pytest.fixture
def console(tmp_path: Path) -> Console:
    console = Console(tmp_path)
    for name in ("a.yaml", "team/b.yaml", "team/deep/c.yaml"):
        console.project.tool(name, TOOL, signed=False)
    return console


def trusted(console: Console) -> list[str]:
    ids = ["a", "team/b", "team/deep/c"]
    return [one.item_id for one in verify_paths(ids, console.project.context) if one.trusted]


def tools(console: Console) -> Path:
    return console.path / ".ai" / "tools"


@pytest.mark.parametrize(
    ("argument", "signed"),
    [
        ("a", ["a"]),
        ("team/b", ["team/b"]),
        ("c", ["team/deep/c"]),
        (".ai/tools/team/b.yaml", ["team/b"]),
        ("./.ai/tools/a.yaml", ["a"]),
        ("*", ["a"]),
        ("team/*", ["team/b"]),
        ("team/**", ["team/b", "team/deep/c"]),
        ("**", ["a", "team/b", "team/deep/c"]),
        ("[ab]", ["a"]),
        ("**/?", ["a", "team/b", "team/deep/c"]),
        (".ai/tools/**/*.yaml", ["a", "team/b", "team/deep/c"]),
        (".ai/tools/*/b.yaml", ["team/b"]),
    ],
)
def test_paths_ids_and_globs_name_files(console: Console, argument: str, signed: list[str]) -> None:
    done = console("sign", argument)

    assert (done.code, done.stderr) == (0, "")
    assert trusted(console) == signed
    assert [line.split()[:2] for line in done.stdout.splitlines()] == [
        ["signed", item_id] for item_id in signed
    ]


def test_a_file_that_is_already_signed_is_not_changed(console: Console) -> None:
    console("sign", "a")
    before = (tools(console) / "a.yaml").read_bytes()

    done = console("sign", "a", "team/b", "a")

    assert done.stdout == (
        "already  a       .ai/tools/a.yaml\nsigned   team/b  .ai/tools/team/b.yaml\n"
    )
    assert (tools(console) / "a.yaml").read_bytes() == before


def test_the_owner_of_a_replaced_signature_is_printed(console: Console) -> None:
    alice, stranger = Key.new(), Key.new()
    pem = console.path / "alice.pem"
    pem.write_bytes(alice.public)
    console("trust", "add", pem, "--owner", "alice")
    for name, key in (("a", alice), ("team/b", stranger)):
        path = tools(console) / f"{name}.yaml"
        path.write_bytes(key.sign(path.read_bytes()))

    done = console("sign", "a", "team/b")

    assert done.stdout == (
        "signed  a       .ai/tools/a.yaml, replaces the signature of "
        f"{alice.fingerprint} (alice)\n"
        "signed  team/b  .ai/tools/team/b.yaml, replaces the signature of "
        f"{stranger.fingerprint} (untrusted)\n"
    )


def test_an_invalid_signature_is_not_reported_as_replaced(console: Console) -> None:
    path = tools(console) / "a.yaml"
    path.write_bytes(Key.new().sign(path.read_bytes()) + b"# changed\n")

    done = console.json("sign", "a")

    assert [(one["state"], one["replaced"]) for one in done] == [("signed", None)]


def test_a_path_is_relative_to_the_working_directory(console: Console) -> None:
    assert console("sign", "deep/c.yaml", cwd=tools(console) / "team").code == 0

    assert trusted(console) == ["team/deep/c"]


def test_an_existing_file_takes_precedence_over_a_glob_and_an_id(console: Console) -> None:
    path = console.project.tool("team/[b].yaml", TOOL, signed=False)
    (console.path / "a").write_text("# not the item\n")

    done = console("sign", ".ai/tools/team/[b].yaml", "a")

    assert done.code == 0
    assert "rye:signed:" in path.read_text()
    assert "rye:signed:" in (console.path / "a").read_text()
    assert trusted(console) == []


def test_a_file_with_invalid_permissions_is_not_signed(console: Console) -> None:
    path = tools(console) / "a.yaml"
    path.write_text(f"{TOOL}permissions: {{env: ['*']}}\n")
    done = console("sign", "a")
    assert done.code != 0
    assert (
        "a.yaml:3: expected the name of a variable, such as TOKEN or AWS_*, "
        "in 'permissions.env[0]'; correct it and sign again"
    ) in done.stderr
    assert trusted(console) == []


def test_a_glob_matches_only_tools(console: Console) -> None:
    precious = console.path / "precious.py"
    precious.write_text("x = 1\n")

    refused = console("sign", "*.py")

    assert refused.code == 3
    assert refused.stderr == (
        "rye: nothing matches '*.py'; a glob matches item ids and paths, for example '**' or "
        "'team/*'\n"
    )
    assert precious.read_text() == "x = 1\n"


def test_a_glob_does_not_match_the_system_space(console: Console) -> None:
    with pytest.raises(ItemNotFoundError, match="nothing matches"):
        targets(console, "rye/**")


@pytest.mark.parametrize(
    ("argument", "code", "message"),
    [
        ("nope", 3, "there is no item 'nope'"),
        ("./nope.py", 3, "file not found: ./nope.py; check the path"),
        ("/nope.py", 3, "file not found: /nope.py; check the path"),
        (".ai/tools/team", 3, "is a directory; to name the files in it, pass '.ai/tools/team/**'"),
        ("", 2, "item id '' is empty"),
    ],
)
def test_an_argument_without_a_match_is_refused_before_anything_is_signed(
    console: Console, argument: str, code: int, message: str
) -> None:
    refused = console("sign", "a", argument)

    assert refused.code == code
    assert message in refused.stderr
    assert trusted(console) == []


def test_a_file_that_cannot_be_signed_does_not_stop_the_others(console: Console) -> None:
    (console.path / "data.json").write_text("{}")

    done = console("sign", "data.json", "a")

    assert done.code == 1
    assert ".json files have no comments" in done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["failed", "signed"]
    assert trusted(console) == ["a"]


def test_json_has_the_result_for_each_file(console: Console) -> None:
    (console.path / "data.json").write_text("{}")

    done = console.json("sign", "a", "data.json")

    assert [(one["item_id"], one["state"]) for one in done] == [
        ("a", "signed"),
        (str(console.path / "data.json"), "failed"),
    ]
    assert len(done[0]["signer"]) == 16
    assert "have no comments" in done[1]["error"]


def test_the_command_in_a_trust_error_works_as_written(console: Console) -> None:
    path = console.project.tool("odd name/it's.yaml", TOOL, signed=False)
    (report,) = verify_paths([path], console.project.context)
    assert report.error is not None
    command = str(report.error).partition("sign it with: rye ")[2]

    assert console(*shlex.split(command)).code == 0
    assert verify_paths([path], console.project.context)[0].trusted


def test_a_path_through_a_symlink_to_the_project_is_its_item(console: Console) -> None:
    link = console.path.parent / "link"
    link.symlink_to(console.path)

    (target,) = targets(console, str(link / ".ai" / "tools" / "team" / "b.yaml"))

    assert target.item_id == "team/b"


def test_many_files_show_a_bar_on_a_terminal_only(console: Console) -> None:
    for number in range(220):
        console.project.tool(f"many/t{number}.yaml", TOOL, signed=False)

    with Terminal("sign", "many/*", cwd=console.path, user=console.user) as terminal:
        assert terminal.finish() == 0

    assert "signing" in terminal.shown
    assert "signing" not in console("sign", "many/*").stderr


def targets(console: Console, *texts: str) -> tuple[Target, ...]:
    resolver = Resolver(console.project.context)
    return find_targets(texts, resolver, console.path, globbed=own_spaces(resolver))
