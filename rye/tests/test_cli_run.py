"""`rye run`: parameters in, what the tool said out, and an exit code that tells how it ended."""

import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest
from loopback_http import LoopbackServer, respond
from rye_command import Completed, Conducted, Terminal, rye, without_progress
from rye_project import HTTP_CLIENT, SUBPROCESS, Project

SCHEMA = {
    "type": "object",
    "properties": {
        "n": {"type": "integer"},
        "word": {"type": "string"},
        "words": {"type": "array", "items": {"type": "string"}},
    },
    "additionalProperties": False,
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, shipped_system=True)


@pytest.fixture
def run(
    project: Project, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Conducted:
    return Conducted(project.path, project.user, monkeypatch, capfd)


def says(project: Project, script: str, name: str = "tools/says", **fields: Any) -> str:
    """A tool that runs a shell script of the author."""
    project.command(name, "/bin/sh", "-c", script, **fields)
    return name


def echoes(project: Project) -> str:
    """A tool that prints the parameters that it got."""
    project.yaml(
        "tools/echoes",
        executor_id=SUBPROCESS,
        config={"command": "/bin/cat", "input_data": "{params_json}"},
        config_schema=SCHEMA,
    )
    return "tools/echoes"


def on_terminal(project: Project, *args: str) -> tuple[int, str]:
    with Terminal(*args, cwd=project.path, user=project.user) as terminal:
        code = terminal.finish()
        return code, without_progress(terminal.shown)


def test_the_command_runs_a_tool_from_a_shell(project: Project) -> None:
    tool = says(project, "echo out; echo aside >&2")
    done = rye("run", tool, cwd=project.path, user=project.user)
    assert done == Completed(0, "out\n", "aside\n")


def test_the_project_is_found_from_below_and_by_option(project: Project, run: Conducted) -> None:
    tool = says(project, "pwd")
    below = project.path / "src" / "deep"
    below.mkdir(parents=True)
    os.chdir(below)
    assert run("run", tool).stdout == f"{project.path}\n"
    os.chdir("/")
    assert run("-C", project.path, "run", tool).stdout == f"{project.path}\n"
    missing = run("-C", project.path / "gone", "run", tool)
    assert missing == Completed(
        1, "", f"rye: {project.path}/gone is no folder; pass the folder of a project\n"
    )


# Parameters


def test_values_are_read_by_the_schema(project: Project, run: Conducted) -> None:
    done = run("run", echoes(project), "n=3", "word=3", "words=a", "words=b")
    assert json.loads(done.stdout) == {"n": 3, "word": "3", "words": ["a", "b"]}


def test_params_come_from_the_argument_a_file_or_stdin(
    project: Project, run: Conducted, tmp_path: Path
) -> None:
    tool = echoes(project)
    text = '{"n": 1, "word": "ä"}'
    file = tmp_path / "params.json"
    file.write_text(text)
    given = json.loads(text)
    assert json.loads(run("run", tool, "--params", text).stdout) == given
    assert json.loads(run("run", tool, "--params", f"@{file}").stdout) == given
    done = rye("run", tool, "--params", "-", cwd=project.path, user=project.user, input=text)
    assert json.loads(done.stdout) == given


def test_key_value_goes_before_params(project: Project, run: Conducted) -> None:
    done = run("run", echoes(project), "n=2", "--params", '{"n": 1, "word": "w"}')
    assert json.loads(done.stdout) == {"n": 2, "word": "w"}


def test_what_a_caller_gives_is_neither_option_nor_template(
    project: Project, run: Conducted
) -> None:
    tool = echoes(project)
    assert json.loads(run("run", tool, "word=--json").stdout) == {"word": "--json"}
    assert json.loads(run("run", "--", tool, "word=${HOME} {n} $(id)").stdout) == {
        "word": "${HOME} {n} $(id)"
    }


@pytest.mark.parametrize(
    ("args", "issue"),
    [
        (["n=x"], "wrong parameters for 'tools/echoes': n: expected an integer"),
        (["wrod=x"], "unknown parameter 'wrod' (did you mean 'word'?)"),
        (["n"], "'n' is not of the form key=value"),
        (["--params", "[1]"], "wrong --params: not an object; pass a JSON object, @FILE"),
        (["--params", "{"], "wrong --params: not JSON at line 1, column 2"),
        (["--params", '{"n": NaN}'], "wrong --params: not JSON; "),
        (["--params", "@nowhere"], "wrong --params: 'nowhere': no such file or directory"),
        (["--params", '{"word": 3}'], "wrong parameters for 'tools/echoes': "),
        (["--timeout", "0"], "wrong call: timeout: expected a positive number"),
        (["--timeout", "x"], "is not a valid float; see `rye run --help`"),
        (["--n=3"], "no such option '--n'; write n=… for a parameter of the tool"),
        (["--jsn"], "no such option '--jsn'. Did you mean '--json'? See `rye run --help`"),
    ],
)
def test_misuse_is_told_once_with_exit_code_2(
    project: Project, run: Conducted, args: list[str], issue: str
) -> None:
    done = run("run", echoes(project), *args)
    assert done.code == 2
    assert done.stdout == ""
    assert done.stderr.startswith("rye: ")
    assert done.stderr.count("\n") == 1
    assert issue in done.stderr


# What is shown


@pytest.mark.parametrize(
    ("script", "shown"),
    [
        ("printf 'no end'", "no end"),
        ("echo text", "text\n"),
        ("echo '{\"b\":  1.10}'", '{"b":  1.10}\n'),
        ("echo 1.10", "1.10\n"),
        ("printf '%s\\n' '\"a text\\nof two lines\"'", "a text\nof two lines\n"),
        ("printf '%s' '\"with its own end\\n\"'", "with its own end\n"),
        ("echo '\"not\" json'", '"not" json\n'),
        ("printf ' '", " "),
        ("printf '\\033[31mred\\033[0m\\n'", "\x1b[31mred\x1b[0m\n"),
        ("true", ""),
    ],
)
def test_a_pipe_gets_what_the_tool_said(
    project: Project, run: Conducted, script: str, shown: str
) -> None:
    assert run("run", says(project, script)) == Completed(0, shown, "")


def test_much_output_arrives_whole(project: Project, run: Conducted) -> None:
    done = run("run", says(project, "seq 1 200000"))
    assert done.stdout == "".join(f"{n}\n" for n in range(1, 200001))


def test_a_terminal_gets_json_indented_and_a_line_end(project: Project) -> None:
    tool = says(project, 'echo \'{"a": [1], "b": "\\u009b31m"}\'; printf aside >&2')
    code, shown = on_terminal(project, "run", tool)
    assert code == 0
    assert shown == 'aside{\n  "a": [\n    1\n  ],\n  "b": "\\x9b31m"\n}\n'


def test_a_terminal_gets_lines_as_they_come(project: Project, tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    says(project, f"echo '[INFO] begun'; read _ < {go}; printf 'no end'")
    with Terminal("run", "tools/says", cwd=project.path, user=project.user) as terminal:
        terminal.wait_for("[INFO] begun\n")
        go.write_text("\n")
        assert terminal.finish() == 0
        assert without_progress(terminal.shown) == "[INFO] begun\nno end\n"


def test_a_pipe_gets_lines_as_they_come_also_if_they_begin_with_a_quote(
    project: Project, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    says(project, f"""echo '"a","b"'; read _ < {go}; echo '"c","d"'""")
    reading, writing = os.pipe()
    with (
        os.fdopen(reading) as lines,
        Terminal("run", "tools/says", cwd=project.path, user=project.user, stdout=writing) as end,
    ):
        os.close(writing)
        assert lines.readline() == '"a","b"\n'
        go.write_text("\n")
        assert lines.read() == '"c","d"\n'
        assert end.finish() == 0


def test_stderr_appears_while_the_tool_runs(project: Project, tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    says(project, f"echo begun >&2; read _ < {go}; echo done")
    with Terminal("run", "tools/says", cwd=project.path, user=project.user) as terminal:
        terminal.wait_for("begun\n")
        go.write_text("\n")
        assert terminal.finish() == 0
        assert without_progress(terminal.shown) == "begun\ndone\n"


def test_a_tool_that_is_silent_for_long_shows_that_it_runs(
    project: Project, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    says(project, f"read _ < {go}; echo spoken")
    with Terminal("run", "tools/says", cwd=project.path, user=project.user) as terminal:
        terminal.wait_for("running tools/says … 1 s")
        go.write_text("\n")
        assert terminal.finish() == 0
        # The line is taken away before the tool's own first word.
        assert terminal.shown.endswith("s\r\x1b[2Kspoken\n")


def test_the_body_of_a_response_is_shown(project: Project, run: Conducted) -> None:
    with LoopbackServer() as server:
        project.yaml(
            "tools/json",
            executor_id=HTTP_CLIENT,
            config={"url": server.on("/json", respond(json={"id": 7}))},
        )
        project.yaml(
            "tools/gone",
            executor_id=HTTP_CLIENT,
            config={"url": server.on("/gone", respond(404, json={"why": "gone"}))},
        )
        assert run("run", "tools/json") == Completed(0, '{"id": 7}\n', "")
        gone = run("run", "tools/gone")
    assert (gone.code, gone.stdout) == (1, '{"why": "gone"}\n')
    assert gone.stderr.startswith("rye: 'tools/gone': HTTP 404")


def test_json_is_the_result_and_nothing_else(project: Project, run: Conducted) -> None:
    done = run("run", says(project, "echo out; echo aside >&2; exit 7"), "--json")
    assert (done.code, done.stderr) == (7, "")
    result = json.loads(done.stdout)
    assert list(result) == ["success", "data", "error", "duration_ms", "chain", "metadata"]
    assert result["success"] is False
    assert result["data"] == {"stdout": "out\n", "stderr": "aside\n", "return_code": 7}
    assert result["error"] == "'tools/says' ended with exit code 7: aside"
    assert [one["item_id"] for one in result["chain"]] == ["tools/says", SUBPROCESS]
    assert result["metadata"]["error_type"] == "ToolFailed"


def test_json_tells_wrong_parameters_in_the_same_form(project: Project, run: Conducted) -> None:
    done = run("run", echoes(project), "n=x", "--json")
    assert (done.code, done.stderr) == (2, "")
    result = json.loads(done.stdout)
    assert result["metadata"]["error_type"] == "ParameterError"
    assert result["metadata"]["issues"] == ["n: expected an integer"]


# How it ends


@pytest.mark.parametrize(
    ("script", "code", "message"),
    [
        ("echo why >&2; exit 3", 3, "why\nrye: 'tools/says' ended with exit code 3\n"),
        ("printf why >&2; exit 3", 3, "why\nrye: 'tools/says' ended with exit code 3\n"),
        ("exit 255", 255, "rye: 'tools/says' ended with exit code 255\n"),
        ("kill -9 $$", 137, "rye: 'tools/says' ended with signal 9\n"),
        ("kill -15 $$", 143, "rye: 'tools/says' ended with signal 15\n"),
    ],
)
def test_a_failing_tool_gives_its_own_code(
    project: Project, run: Conducted, script: str, code: int, message: str
) -> None:
    assert run("run", says(project, script)) == Completed(code, "", message)


def test_a_timeout_shows_what_was_said_until_then(project: Project, run: Conducted) -> None:
    done = run("run", says(project, "echo begun; exec sleep 60"), "--timeout", "0.3")
    assert done == Completed(
        124,
        "begun\n",
        "rye: 'tools/says': Command timed out after 0.3 seconds; raise the timeout, or reduce "
        "the work\n",
    )


def test_an_unknown_tool_is_code_3_with_the_nearest_name(project: Project, run: Conducted) -> None:
    says(project, "true")
    done = run("run", "tools/say", "anything=1")
    assert done.code == 3
    assert done.stderr.startswith("rye: ")
    assert done.stderr.endswith("; did you mean tools/says?\n")


def test_an_unsigned_tool_is_code_4_and_does_not_run(project: Project, run: Conducted) -> None:
    path = project.path / ".ai" / "tools" / "mine.yaml"
    path.write_text(
        json.dumps({"executor_id": SUBPROCESS, "config": {"command": "/bin/touch", "args": ["x"]}})
    )
    done = run("run", "mine", "word=x")
    assert done.code == 4
    assert "unsigned" in done.stderr or "not signed" in done.stderr
    assert not (project.path / "x").exists()


def test_a_lock_that_is_broken_or_missing_is_code_5(project: Project, run: Conducted) -> None:
    tool = says(project, "echo one")
    frozen = run("run", tool, "--frozen")
    assert frozen.code == 5
    assert "rye lock" in frozen.stderr
    assert run("run", tool).code == 0
    assert run("run", tool, "--frozen") == Completed(0, "one\n", "")
    says(project, "echo two")
    assert run("run", tool).code == 5


def test_processes_that_outlive_the_tool_are_told(project: Project, run: Conducted) -> None:
    done = run("run", says(project, "sleep 600 >/dev/null 2>&1 & echo done"))
    assert done == Completed(
        0, "done\n", "rye: 1 background process outlived the tool and was ended\n"
    )


def test_a_tool_that_could_not_be_pinned_is_told(project: Project, run: Conducted) -> None:
    tool = says(project, "echo done")
    (project.path / ".ai" / "lockfiles").write_text("in the way")
    done = run("run", tool)
    assert (done.code, done.stdout) == (0, "done\n")
    assert done.stderr.startswith("rye: the tool ran, but could not be pinned: ")


def test_parameters_without_end_are_refused(
    project: Project, run: Conducted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rye.cli.run.parameters.MAX_BYTES", 10)
    (project.path / "big.json").write_text(" " * 11)
    done = run("run", says(project, "true"), "--params", "@big.json")
    assert done.code == 2
    assert done.stderr.startswith("rye: wrong --params: 'big.json' has more than 10 bytes; ")


# Dry runs


def test_a_dry_run_shows_the_plan_and_runs_nothing(project: Project, run: Conducted) -> None:
    says(project, "touch ran; echo $SECRET", env_config={"env": {"SECRET": "s3cret"}})
    done = run("run", "tools/says", "--dry-run")
    assert (done.code, done.stderr) == (0, "")
    assert not (project.path / "ran").exists()
    lines = done.stdout.splitlines()
    assert lines[0] == "would run tools/says:"
    rows = {line[:15].strip(): line[15:] for line in lines[1:]}
    assert shlex.split(rows["command"])[:2] == ["/bin/sh", "-c"]
    assert Path(rows["folder"]) == project.path
    assert "SECRET" in rows["environment"].split()
    assert rows["lock"] == "none yet"
    assert "stdin" not in rows
    assert rows["chain"].startswith("tools/says 1.0.0 (project), signed by ")
    assert rows["chain"].endswith(", trusted")
    assert "s3cret" not in done.stdout


def test_a_dry_run_for_programs_is_the_whole_plan(project: Project, run: Conducted) -> None:
    done = run("run", says(project, "true"), "--dry-run", "--json")
    plan = json.loads(done.stdout)["data"]
    assert plan["argv"] == ["/bin/sh", "-c", "true"]
    assert plan["signatures"][0]["standing"] == "trusted"


def test_a_dry_run_of_a_request_shows_the_request(project: Project, run: Conducted) -> None:
    project.yaml(
        "tools/get",
        executor_id=HTTP_CLIENT,
        config={"url": "https://example.invalid/x", "method": "POST", "body": {"a": [1]}},
    )
    done = run("run", "tools/get", "--dry-run")
    assert done.code == 0, done.stderr
    told = done.stdout.partition("  chain ")[0]
    assert [line.split(None, 1) for line in told.splitlines()[1:]] == [
        ["request", "POST https://example.invalid/x"],
        ["headers", "Content-Type"],
        ["body", '{"a": [1]}'],
        ["lock", "none yet"],
    ]


def test_a_plan_names_how_a_request_signs_in_and_how_the_answer_comes(
    project: Project, run: Conducted
) -> None:
    project.yaml(
        "tools/get",
        executor_id=HTTP_CLIENT,
        config={
            "url": "https://example.invalid/x",
            "method": "GET",
            "mode": "stream",
            "auth": {"type": "bearer", "token": "${TOKEN}"},
        },
        env_config={"env": {"TOKEN": "s3cret"}},
    )
    done = run("run", "tools/get", "--dry-run")
    assert "  signs in by  bearer\n" in done.stdout
    assert "  answer       as a stream\n" in done.stdout
    assert "s3cret" not in done.stdout
