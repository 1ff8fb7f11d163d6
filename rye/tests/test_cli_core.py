"""What holds for every command: help, misuse, streams, colours, and a start that costs little."""

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rye.cli.app import app
from rye.cli.commands.run import command as run_command
from rye.cli.invocation import find_project
from rye.cli.output.paths import shown
from rye.cli.output.printing import plain, print_json, print_table, style
from rye.cli.run.request import RunRequest, read_plainly
from rye_command import COMMAND, Completed, Conducted, Terminal, environment, rye, without_progress
from rye_project import Project

RED = "\x1b[31;1mrye:\x1b[0m"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, shipped_system=True)


@pytest.fixture
def conducted(
    project: Project, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Conducted:
    return Conducted(project.path, project.user, monkeypatch, capfd)


# Help and misuse


@pytest.mark.parametrize("name", app.list_commands(click.Context(app)))
def test_every_command_has_help_with_examples(conducted: Conducted, name: str) -> None:
    done = conducted(name, "--help")
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: rye {name} ")
    examples = done.stdout.partition("Examples:\n")[2]
    assert "rye " in examples
    assert conducted(name, "-h") == done


def test_the_version_is_told(project: Project) -> None:
    done = rye("--version", cwd=project.path, user=project.user)
    assert done == Completed(0, "rye 0.1.0\n", "")


def test_the_bare_command_shows_its_help(conducted: Conducted) -> None:
    done = conducted()
    assert done.code == 2
    assert "Usage: rye [OPTIONS] COMMAND [ARGS]..." in done.stderr
    assert "completion  Print the completion script for a shell." in done.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["lisst"], "no such command 'lisst' (did you mean 'list'?); see `rye --help`"),
        (["frobnicate"], "no such command 'frobnicate'; see `rye --help`"),
        (["run"], "missing argument 'ITEM'; see `rye run --help`"),
        (["run", "x", "--params"], "option '--params' requires an argument; see `rye run --help`"),
        (["--colour"], "no such option '--colour'; see `rye --help`"),
    ],
)
def test_misuse_ends_in_the_help_that_tells(
    conducted: Conducted, args: list[str], message: str
) -> None:
    assert conducted(*args) == Completed(2, "", f"rye: {message}\n")


# The reader of plain arguments and click agree

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
    "",
    "ä ö",
]


def read_by_click(args: list[str]) -> RunRequest | None:
    try:
        ctx = run_command.make_context("run", list(args), help_option_names=["-h", "--help"])
    except (click.ClickException, click.exceptions.Exit):
        return None
    given = dict(ctx.params)
    return RunRequest(json=given.pop("as_json"), **given)


@given(st.lists(st.sampled_from(WORDS) | st.text(max_size=3), max_size=6))
def test_plain_arguments_are_read_as_click_reads_them(args: list[str]) -> None:
    by_click, by_us = read_by_click(args), read_plainly(args)
    if by_click is None or not by_click.item_id:
        assert by_us is None
    else:
        assert repr(by_us) == repr(by_click)


def test_the_usual_forms_are_plain() -> None:
    args = ["tools/x", "n=3", "--params", "{}", "--json", "--timeout=2", "--dry-run", "--frozen"]
    assert repr(read_plainly(args)) == repr(
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
    assert repr(read_plainly(["--", "x", "--json"])) == repr(RunRequest("x", ("--json",)))


# The start


def loaded_by(project: Project, call: str, *args: str) -> set[str]:
    """The modules that a new process has loaded after ``call``."""
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


def test_the_version_costs_next_to_nothing(project: Project) -> None:
    loaded = loaded_by(project, "from rye.cli.entry import main; main()", "--version")
    assert loaded & {"click", "json", "pathlib", "asyncio", "rye.cli.app"} == set()


def test_a_plain_run_does_not_load_click(project: Project) -> None:
    project.command("tools/hello", "/bin/echo", "hello")
    call = "from rye.cli.conduct import conduct; assert conduct(sys.argv[1:]) == 0"
    loaded = loaded_by(project, call, "run", "tools/hello")
    assert "rye.cli.run.run" in loaded
    assert loaded & {"click", "mcp", "httpx2", "difflib", "rye.cli.app"} == set()


def test_a_run_with_parameters_loads_no_more_to_validate_them_than_is_needed(
    project: Project,
) -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    project.command("tools/hello", "/bin/echo", "hello", config_schema=schema)
    call = "from rye.cli.conduct import conduct; assert conduct(sys.argv[1:]) == 0"
    for _ in range(3):  # what the first ones find out is kept on disk
        loaded = loaded_by(project, call, "run", "tools/hello", "name=Ada")
    assert "jsonschema_rs" in loaded
    assert loaded & {"asyncio", "click", "cryptography", "msgspec", "yaml"} == set()


# Streams


def test_a_reader_that_is_gone_is_no_error(project: Project) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        run = ["run", "rye/bash/bash", "command=echo hi"]
        for args in (["--version"], ["--help"], ["run", "--help"], run):
            done = subprocess.run(
                [*COMMAND, *args],
                cwd=project.path,
                env=environment(project.user),
                stdout=writing,
                stderr=subprocess.PIPE,
                check=False,
            )
            assert (done.returncode, done.stderr) == (141, b""), args
    finally:
        os.close(writing)


def in_shell(project: Project, redirections: str, *args: str) -> Completed:
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {redirections}', "sh", *COMMAND, *args],
        cwd=project.path,
        env=environment(project.user),
        capture_output=True,
        text=True,
        check=False,
    )
    return Completed(done.returncode, done.stdout, done.stderr)


