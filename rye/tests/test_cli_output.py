"""Standard streams, colours, and text from tools and files on a terminal."""

import json
import os
import subprocess
from functools import partial
from pathlib import Path

import pytest
from rye.cli.output.printing import display, plain, print_json, print_table, style
from rye_command import (
    COMMAND,
    Completed,
    InProcessRye,
    Terminal,
    environment,
    rye,
    without_progress,
)
from rye_project import Project

RED = "\x1b[31;1mrye:\x1b[0m"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, shipped_system=True)


@pytest.fixture
def in_process(
    project: Project, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> InProcessRye:
    return InProcessRye(project.path, project.user, monkeypatch, capfd)


# Streams


def test_a_closed_pipe_is_not_reported(project: Project) -> None:
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


def test_closed_streams_are_accepted(project: Project) -> None:
    project.command("tools/says", "/bin/sh", "-c", "echo out; echo aside >&2")
    assert in_shell(project, ">&-", "run", "tools/says") == Completed(0, "", "aside\n")
    assert in_shell(project, "<&- 2>&-", "run", "tools/says") == Completed(0, "out\n", "")
    assert in_shell(project, ">&-", "--version") == Completed(0, "", "")


def test_a_full_disk_is_reported(project: Project) -> None:
    project.command("tools/says", "/bin/echo", "out")
    run = ["run", "tools/says"]
    for args in (["--version"], ["--help"], run, [*run, "--json"]):
        done = in_shell(project, ">/dev/full", *args)
        assert done == Completed(1, "", "rye: no space left on device\n"), args


def test_a_locale_without_utf8_works(project: Project) -> None:
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


# Colours, and text that Rye did not write


def test_errors_are_coloured_only_if_stderr_is_a_terminal(project: Project) -> None:
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
def test_colours_can_be_turned_off(project: Project, env: dict[str, str]) -> None:
    with Terminal("run", "nowhere", cwd=project.path, user=project.user, env=env) as terminal:
        assert terminal.finish() == 3
        shown = without_progress(terminal.shown)
        assert shown.startswith("rye: ")
        assert "\x1b" not in shown


def test_control_characters_are_escaped() -> None:
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
def test_paths_below_the_working_directory_are_relative(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, short: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert display(text.format(tmp_path)) == short.format(tmp_path)


def test_paths_stay_absolute_at_the_root_and_in_a_removed_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    assert display("/etc/passwd") == "/etc/passwd"
    (tmp_path / "removed").mkdir()
    monkeypatch.chdir(tmp_path / "removed")
    (tmp_path / "removed").rmdir()
    assert display("/etc/\x1bpasswd") == "/etc/\\x1bpasswd"


def test_json_has_absolute_paths(project: Project, in_process: InProcessRye) -> None:
    path = project.tool("raw.yaml", "executor_id: 3\n", signed=False)
    (listed,) = json.loads(in_process("list", "raw", "--json").stdout)
    assert listed["fault"].startswith(f"{path}:1: ")
    assert json.loads(in_process("run", "raw", "--json").stdout)["error"].count(str(path)) == 2


def test_a_table_cannot_be_broken_by_its_cells(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([["a\nb", "x\x1b[2J"], ["c", "d"]], styles=[{"bold": True}])
    assert capsys.readouterr().out == "a b  x\\x1b[2J\nc    d\n"


def test_colour_and_weight_are_combined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert style("x", fg="green", bold=True, dim=False) == "\x1b[32;1mx\x1b[0m"
    assert style("x") == "x"


def test_json_escapes_lone_surrogates(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": "\udc80ä", "b": Path("/x")})
    assert json.loads(capsys.readouterr().out) == {"a": "\udc80ä", "b": "/x"}


@pytest.mark.parametrize("character", ["\x9b", "\u202e", "\u2028", "\u2029", "\x7f", "\u2066"])
def test_text_of_a_file_cannot_control_the_terminal_through_json(
    project: Project, in_process: InProcessRye, character: str
) -> None:
    description = f"looks{character}harmless"
    project.tool(
        "odd.yaml",
        f"""version: "1.0.0"
tool_type: shell
executor_id: rye/core/primitives/subprocess
description: {json.dumps(description)}
config: {{command: "true"}}
""",
    )
    for arguments in (["list", "--json"], ["tools"], ["show", "odd", "--json"]):
        done = in_process(*arguments)
        assert done.stdout.replace("\n", "").isprintable()
        assert description in json.dumps(json.loads(done.stdout), ensure_ascii=False)
