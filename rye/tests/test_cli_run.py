"""`rye run`: the project, parameters, exit codes and dry runs."""

import json
import os
import shlex
from pathlib import Path

import pytest
from rye_command import Completed, InProcessRye, rye
from rye_project import HTTP_CLIENT, SUBPROCESS, Project, says

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
) -> InProcessRye:
    return InProcessRye(project.path, project.user, monkeypatch, capfd)


def echoes(project: Project) -> str:
    """Add a tool that prints its parameters."""
    project.yaml(
        "tools/echoes",
        executor_id=SUBPROCESS,
        config={"command": "/bin/cat", "input_data": "{params_json}"},
        config_schema=SCHEMA,
    )
    return "tools/echoes"


def test_a_tool_runs(project: Project) -> None:
    tool = says(project, "echo out; echo aside >&2")
    done = rye("run", tool, cwd=project.path, user=project.user)
    assert done == Completed(0, "out\n", "aside\n")


def test_the_project_is_found_from_a_subdirectory_and_by_option(
    project: Project, run: InProcessRye
) -> None:
    tool = says(project, "pwd")
    below = project.path / "src" / "deep"
    below.mkdir(parents=True)
    os.chdir(below)
    assert run("run", tool).stdout == f"{project.path}\n"
    os.chdir("/")
    assert run("-C", project.path, "run", tool).stdout == f"{project.path}\n"
    missing = run("-C", project.path / "missing", "run", tool)
    assert missing == Completed(
        1, "", f"rye: {project.path}/missing is not a directory; pass the directory of a project\n"
    )


# Parameters


def test_the_schema_decides_the_types_of_values(project: Project, run: InProcessRye) -> None:
    done = run("run", echoes(project), "n=3", "word=3", "words=a", "words=b")
    assert json.loads(done.stdout) == {"n": 3, "word": "3", "words": ["a", "b"]}


