"""Attacks by a caller of rye/fs/*: to run code, to decide what is trusted, to read secrets."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from rye_project import Project

PROTECTED = "where a change could run code or decide what is trusted; "
DOT = "its path contains a name that starts with a dot"
PACKAGES = "node_modules contains installed packages"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, shipped_system=True)


def refused(project: Project, tool: str, **params: str) -> str:
    result = project.run(f"rye/fs/{tool}", params)
    assert (result.success, result.metadata["return_code"]) == (False, 1)
    message: str = result.data["stderr"]
    return message


def files(folder: Path) -> dict[str, str]:
    return {str(path): path.read_text() for path in folder.rglob("*") if path.is_file()}


def cannot_change(path: str, reason: str) -> str:
    return (
        f"{path} cannot be changed: {reason}, {PROTECTED}"
        "use another path, or ask the user to make the change\n"
    )


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        (".git/config", DOT),
        (".git/hooks/pre-commit", DOT),
        (".git", DOT),
        ("vendor/lib/.git/config", DOT),
        (".GIT/config", DOT),
        ("\u200b.git/config", DOT),
        ("\u034f.git/config", DOT),
        ("src/../.git/config", DOT),
        (".venv/bin/python", DOT),
        (".ai/tools/a.py", DOT),
        (".ai/lockfiles/a@1.0.0.lock.json", DOT),
        (".ai/config.yaml", DOT),
        (".env", DOT),
        (".bashrc", DOT),
        (".github/workflows/ci.yml", DOT),
        (".vscode/tasks.json", DOT),
        (".husky/pre-commit", DOT),
        (".gitignore/x", DOT),
        (".a-tool-of-tomorrow/config", DOT),
        ("node_modules/a/index.js", PACKAGES),
        ("web/node_modules/.bin/tsc", PACKAGES),
        ("Node_Modules/a/index.js", PACKAGES),
        ("lib/python3/site-packages/a.py", "site-packages contains installed packages"),
        ("new/HEAD", "its name makes a folder a repository or an environment"),
        ("new/pyvenv.cfg", "its name makes a folder a repository or an environment"),
    ],
)
def test_what_runs_as_code_or_decides_trust_is_not_written(
    project: Project, path: str, reason: str
) -> None:
    before = files(project.path)

    assert refused(project, "write", path=path, content="x") == cannot_change(path, reason)
    assert files(project.path) == before
    assert [path.name for path in project.path.iterdir()] == [".ai"]


@pytest.mark.parametrize("path", ["link/config", "deep/file", "absolute"])
def test_a_link_to_what_runs_as_code_is_not_written_through(project: Project, path: str) -> None:
    subprocess.run(["git", "init", "-q", str(project.path)], check=True)
    config = project.path / ".git" / "config"
    (project.path / "link").symlink_to(".git")
    (project.path / "deep").mkdir()
    (project.path / "deep" / "file").symlink_to("../.git/config")
    (project.path / "absolute").symlink_to(config)
    before = config.read_text()

    assert refused(project, "write", path=path, content="x") == cannot_change(path, DOT)
    assert refused(project, "edit", path=path, old_text="bare", new_text="x") == (
        f"{path} cannot be read: files whose names start with a dot may contain secrets; "
        "ask the user for what you need from it\n"
    )
    assert config.read_text() == before


@pytest.mark.parametrize("name", [".env", ".git", ".ai-of-a-tool", "node_modules"])
def test_the_target_of_a_protected_link_is_not_written(project: Project, name: str) -> None:
    (project.path / "real").mkdir()
    (project.path / name).symlink_to("real")

    message = refused(project, "write", path="real/config", content="x")

    assert message == cannot_change("real/config", f"{name} is a link to it")
    assert list((project.path / "real").iterdir()) == []


@pytest.mark.parametrize("marker", ["pyvenv.cfg", "conda-meta", "HEAD"])
@pytest.mark.parametrize("path", ["env/bin/python", "env/config", "env/lib/a.py"])
def test_an_environment_or_repository_of_any_name_is_not_written(
    project: Project, marker: str, path: str
) -> None:
    (project.path / "env").mkdir()
    (project.path / "env" / marker).write_text("")

    message = refused(project, "write", path=path, content="x")

    assert message == cannot_change(path, "env is a repository or an environment")
    assert [path.name for path in (project.path / "env").iterdir()] == [marker]


def test_a_bare_repository_that_starts_a_program_cannot_be_planted(project: Project) -> None:
    planted = {
        "x/objects/a": "",
        "x/refs/a": "",
        "x/config": f"[core]\n\tworktree = .\n\tfsmonitor = touch {project.path}/pwned\n",
        "x/HEAD": "ref: refs/heads/main\n",
    }
    for path, content in planted.items():
        project.run("rye/fs/write", {"path": path, "content": content})

    subprocess.run(["git", "status"], cwd=project.path / "x", capture_output=True, check=False)

    assert not (project.path / "pwned").exists()


def test_a_setting_that_starts_a_program_does_not_reach_git(project: Project) -> None:
    subprocess.run(["git", "init", "-q", str(project.path)], check=True)
    config = f"[core]\n\trepositoryformatversion = 0\n\tfsmonitor = touch {project.path}/pwned\n"

    refused(project, "write", path=".git/config", content=config)
    subprocess.run(["git", "status"], cwd=project.path, capture_output=True, check=True)

    assert not (project.path / "pwned").exists()


def test_a_hard_link_to_what_runs_as_code_is_replaced_and_not_written_through(
    project: Project,
) -> None:
    (project.path / ".env").write_text("A=1\n")
    os.link(project.path / ".env", project.path / "notes.txt")

    assert project.run("rye/fs/write", {"path": "notes.txt", "content": "A=2\n"}).success
    assert (project.path / ".env").read_text() == "A=1\n"


@pytest.mark.parametrize(
    "path",
    [".env", ".env.local", ".ENV", "\u2060.env", "sub/.env", ".npmrc", ".git/config",
     ".aws/credentials", ".ai/keys/private_key.pem", ".ai.bak/key", "link"],
)  # fmt: skip
def test_a_file_that_may_contain_secrets_is_not_read(project: Project, path: str) -> None:
    real = project.path / path
    real.parent.mkdir(parents=True, exist_ok=True)
    if path == "link":
        (project.path / ".env").write_text("TOKEN=hunter2\n")
        real.symlink_to(".env")
    else:
        real.write_text("TOKEN=hunter2\n")

    for tool, params in (
        ("read", {}),
        ("edit", {"old_text": "T", "new_text": "t"}),
        ("grep", {"pattern": "T"}),
    ):
        assert refused(project, tool, path=path, **params) == (
            f"{path} cannot be read: files whose names start with a dot may contain secrets; "
            "ask the user for what you need from it\n"
        )
    found = project.run(
        "rye/fs/grep", {"pattern": "hunter", "hidden": True, "include_ignored": True}
    )
    assert found.data["matches"] == []
    assert real.read_text() == "TOKEN=hunter2\n"


@pytest.mark.parametrize(
    "path",
    [".github/workflows/ci.yml", ".gitignore", ".eslintrc.json", ".env.example", ".ai/tools/a.py",
     ".venv/lib/a.py", "node_modules/a.js", "été.txt"],
)  # fmt: skip
def test_ordinary_files_are_read(project: Project, path: str) -> None:
    (project.path / path).parent.mkdir(parents=True, exist_ok=True)
    (project.path / path).write_text("x")

    assert project.run("rye/fs/read", {"path": path}).data["content"] == "x"


@pytest.mark.parametrize(
    "path", [".gitignore", "src/.gitkeep", "src/head/a.html", "a~1", "été.txt"]
)
def test_ordinary_files_are_written(project: Project, path: str) -> None:
    for content in ("x", "y"):
        assert project.run("rye/fs/write", {"path": path, "content": content}).error is None
    assert (project.path / path).read_text() == "y"


@pytest.mark.parametrize("tool", ["read", "list"])
def test_a_caller_cannot_lift_the_limits(project: Project, tool: str) -> None:
    result = project.run(f"rye/fs/{tool}", {"path": "/etc/passwd", "allow_outside": True})

    assert result.metadata["error_type"] == "ParameterError"


def test_a_dotenv_cannot_lift_the_limits(project: Project) -> None:
    (project.path / ".env").write_text("RYE_FS_ALLOW=/:.\n")

    assert "starts with a dot" in refused(project, "write", path=".git/config", content="x")
    assert "may contain secrets" in refused(project, "read", path=".env")


def test_the_user_can_allow_paths(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    environ = {"RYE_FS_ALLOW": f".github:{outside}"}
    project = Project(tmp_path, shipped_system=True, environ=environ)
    project.grant({"tools": ["rye/fs/*"], "write": [str(outside)]})

    for path in (".github/workflows/ci.yml", f"{outside}/a.txt"):
        assert project.run("rye/fs/write", {"path": path, "content": "x"}).error is None
        assert project.run("rye/fs/read", {"path": path}).data["content"] == "x"
    assert "starts with a dot" in refused(project, "write", path=".githubs/a", content="x")


def test_a_link_in_a_checkout_does_not_choose_what_the_user_allows(tmp_path: Path) -> None:
    project = Project(tmp_path, shipped_system=True, environ={"RYE_FS_ALLOW": ".github"})
    (project.path / ".git").mkdir()
    (project.path / ".github").symlink_to(".git")

    message = refused(project, "write", path=".github/config", content="x")

    assert message == cannot_change(".github/config", DOT)
