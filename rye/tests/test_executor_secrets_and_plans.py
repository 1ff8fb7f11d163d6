"""Plans match the run, messages contain no secrets, and hints fit the failure."""

import json
from pathlib import Path
from typing import Any

import pytest
from rye_project import HTTP_CLIENT, SUBPROCESS, Project

SECRET = "s3cr3t-value-9f2"
ENVIRON = {"TOKEN": SECRET, "SECONDS_TO_WAIT": "5", "FOLDER": "/tmp", "MY_SHELL": "/bin/sh"}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, environ=ENVIRON)


def planned(project: Project, item_id: str, parameters: Any = None) -> dict[str, Any]:
    result = project.run(item_id, parameters, dry_run=True)
    assert result.success, result.error
    assert SECRET not in repr(result)
    plan: dict[str, Any] = json.loads(json.dumps(result.data))
    return plan


def test_a_plan_succeeds_where_the_run_succeeds(project: Project) -> None:
    config = {"command": "/bin/pwd", "timeout": "${SECONDS_TO_WAIT}", "cwd": "${FOLDER}"}
    project.yaml("tools/timed", executor_id=SUBPROCESS, config=config)
    plan = planned(project, "tools/timed")
    assert plan["timeout"] == 5
    assert plan["cwd"] == "${FOLDER}"
    assert project.run("tools/timed").data["stdout"] == "/tmp\n"


def test_a_plan_shows_the_script_of_a_shell_that_a_variable_names(project: Project) -> None:
    config = {"command": "${MY_SHELL}", "args": ["-c", 'echo "$1" ${TOKEN}', "sh", "{word}"]}
    project.yaml("tools/shell", executor_id=SUBPROCESS, config=config)
    plan = planned(project, "tools/shell", {"word": "$(id)"})
    assert plan["argv"] == ["/bin/sh", "-c", 'echo "$1" ${TOKEN}', "sh", "$(id)"]


def test_the_plan_of_a_request_shows_the_request(project: Project) -> None:
    project.yaml(
        "tools/post",
        executor_id=HTTP_CLIENT,
        config={
            "method": "post",
            "url": "https://me:pw@api.example.org/{id}?key=${TOKEN}",
            "body": {"id": "{id}", "token": "${TOKEN}"},
            "timeout": "${SECONDS_TO_WAIT}",
        },
    )
    plan = planned(project, "tools/post", {"id": "a b"})
    assert plan["timeout"] == 5
    assert plan["request"] == {
        "method": "POST",
        "url": "https://…@api.example.org/a%20b?key=${TOKEN}",
        "header_names": ["Authorization", "Content-Type"],
        "auth": None,
        "body": {"id": "a b", "token": "${TOKEN}"},
        "mode": "sync",
    }


def test_the_plan_of_a_direct_request_shows_the_request(project: Project) -> None:
    asked = {"url": "http://127.0.0.1:9/{x}", "method": "POST", "body": '{"a": 1}'}
    request = planned(project, HTTP_CLIENT, asked)["request"]
    assert request["url"] == "http://127.0.0.1:9/{x}"
    assert request["body"] == '{"a": 1}'


def test_a_request_that_could_not_be_sent_has_no_plan(project: Project) -> None:
    config = {"url": "ftp://example.org/", "method": "GET"}
    tool = project.yaml("tools/ftp", executor_id=HTTP_CLIENT, config=config)
    result = project.run("tools/ftp", dry_run=True)
    assert result.metadata["error_type"] == "ConfigTemplateError"
    assert result.error == (
        f"{tool}: 'tools/ftp': url: must begin with http:// or https:// and a host; "
        "a {param} for that part has to be the whole url"
    )


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_chain_without_a_command_has_no_run_and_no_plan(project: Project, dry_run: bool) -> None:
    tool = project.yaml("tools/empty", executor_id=SUBPROCESS, config={"args": ["a"]})
    result = project.run("tools/empty", dry_run=dry_run)
    assert not result.success
    assert result.metadata["error_type"] == "ConfigTemplateError"
    assert result.error == (
        f"{tool}: 'tools/empty': config.command: no command is specified; name the program"
    )


@pytest.mark.parametrize(
    ("config", "shown"),
    [
        ({"command": "${TOKEN}/bin"}, "${TOKEN}/bin"),
        ({"command": "/bin/true", "cwd": "/x/${TOKEN}"}, "/x/${TOKEN}"),
    ],
)
def test_a_secret_in_a_command_that_does_not_start_is_not_repeated(
    project: Project, config: dict[str, str], shown: str
) -> None:
    project.yaml("tools/leaks", executor_id=SUBPROCESS, config=config)
    result = project.run("tools/leaks")
    assert not result.success
    assert SECRET not in repr(result)
    assert shown in result.data["stderr"]
    assert result.error is not None
    assert shown in result.error