def test_params_come_from_the_argument_a_file_or_stdin(
    project: Project, run: InProcessRye, tmp_path: Path
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


def test_key_value_overrides_params(project: Project, run: InProcessRye) -> None:
    done = run("run", echoes(project), "n=2", "--params", '{"n": 1, "word": "w"}')
    assert json.loads(done.stdout) == {"n": 2, "word": "w"}


def test_a_value_is_neither_an_option_nor_a_template(project: Project, run: InProcessRye) -> None:
    tool = echoes(project)
    assert json.loads(run("run", tool, "word=--json").stdout) == {"word": "--json"}
    assert json.loads(run("run", "--", tool, "word=${HOME} {n} $(id)").stdout) == {
        "word": "${HOME} {n} $(id)"
    }


@pytest.mark.parametrize(
    ("args", "issue"),
    [
        (["n=x"], "invalid parameters for 'tools/echoes': n: expected an integer"),
        (["wrod=x"], "unknown parameter 'wrod' (did you mean 'word'?)"),
        (["n"], "'n' is not of the form key=value"),
        (["--params", "[1]"], "invalid --params: not an object; pass a JSON object, @FILE"),
        (["--params", "{"], "invalid --params: not JSON at line 1, column 2"),
        (["--params", '{"n": NaN}'], "invalid --params: not JSON; "),
        (["--params", "@nowhere"], "invalid --params: 'nowhere': no such file or directory"),
        (["--params", '{"word": 3}'], "invalid parameters for 'tools/echoes': "),
        (["--timeout", "0"], "invalid call: timeout: expected a positive number"),
        (["--timeout", "x"], "is not a valid float; see `rye run --help`"),
        (["--n=x"], "invalid parameters for 'tools/echoes': n: expected an integer"),
        (["--jsn"], "unknown parameter '--jsn' (did you mean '--json'?); see `rye run tools/ech"),
        (["-x"], "no such option '-x'; see `rye run --help`"),
    ],
)
def test_misuse_is_reported_once_and_exits_with_2(
    project: Project, run: InProcessRye, args: list[str], issue: str
) -> None:
    done = run("run", echoes(project), *args)
    assert done.code == 2
    assert done.stdout == ""
    assert done.stderr.startswith("rye: ")
    assert done.stderr.count("\n") == 1
    assert issue in done.stderr


def test_json_reports_wrong_parameters_as_a_result(project: Project, run: InProcessRye) -> None:
    done = run("run", echoes(project), "n=x", "--json")
    assert (done.code, done.stderr) == (2, "")
    result = json.loads(done.stdout)
    assert result["metadata"]["error_type"] == "ParameterError"
    assert result["metadata"]["issues"] == ["n: expected an integer"]


# Exit codes and messages


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
def test_the_exit_code_of_a_failing_tool_is_kept(
    project: Project, run: InProcessRye, script: str, code: int, message: str
) -> None:
    assert run("run", says(project, script)) == Completed(code, "", message)


def test_output_before_a_timeout_is_shown(project: Project, run: InProcessRye) -> None:
    done = run("run", says(project, "echo begun; exec sleep 60"), "--timeout", "0.3")
    assert (done.code, done.stdout) == (124, "begun\n")
    assert done.stderr.startswith(
        "rye: 'tools/says': Command timed out after 0.3 seconds; raise the timeout, or reduce "
        "the work\n"
    )


def test_an_unknown_tool_exits_with_3_and_suggests_a_name(
    project: Project, run: InProcessRye
) -> None:
    says(project, "true")
    done = run("run", "tools/say", "anything=1")
    assert done.code == 3
    assert done.stderr.startswith("rye: ")
    assert done.stderr.endswith("; did you mean tools/says?\n")


def test_an_unsigned_tool_exits_with_4_and_does_not_run(
    project: Project, run: InProcessRye
) -> None:
    path = project.path / ".ai" / "tools" / "mine.yaml"
    path.write_text(
        json.dumps({"executor_id": SUBPROCESS, "config": {"command": "/bin/touch", "args": ["x"]}})
    )
    done = run("run", "mine", "word=x")
    assert done.code == 4
    assert "unsigned" in done.stderr or "not signed" in done.stderr
    assert not (project.path / "x").exists()


def test_a_lock_mismatch_or_missing_lock_exits_with_5(project: Project, run: InProcessRye) -> None:
    tool = says(project, "echo one")
    frozen = run("run", tool, "--frozen")
    assert frozen.code == 5
    assert "rye lock" in frozen.stderr
    assert run("run", tool).code == 0
    assert run("run", tool, "--frozen") == Completed(0, "one\n", "")
    says(project, "echo two")
    assert run("run", tool).code == 5


def test_processes_that_outlive_the_tool_are_reported(project: Project, run: InProcessRye) -> None:
    done = run("run", says(project, "sleep 600 >/dev/null 2>&1 & echo done"))
    assert done == Completed(
        0, "done\n", "rye: 1 background process outlived the tool and was ended\n"
    )


def test_a_tool_that_could_not_be_pinned_is_reported(project: Project, run: InProcessRye) -> None:
    tool = says(project, "echo done")
    (project.path / ".ai" / "lockfiles").write_text("in the way")
    done = run("run", tool)
    assert (done.code, done.stdout) == (0, "done\n")
    assert done.stderr.startswith("rye: the tool ran, but could not be pinned: ")


def test_params_over_the_size_limit_are_refused(
    project: Project, run: InProcessRye, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rye.cli.run.parameters.MAX_BYTES", 10)
    (project.path / "big.json").write_text(" " * 11)
    done = run("run", says(project, "true"), "--params", "@big.json")
    assert done.code == 2
    assert done.stderr.startswith("rye: invalid --params: 'big.json' has more than 10 bytes; ")


# Dry runs


def test_a_dry_run_shows_the_plan_and_runs_nothing(project: Project, run: InProcessRye) -> None:
    says(project, "touch ran; echo $SECRET", env_config={"env": {"SECRET": "s3cret"}})
    done = run("run", "tools/says", "--dry-run")
    assert (done.code, done.stderr) == (0, "")
    assert not (project.path / "ran").exists()
    lines = done.stdout.splitlines()
    assert lines[0] == "would run tools/says:"
    rows = {line[:15].strip(): line[15:] for line in lines[1:]}
    assert shlex.split(rows["command"])[:2] == ["/bin/sh", "-c"]
    assert Path(rows["directory"]) == project.path
    assert "SECRET" in rows["environment"].split()
    assert rows["lock"] == "none yet"
    assert "stdin" not in rows
    assert rows["chain"].startswith("tools/says 1.0.0 (project), signed by ")
    assert rows["chain"].endswith(", trusted")
    assert "s3cret" not in done.stdout


def test_a_dry_run_with_json_prints_the_whole_plan(project: Project, run: InProcessRye) -> None:
    done = run("run", says(project, "true"), "--dry-run", "--json")
    plan = json.loads(done.stdout)["data"]
    assert plan["argv"] == ["/bin/sh", "-c", "true"]
    assert plan["signatures"][0]["standing"] == "trusted"


def test_a_dry_run_of_a_request_shows_the_request(project: Project, run: InProcessRye) -> None:
    project.yaml(
        "tools/get",
        executor_id=HTTP_CLIENT,
        config={"url": "https://example.invalid/x", "method": "POST", "body": {"a": [1]}},
    )
    done = run("run", "tools/get", "--dry-run")
    assert done.code == 0, done.stderr
    rows = done.stdout.partition("  chain ")[0]
    assert [line.split(None, 1) for line in rows.splitlines()[1:]] == [
        ["request", "POST https://example.invalid/x"],
        ["headers", "Content-Type"],
        ["body", '{"a": [1]}'],
        ["lock", "none yet"],
    ]


def test_a_plan_names_the_auth_type_and_the_mode_of_a_request(
    project: Project, run: InProcessRye
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
    assert "  auth         bearer\n" in done.stdout
    assert "  mode         stream\n" in done.stdout
    assert "s3cret" not in done.stdout
