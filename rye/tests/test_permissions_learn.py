"""``rye permissions learn``: the smallest declaration that suffices for a watched call."""

from __future__ import annotations

import json
import shutil
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lilux.primitives.subprocess import BlockingSubprocess, Observation, SubprocessResult
from lilux.record import replaced
from rye.errors import PermissionsError
from rye.executor.learning import Lesson, learn_call
from rye.items.permissions import KEYS, Permissions
from rye.permissions.declaration import declaration_lines
from rye.permissions.learn import Learned, variables_read
from rye_project import HTTP_CLIENT, SUBPROCESS, Project

PATH = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
# The path is in two parts, since a file that a tool names must be pinned.
READ_0 = "d=da; cat $d'ta/0'"
HEAD = '__version__ = "1.0.0"\n__executor_id__ = "python_runtime"\n'

SAMPLE = """\
import os, pathlib, subprocess, tempfile
def main(port):
    import socket
    socket.create_connection(("127.0.0.1", port)).close()
    home = pathlib.Path(os.environ["SAMPLE_HOME"])
    pathlib.Path("out").mkdir(exist_ok=True)
    pathlib.Path("out/first").write_text((home / "settings").read_text())
    pathlib.Path("out/second").write_text("")
    for number in range(4):
        pathlib.Path(f"data/{number}").read_text()
    subprocess.run(["git", "--version"], check=True, stdout=subprocess.DEVNULL)
    return {"done": True}
"""


@pytest.fixture(autouse=True)
def _can_watch() -> None:
    with BlockingSubprocess() as client:
        observation = client.execute({"command": "true", "observe": True}).observation
        report = client.probe_confinement()
    if observation is None or observation.missing:
        pytest.skip(f"not tried: {observation and observation.missing}")
    if "fs" not in report.enforced:
        pytest.skip(f"not tried: {report.missing[0].reason}")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path, shipped_system=True, environ={"PATH": PATH, "LC_ALL": "C"})
    (project.user / ".ai" / "config.yaml").write_text("permissions: {unenforced: allow}\n")
    (project.path / "data").mkdir()
    for number in range(4):
        (project.path / "data" / str(number)).write_text("")
    return project


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def _learn(project: Project, item_id: str, parameters: dict[str, Any] | None = None) -> Lesson:
    return learn_call(item_id, parameters, project.context)


def _declared(permissions: Permissions) -> dict[str, Any]:
    fields = {key: list(getattr(permissions, key)) for key in KEYS[:-1]}
    return {key: entries for key, entries in fields.items() if entries}


def _without_each(permissions: Permissions) -> Iterator[tuple[str, Permissions]]:
    for key in KEYS[:-1]:
        for entry in getattr(permissions, key):
            rest = tuple(one for one in getattr(permissions, key) if one != entry)
            yield entry, replaced(permissions, **{key: rest})


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_learned_declaration_suffices_and_has_no_entry_too_many(
    project: Project, port: int
) -> None:
    (project.user / "settings").write_text("settings")
    project.environ["SAMPLE_HOME"] = str(project.user)
    project.environ["UNUSED_SECRET"] = "unused"
    project.tool("sample.py", HEAD + SAMPLE)
    lesson = _learn(project, "sample", {"port": port})
    learned = lesson.learned.permissions
    assert lesson.notes == ()
    own = [one for one in learned.read if one.startswith(("~", "{"))]
    assert sorted(own) == ["{project_path}/data", "~/settings"]
    assert learned.write == ("{project_path}/out",)
    assert (learned.net, learned.env, learned.run) == (("*",), ("SAMPLE_HOME",), ("git",))
    # An interpreter in development reads the folders of editable packages, but does without them.
    learned = replaced(learned, read=tuple(own))

    def confined(name: str, permissions: Permissions) -> Any:
        shutil.rmtree(project.path / "out", ignore_errors=True)
        project.tool(f"{name}.py", f"{HEAD}PERMISSIONS = {_declared(permissions)!r}\n{SAMPLE}")
        return project.run(name, {"port": port})

    result = confined("enough", learned)
    assert result.success, result.error
    for number, (entry, less) in enumerate(_without_each(learned)):
        result = confined(f"less{number}", less)
        assert not result.success, entry


