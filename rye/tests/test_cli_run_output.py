"""`rye run`: the output of a tool on a pipe, on a terminal and as JSON."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from loopback_http import LoopbackServer, respond
from rye_command import COMMAND, Completed, InProcessRye, Terminal, without_progress
from rye_project import HTTP_CLIENT, SUBPROCESS, Project, says

SECONDS = 60


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, shipped_system=True)


@pytest.fixture
def run(
    project: Project, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> InProcessRye:
    return InProcessRye(project.path, project.user, monkeypatch, capfd)


def on_terminal(project: Project, *args: str) -> tuple[int, str]:
    with Terminal(*args, cwd=project.path, user=project.user) as terminal:
        code = terminal.finish()
        return code, without_progress(terminal.shown)


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
def test_a_pipe_gets_the_output_unchanged(
    project: Project, run: InProcessRye, script: str, shown: str
) -> None:
    assert run("run", says(project, script)) == Completed(0, shown, "")


@pytest.mark.parametrize("before", ["", "text\n", '"', '{"a":'])
def test_a_file_gets_bytes_that_are_not_text_unchanged(
    project: Project, tmp_path: Path, before: str
) -> None:
    data = before.encode() + bytes(range(256)) * 300 + b"\xf0\x9f\x98"
    (tmp_path / "data").write_bytes(data)
    tool = says(project, f"cat {tmp_path / 'data'}; head -c 300 {tmp_path / 'data'} >&2")
    with (tmp_path / "out").open("wb") as out, (tmp_path / "err").open("wb") as err:
        done = subprocess.run(
            [*COMMAND, "run", tool],
            cwd=project.path,
            env={**os.environ, "HOME": str(project.user), "USER_SPACE": str(project.user)},
            stdout=out,
            stderr=err,
            timeout=SECONDS,
            check=False,
        )
    assert done.returncode == 0
    assert (tmp_path / "out").read_bytes() == data
    assert (tmp_path / "err").read_bytes() == data[:300]


def test_where_returned_pictures_and_files_are_is_printed(
    project: Project, run: InProcessRye, tmp_path: Path
) -> None:
    blocks = [
        {"type": "text", "text": "Here:"},
        {"type": "image", "path": "plot.png"},
        {"type": "file", "path": str(tmp_path / "notes.txt")},
    ]
    answer = json.dumps({"content": blocks})
    tool = says(project, f"echo '{answer}'")
    notes = f"rye: image: plot.png\nrye: file: {tmp_path}/notes.txt\n"
    assert run("run", tool) == Completed(0, f"{answer}\n", notes)
    assert run("run", "-q", tool).stderr == ""


def test_pictures_in_base64_are_saved(
    project: Project, run: InProcessRye, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    image = {"type": "image", "mimeType": "image/png"}
    blocks = [{**image, "data": "aGk="}, {**image, "data": "no base64"}]
    tool = says(project, f"echo '{json.dumps({'content': blocks})}'")
    (saved,) = run("run", tool).stderr.splitlines()
    path = Path(saved.removeprefix("rye: image: "))
    assert (path.parent.parent, path.name, path.read_bytes()) == (tmp_path, "image-1.png", b"hi")
    assert path.parent.stat().st_mode & 0o77 == 0
    run("run", "-q", tool)
    assert len(list(tmp_path.glob("rye-*"))) == 1


def test_large_output_is_complete(project: Project, run: InProcessRye) -> None:
    done = run("run", says(project, "seq 1 200000"))
    assert done.stdout == "".join(f"{n}\n" for n in range(1, 200001))


def test_json_on_a_terminal_is_indented_and_ends_in_a_newline(project: Project) -> None:
    tool = says(project, 'echo \'{"a": [1], "b": "\\u009b31m"}\'; printf aside >&2')
    code, shown = on_terminal(project, "run", tool)
    assert code == 0
    assert shown == 'aside{\n  "a": [\n    1\n  ],\n  "b": "\\u009b31m"\n}\n'


def test_a_terminal_gets_lines_as_they_arrive(project: Project, tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    says(project, f"echo '[INFO] begun'; read _ < {go}; printf 'no end'")
    with Terminal("run", "tools/says", cwd=project.path, user=project.user) as terminal:
        terminal.wait_for("[INFO] begun\n")
        go.write_text("\n")
        assert terminal.finish() == 0
        assert without_progress(terminal.shown) == "[INFO] begun\nno end\n"


def test_a_pipe_gets_lines_that_begin_with_a_quote_as_they_arrive(
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


def test_the_running_time_of_a_silent_tool_is_shown(project: Project, tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    says(project, f"read _ < {go}; echo spoken")
    with Terminal("run", "tools/says", cwd=project.path, user=project.user) as terminal:
        terminal.wait_for("running tools/says … 1 s")
        go.write_text("\n")
        assert terminal.finish() == 0
        # The line is removed before the tool's first output.
        assert terminal.shown.endswith("s\r\x1b[2Kspoken\n")


def test_the_body_of_a_response_is_shown(project: Project, run: InProcessRye) -> None:
    with LoopbackServer() as server:
        project.yaml(
            "tools/json",
            executor_id=HTTP_CLIENT,
            config={"url": server.on("/json", respond(json={"id": 7}))},
        )
        project.yaml(
            "tools/missing",
            executor_id=HTTP_CLIENT,
            config={"url": server.on("/missing", respond(404, json={"why": "missing"}))},
        )
        assert run("run", "tools/json") == Completed(0, '{"id": 7}\n', "")
        missing = run("run", "tools/missing")
    assert (missing.code, missing.stdout) == (1, '{"why": "missing"}\n')
    assert missing.stderr.startswith("rye: 'tools/missing': HTTP 404")


def test_json_prints_only_the_result(project: Project, run: InProcessRye) -> None:
    done = run("run", says(project, "echo out; echo aside >&2; exit 7"), "--json")
    assert (done.code, done.stderr) == (7, "")
    result = json.loads(done.stdout)
    assert list(result) == ["success", "data", "error", "duration_ms", "chain", "metadata"]
    assert result["success"] is False
    assert result["data"] == {"stdout": "out\n", "stderr": "aside\n", "return_code": 7}
    assert result["error"] == "'tools/says' ended with exit code 7: aside"
    assert [one["item_id"] for one in result["chain"]] == ["tools/says", SUBPROCESS]
    assert result["metadata"]["error_type"] == "ToolFailed"
