"""Parameters are checked against the schema of the tool before anything runs."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from rye.executor.run.result import ExecutionResult
from rye_project import SUBPROCESS, Project

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "count": {"type": "integer", "minimum": 1, "default": 2},
        "options": {
            "type": "object",
            "properties": {"loud": {"type": "boolean", "default": False}},
        },
    },
    "required": ["name"],
    "additionalProperties": False,
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A tool that prints its parameters, and creates a file when it runs."""
    project = Project(tmp_path)
    project.yaml(
        "tools/show",
        executor_id=SUBPROCESS,
        config_schema=SCHEMA,
        config={
            "command": "/bin/sh",
            "args": [
                "-c",
                'echo > "$1"; printf %s "$2"',
                "sh",
                "{project_path}/ran",
                "{params_json}",
            ],
        },
    )
    return project


def show(project: Project, parameters: Any) -> ExecutionResult:
    return project.run("tools/show", parameters)


def test_the_tool_receives_the_defaults_of_its_schema(project: Project) -> None:
    given = {"name": "x", "options": {}}
    result = show(project, given)
    assert result.success, result.error
    assert result.data == {"name": "x", "count": 2, "options": {"loud": False}}
    assert given == {"name": "x", "options": {}}


def test_all_issues_are_reported_at_once_without_values_and_nothing_runs(project: Project) -> None:
    result = show(project, {"count": 0, "options": "s3cret", "surprise": 1})
    assert not result.success
    assert result.metadata["error_type"] == "ParameterError"
    assert len(result.metadata["issues"]) == 4
    assert result.error is not None
    assert result.error.startswith("invalid parameters for 'tools/show': parameters")
    assert result.error.endswith(f"; follow the schema in {project.path}/.ai/tools/tools/show.yaml")
    assert "s3cret" not in repr(result)
    assert not (project.path / "ran").exists()


def test_none_is_the_same_as_no_parameters(project: Project) -> None:
    assert show(project, None).metadata["issues"] == ["parameters: missing property 'name'"]


@pytest.mark.parametrize("parameters", [["a"], "text", 7, {"name": {1, 2}}, {1: 2}, {"name": b"x"}])
def test_parameters_other_than_a_json_object_are_refused(project: Project, parameters: Any) -> None:
    result = show(project, parameters)
    assert result.metadata["error_type"] == "ParameterError"
    assert not (project.path / "ran").exists()


def test_circular_parameters_are_refused(project: Project) -> None:
    circle: dict[str, Any] = {"name": "x"}
    circle["options"] = circle
    assert show(project, circle).metadata["error_type"] == "ParameterError"


def test_a_tool_without_a_schema_takes_any_object_but_nothing_else(project: Project) -> None:
    project.command("tools/free", "/bin/echo", "{params_json}")
    assert project.run("tools/free", {"a": [1]}).data == {"a": [1]}
    refused = project.run("tools/free", ["a"])  # type: ignore[arg-type] # bad on purpose
    assert refused.metadata["issues"] == ["parameters: expected object, got array"]


def test_an_invalid_schema_is_a_fault_of_the_file(project: Project) -> None:
    tool = project.command("tools/odd", "/bin/true", config_schema={"type": "nonsense"})
    result = project.run("tools/odd")
    assert result.metadata["error_type"] == "ItemFormatError"
    assert result.error is not None
    assert result.error.startswith(f"{tool}: the schema of the parameters: ")


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), "5", True])
def test_a_timeout_must_be_a_positive_number(project: Project, timeout: Any) -> None:
    result = project.run("tools/show", {"name": "x"}, timeout=timeout)
    assert result.error == (
        "invalid call: timeout: expected a positive number; pass seconds, or leave it out"
    )


def test_a_primitive_called_directly_is_checked_against_its_schema(project: Project) -> None:
    project.yaml(
        SUBPROCESS,
        space="system",
        tool_type="primitive",
        executor_id=None,
        config_schema={"type": "object", "required": ["command"]},
    )
    refused = project.run(SUBPROCESS, {"args": ["x"]})
    assert refused.metadata["issues"] == ["parameters: missing property 'command'"]
    ran = project.run(SUBPROCESS, {"command": "/bin/echo", "args": ["{literal}", "${HOME}"]})
    assert ran.success, ran.error
    assert ran.data["stdout"] == "{literal} ${HOME}\n"


def test_a_warm_executor_checks_parameters_against_the_current_schema(
    project: Project,
) -> None:
    def define(kind: str) -> None:
        schema = {"type": "object", "properties": {"n": {"type": kind}}}
        project.yaml(
            "tools/typed",
            executor_id=SUBPROCESS,
            config_schema=schema,
            config={"command": "/bin/true"},
        )

    async def call() -> list[ExecutionResult]:
        async with project.executor() as executor:
            results = []
            for kind in ("integer", "string"):
                define(kind)
                results.append(await executor.execute("tools/typed", {"n": 1}, use_lockfile=False))
            return results

    first, second = asyncio.run(call())
    assert first.success, first.error
    assert second.error is not None
    assert "parameters.n: expected string, got integer" in second.error
