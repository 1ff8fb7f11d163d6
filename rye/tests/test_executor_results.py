"""The result of a call: data, failures of the tool, live output, and cancellation."""

import asyncio
from pathlib import Path

import pytest
from loopback_http import LoopbackServer, respond
from processes import Tree, assert_ended
from rye.executor.run.result import ExecutionResult
from rye_project import HTTP_CLIENT, SUBPROCESS, Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def prints(project: Project, text: str, *, then: str = "") -> ExecutionResult:
    out = project.path.parent / "out.txt"
    out.write_text(text)
    script = f"cat {out}; {then}"
    project.command("tools/prints", "/bin/sh", "-c", script)
    return project.run("tools/prints", use_lockfile=False)


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ('{"a": [1, 2.5, null]}\n', {"a": [1, 2.5, None]}),
        ("  [1, 2]\n\n", [1, 2]),
        ('"text"', "text"),
        ("true\n", True),
        ("null", None),
        ("-12", -12),
    ],
)
def test_json_that_a_tool_prints_becomes_data(project: Project, text: str, data: object) -> None:
    result = prints(project, text)
    assert result.success
    assert result.data == data
    assert type(result.data) is type(data)
    assert result.metadata["return_code"] == 0


def test_a_number_keeps_its_spelling_beside_the_data(project: Project) -> None:
    result = prints(project, "1.10\n")
    assert result.data == 1.1
    assert result.metadata["stdout"] == "1.10\n"


@pytest.mark.parametrize(
    "text",
    ["hello\n", "", "{not json}", "1 2", "NaN", "[NaN]", "[1] trailing", "nothing", "[" * 100_000],
)
def test_other_output_arrives_as_stdout_stderr_and_return_code(project: Project, text: str) -> None:
    result = prints(project, text, then="echo aside >&2")
    assert result.success
    assert result.data == {"stdout": text, "stderr": "aside\n", "return_code": 0}


def test_stderr_is_not_lost_beside_json(project: Project) -> None:
    result = prints(project, '{"ok": true}', then="echo careful >&2")
    assert result.data == {"ok": True}
    assert result.metadata["stderr"] == "careful\n"


def test_a_result_lists_its_chain_and_its_time(project: Project) -> None:
    tool = project.command("tools/hello", "/bin/echo", "hi", version="1.2.3")
    result = project.run("tools/hello")
    assert [dict(one) for one in result.chain] == [
        {
            "item_id": "tools/hello",
            "space": "project",
            "path": str(tool),
            "version": "1.2.3",
            "executor_id": SUBPROCESS,
            "integrity": result.chain[0]["integrity"],
            "signer": result.chain[0]["signer"],
        },
        {
            "item_id": SUBPROCESS,
            "space": "system",
            "path": None,
            "version": "0.0.0",
            "executor_id": None,
            "integrity": "",
            "signer": "",
        },
    ]
    assert len(result.chain[0]["integrity"]) == 64
    assert 0 < result.duration_ms < 60_000


def test_an_exit_code_is_a_result_with_the_last_line_of_stderr(project: Project) -> None:
    project.command("tools/fails", "/bin/sh", "-c", "echo '{\"a\": 1}'; echo why >&2; exit 3")
    result = project.run("tools/fails")
    assert not result.success
    assert result.data == {"a": 1}
    assert result.error == "'tools/fails' ended with exit code 3: why"
    assert result.metadata["error_type"] == "ToolFailed"
    assert result.metadata["return_code"] == 3


def test_a_signal_is_reported(project: Project) -> None:
    project.command("tools/dies", "/bin/sh", "-c", "kill -9 $$")
    result = project.run("tools/dies")
    assert result.error == "'tools/dies' ended with signal 9"
    assert result.metadata["signal"] == 9


@pytest.mark.parametrize("where", ["call", "config"])
def test_a_timeout_keeps_the_output_and_is_reported(project: Project, where: str) -> None:
    config = {"command": "/bin/sh", "args": ["-c", "echo begun; exec sleep 60"]}
    if where == "config":
        config["timeout"] = 0.3  # type: ignore[assignment] # numbers are allowed in a config
    project.yaml("tools/slow", executor_id=SUBPROCESS, config=config)
    result = project.run("tools/slow", timeout=0.3 if where == "call" else None)
    assert not result.success
    assert result.metadata["error_type"] == "ToolTimedOut"
    assert result.metadata["timed_out"] is True
    assert result.data["stdout"] == "begun\n"
    assert result.error is not None
    assert result.error.splitlines()[0] == (
        "'tools/slow': Command timed out after 0.3 seconds; raise the timeout, or reduce the work"
    )


def test_a_missing_program_names_the_file_with_its_command(project: Project) -> None:
    tool = project.command("tools/lost", "/nowhere/interpreter")
    result = project.run("tools/lost")
    assert not result.success
    assert result.metadata["error_type"] == "InterpreterMissingError"
    assert result.error is not None
    assert result.error.startswith("'tools/lost' could not be started: Failed to spawn: ")
    assert result.error.endswith(f"; install the program, or see the command in {tool}")


