"""A caller's text never runs, whatever program the author's command line starts."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from rye.errors import RyeError
from rye.executor.config.command_line import render_command_line
from rye.executor.config.templates import Names
from rye_project import SUBPROCESS, Project

PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
RUNS = "{x} is part of text that a program may run; pass it as an argument of its own, for example"
BEGINNING = "{x} is part of text that does not begin with two letters or ./"
OPTION = "{x} is part of an argument that follows an option and may be code"
STDIN = "{x} is part of a text on stdin, which a program may run"
# An attack with a command line, a value that would run `hit`, and why it is refused. `hit` is a
# program on the PATH without arguments, which creates the file `pwned` in the working directory.
SHELL = "$(hit)"
LINES: dict[str, tuple[list[str], str, str]] = {
    "script -qec": (["script", "-qec", "echo {x}", "/dev/null"], SHELL, RUNS),
    "su -lc": (["su", "-lc", "echo {x}"], "$(cd @; @/bin/hit)", RUNS),
    "env -vS": (["env", "-vS", "sh -c {x}"], "hit", RUNS),
    "bash -login -c": (["bash", "-login", "-c", "echo {x}"], "$(cd @; @/bin/hit)", RUNS),
    "sg": (["sg", "root", "echo {x}"], SHELL, RUNS),
    "capsh": (["capsh", "--", "-c", "echo {x}"], SHELL, RUNS),
    "a git alias": (["git", "-c", "alias.z=!echo {x}", "z"], SHELL, RUNS),
    "split --filter": (["split", "--filter=echo {x}", "/etc/passwd"], SHELL, RUNS),
    "tar --checkpoint-action": (
        ["tar", "-cf", "/dev/null", "--checkpoint=1", "--checkpoint-action=exec={x}", "bin"],
        "hit",
        RUNS,
    ),
    "linux64 in a script": (["bash", "-c", 'linux64 bash -c "echo {x}"'], SHELL, RUNS),
    "choom in a script": (["bash", "-c", 'choom -n 0 -- bash -c "echo {x}"'], SHELL, RUNS),
    "tini in a script": (["bash", "-c", 'tini -s -- bash -c "echo {x}"'], SHELL, RUNS),
    "xvfb-run in a script": (["bash", "-c", 'xvfb-run bash -c "echo {x}"'], SHELL, RUNS),
    "poetry in a script": (["bash", "-c", 'poetry run bash -c "echo {x}"'], SHELL, RUNS),
    "an assignment": (["bash", "-c", "A={x}"], "b; hit", RUNS),
    "quotes": (["sh", "-c", "echo '{x}'"], "'; hit; '", RUNS),
    "an assignment in Python": (["python3", "-c", "x={x}"], "__import__('os').system('hit')", RUNS),
    "a text in Python": (
        ["python3", "-c", 'print("{x}")'],
        '");__import__("os").system("hit");("',
        RUNS,
    ),
    "python3 -m": (["python3", "-m{x}"], "evil", BEGINNING),
    "a pattern of sed": (["sed", "s/{x}/y/", "{input}"], "a/hit/e;s/b", BEGINNING),
    "the flags of sed": (["sed", "s/a/{x}/{y}", "{input}"], "hit", BEGINNING),
    "a command of sed": (["sed", "/a/{x}", "{input}"], "ehit", BEGINNING),
    "a line number of sed": (["sed", "-n", "{x}p", "{input}"], "1ehit;", OPTION),
    "a program of awk": (["awk", 'BEGIN {print "{x}"}'], '";system("hit");"', RUNS),
    "an SQL text": (["sqlite3", ":memory:", "select '{x}'"], "'||writefile('pwned',1)||'", RUNS),
    "a list in Perl": (["perl", "-e", "1,{x}", "hit"], "exec@ARGV", RUNS),
    "a pattern of Perl": (["perl", "-pe", "s/{x}/y/", "{input}"], "a/b/.qx/hit/.q", OPTION),
    "an operator of Perl": (["perl", "-e", "print.{x}"], "qx.hit.x5", OPTION),
    "a name after an option that vanished": (
        ["perl", "-e", "{none}", "out/{x}"],
        "qx.hit.x5",
        OPTION,
    ),
    "node": (["node", "-e", "var a='{x}'"], "';require('child_process').execSync('hit');'", RUNS),
}
SCRIPTS: dict[str, tuple[list[str], str, str]] = {
    "Python": (["python3", "-"], "x={x}", "__import__('os').system('hit')"),
    "Perl": (["perl"], "out/{x}", "qx.hit.x5"),
    "SQL": (["sqlite3"], "select '{x}';", "';\n.shell hit\n--"),
    "sh": (["env", "--", "sh"], "echo {x}", SHELL),
    "a shell started by another program": (["xargs", "-I@", "sh", "-c", "@"], "echo {x}", SHELL),
    "tcl": (["tclsh"], "set x {x}", "[exec hit]"),
    "ed": (["ed"], "{x}p\n", "!hit\n"),
}


def prepare(folder: Path) -> str:
    """Put the program ``hit`` and some input into a folder; return the PATH with it."""
    program = folder / "bin" / "hit"
    program.parent.mkdir(exist_ok=True)
    program.write_text("#!/bin/sh\n: > pwned\n")
    program.chmod(0o755)
    (folder / "evil.py").write_text("open('pwned', 'w')\n")
    (folder / "input").write_text("a\n")
    return f"{program.parent}:{PATH}"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    path = prepare(project.path)
    return Project(tmp_path, environ={"PATH": path, "HOME": str(tmp_path)})


def attacked(project: Project, config: dict[str, Any], value: str) -> str:
    """Call a tool with the value; return the error."""
    if shutil.which(config["command"], path=PATH) is None:
        pytest.skip(f"{config['command']} is not installed")
    tool = project.yaml("t", executor_id=SUBPROCESS, config=config)
    value = value.replace("@", str(project.path)) if "@/" in value else value
    result = project.run("t", {"x": value, "y": "e", "none": None, "input": "input"})
    assert not (project.path / "pwned").exists()
    assert result.metadata["error_type"] == "ConfigTemplateError"
    start = f"{tool}: 't': config."
    assert str(result.error).startswith(start)
    return str(result.error).removeprefix(start).partition(": ")[2]


@pytest.mark.parametrize("attack", LINES)
def test_a_callers_text_is_not_run_by_a_program_that_gets_it(project: Project, attack: str) -> None:
    argv, value, reason = LINES[attack]
    assert attacked(project, {"command": argv[0], "args": argv[1:]}, value).startswith(reason)


@pytest.mark.parametrize("language", SCRIPTS)
def test_a_callers_text_is_not_run_in_a_script_on_stdin(project: Project, language: str) -> None:
    argv, script, value = SCRIPTS[language]
    config = {"command": argv[0], "args": argv[1:], "input_data": script}
    assert attacked(project, config, value).startswith(STDIN)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("GIT_SSH_COMMAND", "ssh -p {x}", "22; touch pwned;"),
        ("GIT_SSH_COMMAND", "ssh.{x}", "x; touch pwned;"),
        ("BASH_ENV", "conf/{x}", "$(touch pwned)"),
    ],
)
def test_a_callers_text_is_not_run_by_a_program_that_obeys_a_variable(
    project: Project, name: str, text: str, value: str
) -> None:
    script = "git ls-remote ssh://localhost/x; true"
    config = {"command": "bash", "args": ["-c", script], "env": {name: text}}
    project.yaml("t", executor_id=SUBPROCESS, config=config)
    result = project.run("t", {"x": value})
    assert not (project.path / "pwned").exists()
    expected = "set the variable to {x} alone" if " " in text else "expected a name of letters"
    assert expected in str(result.error)


def test_a_variable_takes_a_whole_value_a_path_and_a_name(project: Project) -> None:
    env = {
        "A": "{x}",
        "B": "{project_path}/out/{y}",
        "C": "{project_path}/bin:${PATH}",
        "D": "out/{y}",
    }
    config = {"command": "sh", "args": ["-c", 'echo "$A $B $C $D"'], "env": env}
    project.yaml("t", executor_id=SUBPROCESS, config=config)
    result = project.run("t", {"x": "any; $(text)", "y": "b.txt"})
    at = project.path
    path = project.environ["PATH"]
    assert result.data["stdout"] == f"any; $(text) {at}/out/b.txt {at}/bin:{path} out/b.txt\n"


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (["bash", "-c", "cd {project_path} && ls"], "is part of text that a program may run"),
        (["bash", "-c", "{project_path}"], "is text that a program may run"),
        (["env", "bash", "-c", "{project_path}/run"], "expected a path of letters, digits, blanks"),
        (["script", "-qec", "{project_path}/run", "/dev/null"], "expected a path of letters"),
        (["script", "--command={project_path}/run", "/dev/null"], "expected a path of letters"),
        (["bash", "-c", "--", "{project_path}/run"], "expected a path of letters"),
        (["bash", "-c", "-o", "errexit", "{project_path}/run"], "expected a path of letters"),
        (["sh", "+ec", "{project_path}/run"], "expected a path of letters"),
    ],
)
def test_a_project_folder_with_shell_code_in_its_name_does_not_run_it(
    tmp_path: Path, argv: list[str], reason: str
) -> None:
    project = Project(tmp_path / "a; touch pwned;")
    project.command("t", *argv)
    result = project.run("t")
    assert not list(tmp_path.rglob("pwned"))
    assert reason in str(result.error)


INTERPRETERS = [
    ["sh", "-c"], ["bash", "-c"], ["dash", "-ec"], ["bash"], ["python3", "-c"], ["python3"],
    ["perl", "-e"], ["perl", "-pe"], ["perl", "-ne"], ["perl"], ["node", "-e"], ["awk"],
    ["sed"], ["sed", "-n"], ["sed", "-e"], ["sed", "-E", "--expression"], ["sqlite3", ":memory:"],
    ["jq"], ["tclsh"], ["vim", "-es", "-c"], ["env", "-S"], ["env"],
    ["xargs", "-a", "input"], ["make", "-s"], ["git", "-c"], ["find", ".", "-exec"],
    ["script", "-qec"], ["ed", "-s"], ["nice", "sh", "-c"],
]  # fmt: skip
INSTALLED = [one for one in INTERPRETERS if shutil.which(one[0], path=PATH)]
AUTHOR = st.sampled_from([
    "a", "s", "e", "y", "1", "p", "x5", "out", "print", "s/a/", "/a/", "s/a/b/", "qx", "exec", "f",
    ".", "..", "/", "./", ":", "-", "_", "--e=", "-e", "--eval=", "alias.z=",
    " ", "'", '"', "$", "(", ")", ";", "=", ",", "!", "\n", "`", "{y}", "{n}", "{project_path}/",
])  # fmt: skip
VALUE = st.lists(
    st.sampled_from([
        "hit", "e", "ehit", "qx", "q", "exec", "system", "s", "x5", ".", "-", ":", "/", "_", "1",
        "w", "a", "evil", " ", ";", "$(hit)", "`hit`", "'", '"', "\n", "|hit", "!hit", "@ARGV", ",",
        "..",
    ]),
    max_size=6,
).map("".join)  # fmt: skip


@settings(
    max_examples=1500, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    interpreter=st.sampled_from(INSTALLED),
    before=st.lists(AUTHOR, max_size=3).map("".join),
    after=st.lists(AUTHOR, max_size=3).map("".join),
    values=st.tuples(VALUE, VALUE),
)
@example(["perl", "-e"], "out/", ".txt", ("qx.hit.-f", ""))
@example(["perl", "-pe"], "s/", "/y/", ("a/b/.qx/hit/.q", ""))
@example(["sed"], "s/a/{y}/", "", ("e", "hit"))
@example(["sed"], "sxax{y}x", "", ("e", "hit"))
@example(["sed"], "1s_a_{y}_", "", ("e", "hit"))
@example(["perl"], "out/", "", ("qx.hit.x5", ""))
def test_no_accepted_template_runs_a_callers_text(
    tmp_path: Path, interpreter: list[str], before: str, after: str, values: tuple[str, str]
) -> None:
    """Each accepted template is given to a real interpreter."""
    template = f"{before}{{x}}{after}"
    if template in ("{x}", "--e={x}", "--eval={x}") or before.endswith("$"):
        return  # the author hands over a whole value, or `${x}` of a shell
    path = prepare(tmp_path)
    names = Names(
        injected={"project_path": str(tmp_path)},
        parameters={"x": values[0], "y": values[1], "n": 3},
        declared=None,
        env={},
        tool="t",
    )
    with pytest.raises(RyeError, match="is part of a text on stdin"):
        render_command_line({"command": interpreter[0], "input_data": template}, names)
    config = {"command": interpreter[0], "args": [*interpreter[1:], template, "input"]}
    try:
        line = render_command_line(config, names)
    except RyeError:
        return
    subprocess.run(
        [line.command, *line.args],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=30,
        env={"PATH": path, "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"},
    )
    assert not (tmp_path / "pwned").exists(), [line.command, *line.args]