def test_a_secret_in_the_paths_of_an_anchor_is_not_repeated(project: Project) -> None:
    tool = project.yaml(
        "tools/anchored",
        executor_id=SUBPROCESS,
        anchor={"mode": "always", "env_paths": {"X": {"prepend": ["${TOKEN}:a"]}}},
        config={"command": "/bin/true"},
    )
    result = project.run("tools/anchored")
    assert SECRET not in repr(result)
    assert result.error == (
        f"{tool}: anchor.env_paths.X: the path '${{TOKEN}}:a' contains ':', which separates paths; "
        "move the folder to a path without it"
    )


def test_a_missing_folder_is_not_reported_as_a_missing_program(project: Project) -> None:
    config = {"command": "/bin/true", "cwd": "nowhere"}
    tool = project.yaml("tools/homeless", executor_id=SUBPROCESS, config=config)
    result = project.run("tools/homeless")
    assert result.metadata["error_type"] == "ToolNotStarted"
    assert result.metadata["hint"] == f"create the folder, or see the cwd in {tool}"


@pytest.mark.parametrize("timeout", [1e30, 10**400, 10**18])
def test_a_timeout_above_the_maximum_is_refused(project: Project, timeout: float) -> None:
    project.command("tools/quick", "/bin/true")
    result = project.run("tools/quick", timeout=timeout)
    assert result.metadata["error_type"] == "ParameterError"
    assert result.error == (
        "invalid call: timeout: expected at most 31622400; pass seconds, or leave it out"
    )


@pytest.mark.parametrize(
    ("timeout", "problem"),
    [
        ([1], "is not a number of seconds"),
        (True, "is not a number of seconds"),
        (1e30, "must be above 0 and at most 31622400"),
        ("inf", "must be above 0 and at most 31622400"),
        (0, "must be above 0 and at most 31622400"),
    ],
)
def test_a_timeout_that_is_not_a_number_is_reported_with_its_file(
    project: Project, timeout: Any, problem: str
) -> None:
    config = {"command": "/bin/true", "timeout": timeout}
    tool = project.yaml("tools/odd", executor_id=SUBPROCESS, config=config)
    assert project.run("tools/odd").error == (
        f"{tool}: 'tools/odd': config.timeout: {problem}; write for example 30"
    )


def test_the_longest_timeout_is_accepted(project: Project) -> None:
    project.command("tools/quick", "/bin/true")
    assert project.run("tools/quick", timeout=31622400).success


@pytest.mark.parametrize("name", ["runtime_lib", "__anchor_cwd"])
def test_a_caller_cannot_replace_an_injected_name(project: Project, name: str) -> None:
    config = {"command": "/bin/echo", "args": [f"{{{name}}}/x"]}
    tool = project.yaml("tools/needs", executor_id=SUBPROCESS, config=config)
    result = project.run("tools/needs", {name: "/evil"})
    assert not result.success
    assert result.error == (
        f"{tool}: 'tools/needs': config.args[0]: {{{name}}} has no value in this chain; "
        "declare the anchor or library that sets it, or remove the placeholder"
    )


@pytest.mark.parametrize("text", ["1e999", '{"a": [-1e999]}', '"\\ud800"', '{"\\udfff": 1}'])
def test_output_that_cannot_be_encoded_as_json_stays_text(project: Project, text: str) -> None:
    project.command("tools/prints", "/bin/echo", text)
    assert project.run("tools/prints").data["stdout"] == f"{text}\n"


def test_a_whole_surrogate_pair_is_json(project: Project) -> None:
    project.command("tools/prints", "/bin/echo", '"\\ud83d\\ude00"')
    assert project.run("tools/prints").data == "😀"


def test_every_failure_has_a_separate_hint(project: Project) -> None:
    project.yaml(
        "tools/schema",
        executor_id=SUBPROCESS,
        config={"command": "/bin/true"},
        config_schema={"type": 5},
    )
    assert project.run("tools/schema").metadata["hint"] == "correct the schema"
    project.command("tools/locked", "/bin/true")
    project.run("tools/locked")
    project.lockfile("tools/locked").write_text("{")
    assert project.run("tools/locked").metadata["hint"] == (
        "restore it, or delete it and lock the tool again"
    )
    for folder in ("a", "b"):
        project.command(f"{folder}/twin", "/bin/true")
    project.yaml("tools/unsure", executor_id="twin")
    unsure = project.run("tools/unsure")
    assert unsure.metadata["error_type"] == "AmbiguousIdError"
    assert unsure.metadata["hint"]
    assert unsure.error is not None
    assert unsure.error.endswith(f"; {unsure.metadata['hint']}")