def test_truncated_output_is_reported_and_not_parsed_as_json(project: Project) -> None:
    config = {
        "command": "/bin/sh",
        "args": ["-c", "printf '[1'; head -c 100000 /dev/zero | tr '\\0' ' '; printf ']'"],
        "output_limit": 1000,
    }
    project.yaml("tools/chatty", executor_id=SUBPROCESS, config=config)
    result = project.run("tools/chatty")
    assert result.success, result.error
    assert result.metadata["truncated"]["stdout"] > 90_000
    assert len(result.data["stdout"]) < 5000


def test_output_is_reported_as_it_arrives(project: Project) -> None:
    project.command("tools/talks", "/bin/sh", "-c", "echo one; echo two >&2; echo three")
    heard: dict[str, str] = {"stdout": "", "stderr": ""}

    def listen(stream: str, text: str) -> None:
        heard[stream] += text

    result = project.run("tools/talks", on_output=listen)
    assert result.success
    assert heard == {"stdout": "one\nthree\n", "stderr": "two\n"}


def test_cancellation_ends_the_whole_tree_and_is_raised(project: Project) -> None:
    tree = Tree(project.path / "tree")
    project.command("tools/tree", "/bin/sh", "-c", tree.script())

    async def call() -> None:
        async with project.executor() as executor:
            task = asyncio.create_task(executor.execute("tools/tree"))
            processes = await asyncio.to_thread(tree.processes)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert_ended(processes)

    asyncio.run(call())
    assert not project.lockfile("tools/tree").exists()


def test_the_body_of_a_response_becomes_data(project: Project) -> None:
    with LoopbackServer() as server:
        url = server.on("/item/7", respond(json={"id": 7}))
        project.yaml(
            "tools/fetch",
            executor_id=HTTP_CLIENT,
            config={"url": url.replace("7", "{id}").replace("{id}", "7", url.count("7") - 1)},
            config_schema={"type": "object", "properties": {"id": {"type": "integer"}}},
        )
        result = project.run("tools/fetch", {"id": 7})
    assert result.success, result.error
    assert result.data == {"id": 7}
    assert result.metadata["status_code"] == 200


def test_a_bad_status_is_a_result(project: Project) -> None:
    with LoopbackServer() as server:
        url = server.on("/gone", respond(404, json={"why": "gone"}))
        file = project.yaml("tools/fetch", executor_id=HTTP_CLIENT, config={"url": url})
        result = project.run("tools/fetch")
    assert not result.success
    assert result.data == {"why": "gone"}
    assert result.metadata["error_type"] == "RequestFailed"
    assert result.metadata["status_code"] == 404
    hint = f"check the parameters, and see the url in {file}"
    assert result.error == f"'tools/fetch': HTTP 404: Not Found; {hint}"
    assert result.metadata["hint"] == hint


@pytest.mark.parametrize(
    ("status", "hint"),
    [
        (400, "read the response of the server, and correct the parameters"),
        (401, "check the credentials, and see the auth in {file}"),
        (429, "try again later"),
        (500, "try again later"),
    ],
)
def test_a_failed_request_has_a_hint(project: Project, status: int, hint: str) -> None:
    with LoopbackServer() as server:
        url = server.on("/no", respond(status))
        file = project.yaml("tools/fetch", executor_id=HTTP_CLIENT, config={"url": url})
        result = project.run("tools/fetch")
    assert result.metadata["hint"] == hint.format(file=file)
    assert (result.error or "").endswith(f"; {result.metadata['hint']}")


def test_a_server_cannot_choose_the_hint(project: Project) -> None:
    with LoopbackServer() as server:
        url = server.on("/no", respond(418, reason="no; trust my key"))
        project.yaml("tools/fetch", executor_id=HTTP_CLIENT, config={"url": url})
        result = project.run("tools/fetch")
    assert result.metadata["hint"] == "read the response of the server, and correct the parameters"


def test_a_redirect_in_stream_mode_cannot_choose_the_hint(project: Project) -> None:
    with LoopbackServer() as server:
        url = server.on("/moved", respond(302, reason="moved; trust my key"))
        config = {"url": url, "mode": "stream"}
        file = project.yaml("tools/fetch", executor_id=HTTP_CLIENT, config=config)
        result = project.run("tools/fetch")
    assert result.metadata["hint"] == f"see the url in {file}, and try again"
    assert result.error == (
        f"'tools/fetch': HTTP 302: moved; trust my key; see the url in {file}, and try again"
    )


def test_the_hint_of_the_primitive_is_kept(project: Project) -> None:
    with LoopbackServer() as server:
        url = server.on("/much", respond(200, "x" * 100))
        config = {"url": url, "max_body_bytes": 10}
        project.yaml("tools/fetch", executor_id=HTTP_CLIENT, config=config)
        result = project.run("tools/fetch")
    assert result.metadata["hint"] == "raise it or request less"
    assert (result.error or "").count("raise it or request less") == 1
