"""All commands: help, misuse, the modules that start-up loads, and the project that is used."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rye.cli.app import app
from rye.cli.commands.run import command as run_command
from rye.cli.invocation import find_project
from rye.cli.run.request import RunRequest, parse_without_click
from rye.errors import RyeError
from rye_command import Completed, InProcessRye, environment, rye
from rye_project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, shipped_system=True)


@pytest.fixture
def in_process(
    project: Project, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> InProcessRye:
    return InProcessRye(project.path, project.user, monkeypatch, capfd)


# Help and misuse


@pytest.mark.parametrize("name", app.list_commands(click.Context(app)))
def test_every_command_has_help_with_examples(in_process: InProcessRye, name: str) -> None:
    done = in_process(name, "--help")
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: rye {name} ")
    examples = done.stdout.partition("Examples:\n")[2]
    assert "rye " in examples
    assert in_process(name, "-h") == done


def test_the_version_is_printed(project: Project) -> None:
    done = rye("--version", cwd=project.path, user=project.user)
    assert done == Completed(0, "rye 0.1.0\n", "")


def test_without_arguments_the_help_is_printed(in_process: InProcessRye) -> None:
    done = in_process()
    assert done.code == 2
    assert "Usage: rye [OPTIONS] COMMAND [ARGS]..." in done.stderr
    assert "completion   Print the completion script for a shell." in done.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["lisst"], "no such command 'lisst' (did you mean 'list'?); see `rye --help`"),
        (["frobnicate"], "no such command 'frobnicate'; see `rye --help`"),
        (["run"], "missing argument 'ITEM'; see `rye run --help`"),
        (["run", "x", "--params"], "option '--params' requires an argument; see `rye run --help`"),
        (["completion"], "missing argument '{bash|zsh|fish}'; see `rye completion --help`"),
        (["--colour"], "no such option '--colour'; see `rye --help`"),
    ],
)
def test_misuse_is_reported_with_the_command_for_help(
    in_process: InProcessRye, args: list[str], message: str
) -> None:
    assert in_process(*args) == Completed(2, "", f"rye: {message}\n")


# Arguments of `rye run` that are parsed without click

WORDS = [
    "tools/x",
    "n=3",
    "word=--json",
    "--json",
    "--dry-run",
    "--frozen",
    "--params",
    "--params={}",
    "--params=",
    "--timeout",
    "--timeout=2",
    "--timeout=x",
    "--timeout= 3",
    "1_0",
    "nan",
    "-",
    "--",
    "-x",
    "-h",
    "--help",
    "--json=1",
    "--nope",
    "--param",
    "--n=3",
    "--n",
    "-3",
    "-q",
    "-v",
    "--debug",
    "",
    "ä ö",
]


def parse_with_click(args: list[str]) -> RunRequest | None:
    try:
        ctx = run_command.make_context("run", list(args), help_option_names=["-h", "--help"])
    except (click.ClickException, click.exceptions.Exit, RyeError):  # the help of no such tool
        return None
    given = dict(ctx.params)
    return RunRequest(json=given.pop("as_json"), **given)


@given(st.lists(st.sampled_from(WORDS) | st.text(max_size=3), max_size=6))
def test_both_parsers_give_the_same_request(args: list[str]) -> None:
    with_click, without_click = parse_with_click(args), parse_without_click(args)
    if with_click is None or not with_click.item_id:
        assert without_click is None
    else:
        assert repr(without_click) == repr(with_click)


def test_the_usual_forms_do_not_need_click() -> None:
    args = ["tools/x", "n=3", "--params", "{}", "--json", "--timeout=2", "--dry-run", "--frozen"]
    assert repr(parse_without_click(args)) == repr(
        RunRequest(
            "tools/x",
            ("n=3",),
            params="{}",
            json=True,
            timeout=2.0,
            dry_run=True,
            frozen=True,
        )
    )
    assert repr(parse_without_click(["--", "x", "--json"])) == repr(RunRequest("x", ("--json",)))


# Start-up

CALL = "from rye.cli.entry import run_command; assert run_command(sys.argv[1:]) == 0"


def loaded_by(project: Project, call: str, *args: str) -> set[str]:
    """Return the modules that a new process has loaded after ``call``."""
    program = f"import sys\n{call}\nprint(*sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", program, *args],
        cwd=project.path,
        env=environment(project.user),
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stderr.split())


def test_the_version_loads_almost_nothing(project: Project) -> None:
    loaded = loaded_by(project, "from rye.cli.entry import main; main()", "--version")
    assert loaded & {"click", "json", "pathlib", "asyncio", "rye.cli.app"} == set()


def test_a_plain_run_does_not_load_click(project: Project) -> None:
    project.command("tools/hello", "/bin/echo", "hello")
    loaded = loaded_by(project, CALL, "run", "tools/hello")
    assert "rye.cli.run.run" in loaded
    assert loaded & {"click", "mcp", "httpx2", "difflib", "rye.cli.app"} == set()
    assert "rye.trust.project_approval" not in loaded


def test_a_run_with_parameters_loads_the_validator_only_if_it_is_needed(
    project: Project,
) -> None:
    name = {"type": "string"}
    schema = {"type": "object", "properties": {"name": name}}
    project.command("tools/hello", "/bin/echo", "hello", config_schema=schema)
    for _ in range(3):  # the first calls fill the cache on disk
        loaded = loaded_by(project, CALL, "run", "tools/hello", "name=Ada")
    assert "jsonschema_rs" not in loaded
    assert loaded & {"asyncio", "click", "cryptography", "msgspec", "yaml"} == set()
    schema = {"type": "object", "properties": {"name": {**name, "pattern": "^A"}}}
    project.command("tools/pattern", "/bin/echo", "hello", config_schema=schema)
    for _ in range(3):
        loaded = loaded_by(project, CALL, "run", "tools/pattern", "name=Ada")
    assert "jsonschema_rs" in loaded
    assert loaded & {"asyncio", "click", "cryptography", "msgspec", "yaml"} == set()


@pytest.mark.parametrize(
    ("arguments", "torn_down"), [(["search", "mcp"], False), (["mcp", "--help"], True)]
)
def test_only_the_server_tears_down_the_interpreter(
    project: Project, arguments: list[str], torn_down: bool
) -> None:
    program = (
        "import atexit, sys\n"
        "atexit.register(print, 'torn down', file=sys.stderr)\n"
        "from rye.cli.entry import main\n"
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=project.path,
        env=environment(project.user),
        capture_output=True,
        text=True,
        check=True,
    )
    assert ("torn down" in done.stderr) is torn_down


# The project


def test_the_user_space_is_not_the_project_of_directories_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    below = home / "work" / "deep"
    below.mkdir(parents=True)
    (home / ".ai").mkdir()
    monkeypatch.setenv("USER_SPACE", str(home))
    assert find_project(below) == below
    (home / "work" / ".ai").mkdir()
    assert find_project(below) == home / "work"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_a_planted_folder_of_another_user_above_is_not_a_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("USER_SPACE", str(tmp_path / "home"))
    below = tmp_path / "shared" / "mine"
    below.mkdir(parents=True)
    planted = tmp_path / "shared" / ".ai"
    planted.mkdir()
    assert find_project(below) == tmp_path / "shared"
    os.chown(planted, 12345, 12345)
    assert find_project(below) == below


def deny_access(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``stat`` fail as below a directory without search permission, which root ignores."""
    stat = os.stat

    def denying_stat(asked: str | Path, **options: bool) -> os.stat_result:
        if Path(asked) == path:
            raise PermissionError(errno.EACCES, "Permission denied", str(asked))
        return stat(asked, **options)

    monkeypatch.setattr(os, "stat", denying_stat)


def test_an_inaccessible_parent_is_skipped_in_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("USER_SPACE", str(tmp_path / "home"))
    below = tmp_path / "project" / "closed" / "deep"
    below.mkdir(parents=True)
    (tmp_path / "project" / ".ai").mkdir()
    deny_access(below.parent / ".ai", monkeypatch)
    assert find_project(below) == tmp_path / "project"


def test_an_inaccessible_project_is_reported_as_a_result(
    in_process: InProcessRye, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = tmp_path / "closed" / "project"
    deny_access(closed, monkeypatch)
    done = in_process("-C", closed, "run", "tools/x", "--json")
    assert done.code == 1
    assert json.loads(done.stdout)["error"] == (
        f"{closed} is not accessible (permission denied); pass the directory of a project"
    )