def test_a_shell_tool_is_learned_with_its_programs(project: Project) -> None:
    (project.path / "out").mkdir()
    script = f"{READ_0} $d'ta/1' | sort > out/list; cat <<< hi; mktemp > /dev/null"
    project.command("shell", "bash", "-c", script)
    learned = _learn(project, "shell").learned.permissions
    assert learned.run == ("cat", "mktemp", "sort")
    assert learned.read == ("{project_path}/data/0", "{project_path}/data/1")
    assert learned.write == ("tmp", "{project_path}/out")
    assert (learned.net, learned.env) == ((), ())
    project.command("confined", "bash", "-c", script, permissions=_declared(learned))
    result = project.run("confined")
    assert result.success, result.error


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_is_learned_with_its_helpers(project: Project) -> None:
    commit = "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x"
    script = f"git init -q repo && cd repo && {commit} && git status"
    (project.path / "repo").mkdir()
    project.command("commit", "sh", "-c", script)
    learned = _learn(project, "commit").learned.permissions
    assert learned.run == ("git",)
    assert learned.write == ("{project_path}/repo/.git",)
    shutil.rmtree(project.path / "repo" / ".git")
    project.command("confined", "sh", "-c", script, permissions=_declared(learned))
    result = project.run("confined")
    assert result.success, result.error


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_node_is_learned(project: Project) -> None:
    script = "require('fs').writeFileSync('ou' + 't/x', require('fs').readFileSync('da' + 'ta/0'))"
    (project.path / "out").mkdir()
    project.command("node", "node", "-e", script)
    learned = _learn(project, "node").learned.permissions
    assert learned.write == ("{project_path}/out",)
    assert "{project_path}/data/0" in learned.read
    assert learned.net == ()
    project.command("confined", "node", "-e", script, permissions=_declared(learned))
    result = project.run("confined")
    assert result.success, result.error


def test_unix_sockets_and_their_variables_are_learned(project: Project, tmp_path: Path) -> None:
    path = tmp_path / "agent"
    project.environ["AGENT_SOCK"] = str(path)
    project.tool(
        "agent.py",
        f"{HEAD}import socket\ndef main():\n"
        f"    socket.socket(socket.AF_UNIX).connect({str(path)!r})\n",
    )
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        learned = _learn(project, "agent").learned
    assert learned.permissions.net == ("unix",)
    assert learned.permissions.env == ("AGENT_SOCK",)
    assert learned.reasons["env", "AGENT_SOCK"] == f"contains {path.resolve()}"


def test_learning_runs_a_confined_tool_with_the_rights_of_the_user(project: Project) -> None:
    project.command("narrow", "sh", "-c", READ_0, permissions={"run": ["cat"]})
    assert not project.run("narrow").success
    learned = _learn(project, "narrow").learned.permissions
    assert (learned.read, learned.run) == (("{project_path}/data/0",), ("cat",))


def test_a_tool_that_needs_nothing(project: Project) -> None:
    project.command("plain", "sh", "-c", "echo hi")
    lesson = _learn(project, "plain")
    assert lesson.learned.permissions == Permissions()
    assert list(declaration_lines(lesson.learned, "yaml")) == [
        "permissions:",
        "  # nothing beyond what every tool may use",
        "  read: []",
    ]


def test_a_failed_call_is_said_to_be_incomplete(project: Project) -> None:
    project.command("fails", "sh", "-c", "exit 3")
    assert _learn(project, "fails").notes == (
        "'fails' ended with exit code 3: what it does after a success was not seen",
    )


def test_a_tool_that_cannot_be_started_is_an_error(project: Project) -> None:
    project.command("none", "no-such-program")
    with pytest.raises(PermissionsError, match=r"'none' could not be started: .*no-such-program"):
        _learn(project, "none")


