"""rye/git/git on real repositories."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from rye_project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    identity = {
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.org",
    }  # fmt: skip
    project = Project(tmp_path, shipped_system=True, environ=identity)
    subprocess.run(["git", "init", "-q", "-b", "main", str(project.path)], check=True)
    return project


def git(project: Project, command: str, *args: str, paths: tuple[str, ...] = ()) -> str:
    result = project.run(
        "rye/git/git", {"command": command, "args": list(args), "paths": list(paths)}
    )
    assert result.error is None
    output: str = result.data["stdout"]
    return output


def test_add_commit_log_status_and_diff(project: Project) -> None:
    (project.path / "a.txt").write_text("one\n")

    git(project, "add", paths=("a.txt",))
    git(project, "commit", "-q", "-m", "it's $(id) {command}")

    assert git(project, "log", "--format=%s") == "it's $(id) {command}\n"
    (project.path / "a.txt").write_text("two\n")
    assert git(project, "status", "--porcelain", paths=("a.txt",)) == " M a.txt\n"
    assert "-one\n+two\n" in git(project, "diff")


def test_the_exit_code_and_stderr_are_those_of_git(project: Project) -> None:
    result = project.run("rye/git/git", {"command": "rev-parse", "args": ["--verify", "no-such"]})

    assert result.metadata["return_code"] == 128
    assert result.data["stderr"].startswith("fatal: ")


def test_a_path_is_never_an_option(project: Project) -> None:
    (project.path / "--force").write_text("x")

    git(project, "add", paths=("--force",))

    assert git(project, "ls-files") == "--force\n"


def test_a_command_that_would_open_an_editor_fails_at_once(project: Project) -> None:
    (project.path / "a.txt").write_text("one\n")
    git(project, "add", paths=("a.txt",))

    result = project.run("rye/git/git", {"command": "commit"})

    assert result.metadata["return_code"] == 1
    assert "empty commit message" in result.data["stderr"]


@pytest.mark.parametrize("command", ["pwn", "-c", "--exec-path=/tmp", "status; id", "difftool"])
def test_only_built_in_commands_are_accepted(project: Project, command: str) -> None:
    subprocess.run(
        ["git", "-C", str(project.path), "config", "alias.pwn", "!touch pwned"], check=True
    )

    result = project.run("rye/git/git", {"command": command})

    assert result.metadata["error_type"] == "ParameterError"
    assert not (project.path / "pwned").exists()


@pytest.mark.parametrize(
    ("command", "args", "shown"),
    [
        ("fetch", ["--upload-pack=touch pwned", "."], "fetch --upload-pack"),
        ("fetch", ["--upload-p", "touch pwned", "."], "fetch --upload-p"),
        ("clone", ["-u", "touch pwned", ".", "x"], "clone -u"),
        ("clone", ["-qc", "core.sshCommand=touch pwned", ".", "x"], "clone -qc"),
        ("clone", ["--config", "core.fsmonitor=touch pwned", ".", "x"], "clone --config"),
        ("push", ["--exec=touch pwned", "."], "push --exec"),
        ("rebase", ["-x", "touch pwned", "HEAD~1"], "rebase -x"),
        ("rebase", ["--ex=touch pwned", "HEAD~1"], "rebase --ex"),
        ("grep", ["-Otouch", "one"], "grep -Otouch"),
        ("bisect", ["run", "touch", "pwned"], "bisect run"),
        ("submodule", ["--quiet", "foreach", "touch pwned"], "submodule foreach"),
    ],
)
def test_an_option_that_starts_a_program_is_refused(
    project: Project, command: str, args: list[str], shown: str
) -> None:
    result = project.run("rye/git/git", {"command": command, "args": args})

    assert result.data["stderr"] == (
        f"git {shown}: this would start another program; use rye/bash/bash if you need that\n"
    )
    assert not (project.path / "pwned").exists()


@pytest.mark.parametrize(
    ("command", "args", "shown"),
    [
        ("diff", ["--no-index", "/dev/null", "/etc/hostname"], "diff --no-index"),
        ("diff", ["--output=OUT"], "diff --output"),
        ("log", ["--outpu", "OUT"], "log --outpu"),
        ("show", ["--output=OUT"], "show --output"),
        ("stash", ["show", "--output=OUT"], "stash --output"),
        ("format-patch", ["-1", "-o", "OUT"], "format-patch -o"),
        ("format-patch", ["--output-directory=OUT"], "format-patch --output-directory"),
        ("init", ["--separate-git-dir=OUT"], "init --separate-git-dir"),
        ("apply", ["--unsafe-paths", "x"], "apply --unsafe-paths"),
        ("grep", ["--no-index", "root", "/etc"], "grep --no-index"),
    ],
)
def test_an_option_that_reaches_outside_the_repository_is_refused(
    project: Project, tmp_path: Path, command: str, args: list[str], shown: str
) -> None:
    out = tmp_path / "out"
    given = [arg.replace("OUT", str(out)) for arg in args]

    result = project.run("rye/git/git", {"command": command, "args": given})

    assert result.data["stderr"] == (
        f"git {shown}: this would write or read outside the repository; "
        "use rye/bash/bash if you need that\n"
    )
    assert not out.exists()


@pytest.mark.parametrize(
    ("command", "args", "paths"),
    [
        ("clone", [".", "OUT"], []),
        ("clone", [".", "OUT", "-b", "main"], []),
        ("clone", ["."], ["OUT"]),
        ("clone", ["."], ["x/../../out"]),
        ("init", ["OUT"], []),
        ("worktree", ["add", "-b", "x", "OUT"], []),
    ],
)
def test_no_folder_is_created_outside_the_project(
    project: Project, tmp_path: Path, command: str, args: list[str], paths: list[str]
) -> None:
    git(project, "commit", "-q", "--allow-empty", "-m", "first")
    out = tmp_path / "out"
    given = {
        "args": [arg.replace("OUT", str(out)) for arg in args],
        "paths": [path.replace("OUT", str(out)) for path in paths],
    }

    result = project.run("rye/git/git", {"command": command, **given})

    assert result.data["stderr"].endswith(
        ": is outside the project; name a folder inside it, or use rye/bash/bash\n"
    )
    assert not out.exists()


def test_folders_inside_the_project_are_created(project: Project, tmp_path: Path) -> None:
    git(project, "commit", "-q", "--allow-empty", "-m", "first")

    git(project, "clone", "-q", str(project.path), "copy")
    git(project, "worktree", "add", "-q", "-b", "side", "tree")

    assert (project.path / "copy" / ".git").is_dir()
    assert (project.path / "tree" / ".git").is_file()


def test_settings_can_be_read_but_not_changed(project: Project) -> None:
    assert "core.bare=false\n" in git(project, "config", "--list")

    result = project.run(
        "rye/git/git", {"command": "config", "args": ["core.fsmonitor", "touch pwned"]}
    )

    assert result.data["stderr"].startswith(
        "git config can only read settings; start args with one of "
    )
