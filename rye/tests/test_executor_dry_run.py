"""The plan of a dry run: everything that would run, and nothing secret."""

import json
from pathlib import Path
from typing import Any

import pytest
from rye_project import HTTP_CLIENT, SUBPROCESS, Project

SECRET = "s3cr3t-value-9f2"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path, environ={"API_TOKEN": SECRET})
    (project.path / ".env").write_text(f"OTHER_TOKEN={SECRET}-too\n")
    project.yaml(
        "runtimes/shell",
        executor_id=SUBPROCESS,
        space="system",
        env_config={
            "interpreter": {"type": "system_binary", "binary": "sh", "var": "MY_SH"},
            "env": {"MODE": "quiet"},
        },
        config={"command": "${MY_SH}", "timeout": 7},
    )
    project.yaml(
        "tools/call",
        executor_id="runtimes/shell",
        config={
            "args": ["-c", 'echo > ran; echo "$1" "$2"', "sh", "--token=${API_TOKEN}", "{word}"],
            "cwd": "{project_path}",
            "input_data": "{params_json}",
        },
        permissions={"env": ["OTHER_TOKEN"]},
    )
    return project


def plan_of(project: Project, item_id: str, parameters: Any = None) -> dict[str, Any]:
    result = project.run(item_id, parameters, dry_run=True)
    assert result.success, result.error
    assert result.metadata["plan"] == result.data
    assert SECRET not in repr(result)
    plan: dict[str, Any] = json.loads(json.dumps(result.data))
    return plan


def test_a_plan_shows_the_final_argv_without_values_of_the_environment(project: Project) -> None:
    plan = plan_of(project, "tools/call", {"word": "hello"})
    assert Path(plan["argv"][0]).name == "sh"
    assert Path(plan["argv"][0]).is_absolute()
    assert plan["argv"][-2:] == ["--token=${API_TOKEN}", "hello"]
    assert plan["cwd"] == str(project.path)
    assert plan["timeout"] == 7
    assert plan["stdin_bytes"] == len('{"word":"hello"}')
    assert plan["primitive"] == SUBPROCESS
    assert not (project.path / "ran").exists()


def test_a_value_that_the_plan_hides_is_passed_to_the_run(project: Project) -> None:
    result = project.run("tools/call", {"word": "hello"})
    assert result.data["stdout"] == f"--token={SECRET} hello\n"


def test_a_plan_names_the_environment(project: Project) -> None:
    names = plan_of(project, "tools/call")["environment"]
    assert {"OTHER_TOKEN", "MODE", "MY_SH", "PATH"} <= set(names)
    assert "API_TOKEN" not in names
    assert names == sorted(names)


def test_a_plan_lists_chain_signatures_and_lock(project: Project) -> None:
    plan = plan_of(project, "tools/call")
    assert [one["item_id"] for one in plan["chain"]] == ["tools/call", "runtimes/shell", SUBPROCESS]
    assert [one["item_id"] for one in plan["signatures"]] == ["tools/call", "runtimes/shell"]
    assert {one["standing"] for one in plan["signatures"]} == {"trusted"}
    assert plan["lock"] == {"state": "absent", "path": None}
    project.run("tools/call", {"word": "x"})
    path = str(project.lockfile("tools/call"))
    assert plan_of(project, "tools/call")["lock"] == {"state": "verified", "path": path}
    off = project.run("tools/call", dry_run=True, use_lockfile=False).data
    assert off["lock"] == {"state": "not used", "path": None}


def test_a_dry_run_is_refused_where_the_run_would_be(project: Project) -> None:
    project.run("tools/call", {"word": "x"})
    project.yaml("tools/call", executor_id="runtimes/shell", config={"args": []})
    result = project.run("tools/call", dry_run=True)
    assert result.metadata["error_type"] == "LockUpgradeError"


def test_the_plan_of_a_request_shows_no_credentials(project: Project) -> None:
    project.yaml(
        "tools/fetch",
        executor_id=HTTP_CLIENT,
        config={
            "method": "POST",
            "url": "https://api.example.org/items?key=${API_TOKEN}",
            "headers": {"X-Token": "${API_TOKEN}", "Accept": "text/plain"},
            "auth": {"type": "bearer", "token": "${API_TOKEN}"},
            "body": {"text": "{text}"},
        },
    )
    plan = plan_of(project, "tools/fetch", {"text": "hi"})
    request = plan["request"]
    assert request["method"] == "POST"
    assert request["url"].startswith("https://api.example.org/items?key=")
    assert request["header_names"] == ["Accept", "Authorization", "Content-Type", "X-Token"]
    assert request["auth"] == "bearer"