def test_a_machine_that_cannot_watch_is_an_error_with_the_reason(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unwatched(*_: Any, **__: Any) -> SubprocessResult:
        observation = Observation((), 0, 0, "this kernel does not notify of system calls")
        return SubprocessResult(
            success=True,
            stdout="",
            stderr="",
            return_code=0,
            duration_ms=1.0,
            observation=observation,
        )

    project.command("plain", "true")
    monkeypatch.setattr(BlockingSubprocess, "execute", unwatched)
    with pytest.raises(PermissionsError) as error:
        _learn(project, "plain")
    assert error.value.reason == (
        "'plain' ran, but cannot be watched here: this kernel does not notify of system calls"
    )


def test_a_request_is_learned_without_sending_it(project: Project) -> None:
    project.yaml("get", executor_id=HTTP_CLIENT, config={"url": "https://api.example.org/x"})
    learned = _learn(project, "get").learned
    assert learned.permissions == Permissions(net=("api.example.org:443",))
    assert learned.reasons == {
        ("net", "api.example.org:443"): "the URL of the tool; nothing was sent"
    }


def test_the_command_prints_what_can_be_pasted(
    project: Project, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from rye.cli.app import app

    project.command("shell", "sh", "-c", f"{READ_0}; echo said")
    context = project.context
    for name, value in context.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(project.path)
    with pytest.raises(SystemExit) as end:
        app(["permissions", "learn", "shell"], prog_name="rye")
    printed = capfd.readouterr()
    assert end.value.code in (0, None), printed
    assert printed.out.splitlines() == [
        "permissions:",
        "  # {project_path}/data/0: cat: read 0",
        '  read: ["{project_path}/data/0"]',
        f"  # cat: {Path('/bin/sh').resolve().name}: execute cat",
        '  run: ["cat"]',
    ]
    assert printed.err == "said\n"


@pytest.mark.parametrize("kind", ["yaml", "python", "block"])
def test_a_declaration_is_read_back_as_it_was_learned(project: Project, kind: str) -> None:
    wanted = Permissions(read=("~/a b", '{project_path}/"x"'), net=("*",), run=("git",))
    learned = Learned(permissions=wanted, reasons={("run", "git"): "sh: execute git"}, left_out=())
    text = "\n".join(declaration_lines(learned, kind))
    head = {"executor": "python_runtime", "version": "1.0.0"}
    if kind == "python":
        path = project.tool("read.py", f"{HEAD}{text}\ndef main(): pass\n")
    elif kind == "yaml":
        path = project.tool("read.yaml", f"version: '1.0.0'\nexecutor_id: {SUBPROCESS}\n{text}\n")
    else:
        lines = [
            f'version = "{head["version"]}"',
            f'executor_id = "{SUBPROCESS}"',
            *text.split("\n"),
        ]
        block = "\n".join(f"# {line}" for line in lines)
        path = project.tool("read.sh", f"# /// rye\n{block}\n# ///\n")
    assert path.exists()
    from rye.executor.permitted import permitted

    assert permitted("read", project.context).declared == wanted


def test_only_variables_of_the_user_are_found_in_a_text() -> None:
    text = "os.environ['TOKEN'], PATH, OTHER, LC_ALL, token"
    found = variables_read([("t.py", text)], ["TOKEN", "PATH", "LC_ALL", "UNUSED"], {})
    assert found == {"TOKEN": "mentioned in t.py"}


def test_control_characters_in_names_do_not_reach_the_terminal() -> None:
    learned = Learned(
        permissions=Permissions(read=("/a\n\x1b[2Jb",)),
        reasons={("read", "/a\n\x1b[2Jb"): "sh: read \x1b"},
        left_out=("/proc/self/\x1b",),
    )
    text = "\n".join(declaration_lines(learned, "yaml"))
    assert "\x1b" not in text
    assert json.loads(text.splitlines()[2].partition(": ")[2]) == ["/a\n\x1b[2Jb"]