def test_closed_streams_are_no_error(project: Project) -> None:
    project.command("tools/says", "/bin/sh", "-c", "echo out; echo aside >&2")
    assert in_shell(project, ">&-", "run", "tools/says") == Completed(0, "", "aside\n")
    assert in_shell(project, "<&- 2>&-", "run", "tools/says") == Completed(0, "out\n", "")
    assert in_shell(project, ">&-", "--version") == Completed(0, "", "")


def test_a_full_disk_is_told(project: Project) -> None:
    project.command("tools/says", "/bin/echo", "out")
    run = ["run", "tools/says"]
    for args in (["--version"], ["--help"], run, [*run, "--json"]):
        done = in_shell(project, ">/dev/full", *args)
        assert done == Completed(1, "", "rye: no space left on device\n"), args


def test_a_locale_without_utf8_breaks_nothing(project: Project) -> None:
    project.command("tools/says", "/bin/echo", "grüße ☃")
    ascii_only = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    run = partial(rye, "run", cwd=project.path, user=project.user, env=ascii_only)
    assert run("tools/says").stdout == "grüße ☃\n"
    done = run("tools/says", "--json")
    assert done.stdout.isascii()
    assert json.loads(done.stdout)["data"]["stdout"] == "grüße ☃\n"
    refused = run("tools/säge")
    assert refused.code == 3
    assert refused.stderr.isascii()


# Colours, and text that is not ours


def test_errors_are_coloured_only_where_stderr_is_a_terminal(project: Project) -> None:
    refused = partial(Terminal, "run", "nowhere", cwd=project.path, user=project.user)
    with (project.path / "out").open("w") as out:
        with refused(stdout=out.fileno()) as terminal:
            assert terminal.finish() == 3
            assert without_progress(terminal.shown).startswith(f"{RED} ")
        with refused(stderr=out.fileno()) as terminal:
            assert terminal.finish() == 3
            assert terminal.shown == ""
    assert "\x1b" not in (project.path / "out").read_text()


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colours_can_be_refused(project: Project, env: dict[str, str]) -> None:
    with Terminal("run", "nowhere", cwd=project.path, user=project.user, env=env) as terminal:
        assert terminal.finish() == 3
        shown = without_progress(terminal.shown)
        assert shown.startswith("rye: ")
        assert "\x1b" not in shown


def test_foreign_text_cannot_act_on_a_terminal() -> None:
    assert plain("a\u200fb\u061cc\u2028d") == "a\\u200fb\\u061cc\\u2028d"
    assert plain("a\x1b[2Jb\x9bc\u202ed\ttab\nend") == "a\\x1b[2Jb\\x9bc\\u202ed\ttab\nend"
    assert plain("grüße ☃") == "grüße ☃"


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("see {0}/a.py; or '{0}/b c', ({0}/d)", "see a.py; or 'b c', (d)"),
        ("{0}/.ai/tools/x.py:3: wrong", ".ai/tools/x.py:3: wrong"),
        ("/mnt{0}/a.py {0}-old/a.py", "/mnt{0}/a.py {0}-old/a.py"),
        ("{0} and {0}/", "{0} and {0}/"),
        ("rye sign {0}/-x.py", "rye sign {0}/-x.py"),
    ],
)
def test_paths_below_the_working_folder_are_short_where_that_is_as_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, short: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert shown(text.format(tmp_path)) == short.format(tmp_path)


def test_at_the_root_and_in_a_folder_that_is_gone_paths_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    assert shown("/etc/passwd") == "/etc/passwd"
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert shown("/etc/\x1bpasswd") == "/etc/\\x1bpasswd"


def test_programs_get_whole_paths(project: Project, conducted: Conducted) -> None:
    path = project.tool("raw.yaml", "executor_id: 3\n", signed=False)
    (listed,) = json.loads(conducted("list", "raw", "--json").stdout)
    assert listed["fault"].startswith(f"{path}:1: ")
    assert json.loads(conducted("run", "raw", "--json").stdout)["error"].count(str(path)) == 2


def test_a_table_cannot_be_broken_by_its_cells(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([["a\nb", "x\x1b[2J"], ["c", "d"]], looks=[{"bold": True}])
    assert capsys.readouterr().out == "a b  x\\x1b[2J\nc    d\n"


def test_looks_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert style("x", fg="green", bold=True, dim=False) == "\x1b[32;1mx\x1b[0m"
    assert style("x") == "x"


def test_json_spells_what_cannot_be_encoded(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": "\udc80ä", "b": Path("/x")})
    assert json.loads(capsys.readouterr().out) == {"a": "\udc80ä", "b": "/x"}


# The project


def test_the_home_folder_makes_no_project_of_what_is_below(
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
def test_a_folder_that_somebody_else_planted_above_is_no_project(
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
