"""rye/git/git on real repositories."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from git_repository import IDENTITY, real_git, run_git
from rye_project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path, shipped_system=True, environ=IDENTITY)
    real_git(project.path, "init", "-q", "-b", "main")
    return project


def git(project: Project, command: str, *args: str, paths: tuple[str, ...] = ()) -> str:
    result = run_git(project, command, *args, paths=paths)
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


def history(project: Project) -> None:
    (project.path / "a.txt").write_text("one\n")
    git(project, "add", "a.txt")
    git(project, "commit", "-qm", "first")
    git(project, "switch", "-q", "-c", "side")
    (project.path / "b.txt").write_text("two\n")
    git(project, "add", "-A", "b.txt")
    git(project, "commit", "-q", "--message", "second")


def test_branches_are_created_switched_merged_and_deleted(project: Project) -> None:
    history(project)

    git(project, "checkout", "-q", "main")
    git(project, "merge", "-q", "--no-ff", "-m", "joined", "side")
    git(project, "branch", "-d", "side")
    git(project, "tag", "-a", "v1", "-m", "one")
    git(project, "checkout", "-q", "-b", "third", "v1")

    assert git(project, "branch", "--show-current") == "third\n"
    assert git(project, "describe") == "v1\n"
    assert git(project, "log", "-2", "--format=%s", "--first-parent") == "joined\nfirst\n"
    assert len(git(project, "rev-list", "HEAD").splitlines()) == 3
    assert git(project, "reflog", "-n1", "--format=%gs").startswith("checkout: moving")


def test_changes_are_stashed_restored_and_reset(project: Project) -> None:
    history(project)
    path = project.path / "a.txt"

    path.write_text("changed\n")
    git(project, "stash", "push", "-m", "later")
    assert git(project, "stash", "list").endswith(": On side: later\n")
    assert "+changed\n" in git(project, "stash", "show", "-p")
    git(project, "stash", "pop", "-q")
    git(project, "restore", "a.txt")
    assert path.read_text() == "one\n"
    git(project, "rm", "-q", "b.txt")
    git(project, "mv", "a.txt", "c.txt")
    assert git(project, "status", "-s", "c.txt", "b.txt") == "D  b.txt\nA  c.txt\n"
    git(project, "reset", "-q", "--hard", "HEAD~1")
    assert git(project, "ls-files") == "a.txt\n"


def test_commits_are_picked_reverted_and_rebased(project: Project) -> None:
    history(project)

    git(project, "switch", "-q", "main")
    git(project, "cherry-pick", "-x", "side")
    git(project, "revert", "--no-edit", "HEAD")
    git(project, "switch", "-q", "side")
    git(project, "rebase", "-q", "--onto", "main", "main~2", "side")

    assert git(project, "merge-base", "main", "side") == git(project, "rev-parse", "main")
    assert git(project, "grep", "-n", "two") == "b.txt:1:two\n"


def test_a_conflict_is_resolved_and_the_rebase_continued(project: Project) -> None:
    history(project)
    (project.path / "a.txt").write_text("side\n")
    git(project, "commit", "-qam", "third")
    git(project, "switch", "-q", "main")
    (project.path / "a.txt").write_text("main\n")
    git(project, "commit", "-qam", "fourth")
    git(project, "switch", "-q", "side")

    result = project.run("rye/git/git", {"command": "rebase", "args": ["main"]})
    assert "CONFLICT" in result.data["stdout"]
    (project.path / "a.txt").write_text("both\n")
    git(project, "add", "a.txt")
    git(project, "rebase", "--continue")

    assert git(project, "log", "--format=%s") == "third\nsecond\nfourth\nfirst\n"


def test_history_is_shown(project: Project) -> None:
    history(project)

    assert "+two\n" in git(project, "show", "side", "--stat", "-p")
    assert git(project, "show", "main:a.txt") == "one\n"
    assert git(project, "diff", "main..side", "--name-only") == "b.txt\n"
    assert git(project, "diff", "main", "side", "-U0", paths=("a.txt",)) == ""
    assert git(project, "diff-tree", "-r", "--name-status", "main", "side") == "A\tb.txt\n"
    assert git(project, "range-diff", "main..side", "main..side").startswith("1:")
    assert git(project, "blame", "-s", "-L", "1,1", "side", "--", "b.txt").endswith(") two\n")
    assert git(project, "ls-tree", "--name-only", "side", paths=("b.txt",)) == "b.txt\n"
    assert git(project, "cat-file", "-t", "side") == "commit\n"
    assert git(project, "for-each-ref", "--format=%(refname:short)") == "main\nside\n"
    assert git(project, "name-rev", "--name-only", "side") == "side\n"
    assert git(project, "cherry", "main", "side").startswith("+ ")


def test_a_remote_is_used_by_its_name(project: Project, tmp_path: Path) -> None:
    history(project)
    run = ["git", "-C", str(project.path)]
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "there")], check=True)
    subprocess.run([*run, "remote", "add", "origin", str(tmp_path / "there")], check=True)
    project.environ["RYE_GIT_ALLOW"] = "remote.origin.url"
    project.grant({"tools": ["rye/git/git"], "write": [str(tmp_path / "there")]})

    git(project, "push", "-q", "-u", "origin", "side")
    git(project, "fetch", "-q", "--prune")
    git(project, "pull", "-q", "--ff-only")

    assert git(project, "remote", "-v").startswith(f"origin\t{tmp_path}/there (fetch)\n")
    assert git(project, "remote", "get-url", "origin") == f"{tmp_path}/there\n"
    assert git(project, "ls-remote", "--heads", "origin").endswith("\trefs/heads/side\n")
    assert git(project, "status", "-sb", "a.txt") == "## side...origin/side\n"


def test_a_clone_is_an_ordinary_repository(project: Project, tmp_path: Path) -> None:
    """Every setting that git and common programs write into a clone."""
    for key, value in {
        "core.ignorecase": "false", "core.autocrlf": "input", "core.precomposeunicode": "true",
        "remote.origin.url": "git@github.com:a/b.git", "remote.other.url": "https://a.example/b",
        "remote.origin.fetch": "+refs/heads/*:refs/remotes/origin/*",
        "remote.origin.gh-resolved": "base", "remote.origin.promisor": "true",
        "branch.main.remote": "origin", "branch.main.merge": "refs/heads/main",
        "branch.main.vscode-merge-base": "origin/main", "branch.main.pushRemote": "other",
        "user.name": "A", "user.email": "a@example.org", "commit.gpgSign": "false",
        "pull.rebase": "true", "alias.st": "status", "core.editor": "vi", "core.pager": "less",
        "core.hooksPath": ".husky/_", "core.fsmonitor": "false", "submodule.lib.active": "true",
        "submodule.lib.url": "https://a.example/lib", "lfs.repositoryformatversion": "0",
        "http.https://github.com/.extraheader": "AUTHORIZATION: basic x",
    }.items():  # fmt: skip
        subprocess.run(["git", "-C", str(project.path), "config", key, value], check=True)

    assert git(project, "status", "--short", "--untracked-files=no") == ""


def test_init_creates_a_repository(tmp_path: Path) -> None:
    project = Project(tmp_path, shipped_system=True)

    git(project, "init", "-q", "-b", "trunk")

    assert git(project, "branch", "--show-current") == "trunk\n"


@pytest.mark.parametrize(
    ("command", "args", "message"),
    [
        ("init", ["folder"], "git init folder: takes only options; remove it\n"),
        ("stash", ["clear"],
         "git stash clear: this is not allowed; allowed are list, show, push, pop, apply, drop\n"),
        ("remote", ["add", "x", "y"], "git remote add: this is not allowed; allowed are get-url\n"),
        ("log", ["-n", "x"], "git log -n: 'x' is not a number; give one\n"),
        ("log", ["-n"], "git log -n: needs a value; add it as the next element of args\n"),
        ("commit", ["--message"],
         "git commit --message: needs a value; add it as the next element of args\n"),
        ("add", ["-"], "git add -: standard input cannot be used; name a file or a revision\n"),
    ],
)  # fmt: skip
def test_a_mistake_is_explained(
    project: Project, command: str, args: list[str], message: str
) -> None:
    result = project.run("rye/git/git", {"command": command, "args": args})

    assert result.data["stderr"] == message


def test_a_missing_git_is_reported(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(sys.executable)
    project = Project(tmp_path, shipped_system=True, environ={"PATH": str(tmp_path / "bin")})

    result = project.run("rye/git/git", {"command": "version"})

    assert (result.metadata["return_code"], result.data["stderr"]) == (
        127,
        "git is not installed; install it\n",
    )
