"""Attacks by a repository that rye/git/git works in: its settings, its hooks and its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from git_repository import IDENTITY, create, real_git, refused_git, run_git
from rye_project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path, shipped_system=True, environ=IDENTITY)
    create(project.path)
    (tmp_path / "secret").write_text("hunter2\n")
    return project


PROGRAMS = [
    ("core.fsmonitor", "touch PWNED; false"),
    ("filter.x.clean", "touch PWNED; cat"),
    ("filter.x.process", "touch PWNED"),
    ("filter.a-name-with-a-dot.x.smudge", "touch PWNED; cat"),
    ("diff.external", "touch PWNED; false"),
    ("diff.x.command", "touch PWNED; false"),
    ("diff.x.textconv", "touch PWNED; cat"),
    ("merge.x.driver", "touch PWNED; false"),
    ("core.sshCommand", "touch PWNED; false"),
    ("core.gitProxy", "touch PWNED"),
    ("core.askPass", "touch PWNED"),
    ("core.alternateRefsCommand", "touch PWNED"),
    ("credential.helper", "!touch PWNED"),
    ("credential.https://example.org.helper", "!touch PWNED"),
    ("gpg.program", "touch PWNED"),
    ("gpg.ssh.defaultKeyCommand", "touch PWNED"),
    ("gc.recentObjectsHook", "touch PWNED"),
    ("trailer.x.command", "touch PWNED"),
    ("submodule.x.update", "!touch PWNED"),
    ("uploadpack.packObjectsHook", "touch PWNED"),
    ("remote.origin.uploadpack", "touch PWNED; false"),
    ("remote.origin.receivepack", "touch PWNED; false"),
    ("remote.origin.vcs", "ext"),
    ("remote.origin.url", "ext::sh -c 'touch% PWNED'"),
    ("remote.origin.pushurl", "ext::sh -c 'touch% PWNED'"),
    ("remote.origin.url", "/srv/another-repository"),
    ("remote.origin.url", "file:///srv/another-repository"),
    ("remote.origin.url", "ssh://-oProxyCommand=touch%20PWNED/x"),
    ("branch.main.remote", "ext::sh -c 'touch% PWNED'"),
    ("branch.main.pushRemote", "../another-repository"),
    ("url.ext::sh -c x.insteadOf", "https://example.org"),
    ("protocol.ext.allow", "always"),
    ("include.path", "../settings"),
    ("includeIf.gitdir:/.path", "../settings"),
    ("core.worktree", "/"),
    ("core.attributesFile", "/etc/passwd"),
    ("a-section.of-tomorrow", "touch PWNED"),
]


@pytest.mark.parametrize(("key", "value"), PROGRAMS)
def test_a_setting_that_is_not_known_to_be_harmless_is_refused(
    project: Project, tmp_path: Path, key: str, value: str
) -> None:
    (project.path / ".gitattributes").write_text("* filter=x diff=x merge=x\n")
    (project.path / "a.txt").write_text("two\n")
    real_git(project.path, "config", key, value.replace("PWNED", str(tmp_path / "pwned")))

    for command in ("status", "diff", "fetch"):
        message = refused_git(project, command)
        section, _, rest = key.partition(".")
        subsection, _, variable = rest.rpartition(".")
        shown = ".".join(filter(None, (section.lower(), subsection, variable.lower())))
        assert message == (
            f"git: the configuration of the repository in {project.path} sets {shown} to a value "
            "that could start a program or reach outside the project; "
            "ask the user to review this setting\n"
        )
    assert not (tmp_path / "pwned").exists()


def test_an_included_setting_is_refused(project: Project, tmp_path: Path) -> None:
    (project.path / "settings").write_text(f"[core]\n\tfsmonitor = touch {tmp_path}/pwned; false\n")
    with (project.path / ".git" / "config").open("a") as file:
        file.write("[include]\n\tpath = ../settings\n")

    assert "sets include.path to a value" in refused_git(project, "status")
    assert not (tmp_path / "pwned").exists()


def test_a_setting_of_one_worktree_is_refused(project: Project, tmp_path: Path) -> None:
    real_git(project.path, "config", "extensions.worktreeConfig", "true")
    program = f"touch {tmp_path}/pwned; false"
    real_git(project.path, "config", "--worktree", "core.fsmonitor", program)

    assert "sets core.fsmonitor to a value" in refused_git(project, "status")
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("depth", [1, 2])
def test_a_setting_of_a_submodule_is_refused(project: Project, tmp_path: Path, depth: int) -> None:
    folder = project.path
    for _ in range(depth):
        sub = create(folder / "sub")
        real_git(folder, "add", "sub")
        real_git(folder, "commit", "-q", "-m", "sub")
        folder = sub
    (sub / ".gitattributes").write_text("* filter=x\n")
    (sub / "a.txt").write_text("two\n")
    real_git(sub, "config", "filter.x.clean", f"touch {tmp_path}/pwned; cat")

    message = refused_git(project, "status")

    assert f"the repository in {sub} sets filter.x.clean to a value" in message
    assert not (tmp_path / "pwned").exists()


def test_a_repository_that_becomes_a_submodule_by_a_switch_does_not_run_its_programs(
    project: Project, tmp_path: Path
) -> None:
    """After a switch, git looks for changes in submodules that were not in the index before."""
    sub = create(project.path / "sub")
    real_git(project.path, "switch", "-q", "-c", "side")
    real_git(project.path, "add", "sub")
    real_git(project.path, "commit", "-q", "-m", "sub")
    sub.rename(tmp_path / "sub")
    real_git(project.path, "switch", "-q", "-f", "main")
    (tmp_path / "sub").rename(sub)
    real_git(sub, "config", "core.fsmonitor", f"touch {tmp_path}/pwned; false")

    message = refused_git(project, "switch", "side")

    assert f"the repository in {sub} sets core.fsmonitor to a value" in message
    assert not (tmp_path / "pwned").exists()
    assert run_git(project, "status").success


def test_a_hook_of_the_repository_is_not_run_and_this_is_reported(
    project: Project, tmp_path: Path
) -> None:
    for folder in (".git/hooks", ".husky"):
        (project.path / folder).mkdir(exist_ok=True)
        hook = project.path / folder / "post-commit"
        hook.write_text("#!/bin/sh\ntouch {tmp_path}/pwned\n")
        hook.chmod(0o755)

    for hooks in (None, ".husky"):
        if hooks:
            real_git(project.path, "config", "core.hooksPath", hooks)
        result = run_git(project, "commit", "--allow-empty", "-m", "x")
        assert result.success
        assert "git commit: hooks were not run: post-commit\n" in result.data["stderr"]
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("below", [False, True])
def test_a_bare_repository_in_the_place_of_a_project_is_not_used(
    project: Project, tmp_path: Path, *, below: bool
) -> None:
    git = project.path / ".git"
    for path in list(git.iterdir()):
        path.rename(project.path / path.name)
    git.rmdir()
    if below:
        create(tmp_path)
    with (project.path / "config").open("a") as file:
        file.write(
            f"[core]\n\tbare = false\n\tworktree = .\n\tfsmonitor = touch {tmp_path}/pwned\n"
        )

    assert refused_git(project, "status") == (
        f"git: {project.path} is not in a repository; create one with the command init\n"
    )
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("way", ["file", "link", "commondir"])
def test_the_repository_of_another_folder_is_not_read(
    project: Project, tmp_path: Path, way: str
) -> None:
    other = create(tmp_path / "other")
    (other / "b.txt").write_text("hunter2\n")
    real_git(other, "add", "b.txt")
    real_git(other, "commit", "-q", "-m", "second")
    git = project.path / ".git"
    if way == "commondir":
        (git / "commondir").write_text(f"{other}/.git\n")
    else:
        git.rename(tmp_path / "moved")
        if way == "file":
            git.write_text(f"gitdir: {other}/.git\n")
        else:
            git.symlink_to(other / ".git")

    result = run_git(project, "show")

    # The kernel refuses it, whether or not the tool itself notices where the repository is.
    assert not result.success
    assert "hunter2" not in f"{result.data} {result.error}"
    if way == "link":
        assert "a link there leads out of the project" in str(result.error)


def test_a_dotenv_cannot_allow_a_setting(project: Project) -> None:
    real_git(project.path, "config", "core.fsmonitor", "touch pwned; false")
    (project.path / ".env").write_text("RYE_GIT_ALLOW=*\n")

    assert "sets core.fsmonitor to a value" in refused_git(project, "status")


def test_the_user_can_allow_settings_and_hooks(project: Project) -> None:
    project.environ["RYE_GIT_ALLOW"] = "filter.lfs.* hooks"
    real_git(project.path, "config", "filter.lfs.clean", "cat")
    hook = project.path / ".git" / "hooks" / "post-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch ran\n")
    hook.chmod(0o755)

    assert run_git(project, "commit", "--allow-empty", "-m", "x").error is None
    assert (project.path / "ran").exists()


def test_the_objects_of_another_repository_are_not_read(project: Project, tmp_path: Path) -> None:
    other = create(tmp_path / "other")
    (other / "b.txt").write_text("hunter2\n")
    secret = real_git(other, "hash-object", "-w", "b.txt").strip()
    alternates = project.path / ".git" / "objects" / "info" / "alternates"
    alternates.parent.mkdir(exist_ok=True)
    alternates.write_text(f"{other}/.git/objects\n")

    assert refused_git(project, "cat-file", "-p", secret) == (
        f"git: the repository in {project.path} uses {other}/.git/objects, which is outside it; "
        "ask the user to review it\n"
    )


@pytest.mark.parametrize("name", ["MERGE_MSG", "objects/pack", "refs"])
def test_a_link_in_a_repository_does_not_lead_outside(
    project: Project, tmp_path: Path, name: str
) -> None:
    link = project.path / ".git" / name
    if link.is_dir():
        link.rename(tmp_path / "moved")
    link.symlink_to(tmp_path / "secret")

    assert refused_git(project, "commit", "--allow-empty", "--no-edit") == (
        f"git: the repository in {project.path} uses {tmp_path}/secret, which is outside it; "
        "ask the user to review it\n"
    )


@pytest.mark.parametrize("option", ["--continue", "--skip"])
def test_a_rebase_that_came_with_a_repository_does_not_run_its_programs(
    project: Project, tmp_path: Path, option: str
) -> None:
    real_git(project.path, "commit", "-q", "--allow-empty", "-m", "second")
    editor = f"sequence.editor=sed -i '1s/^/break\\nexec touch {tmp_path.name}\\n/'"
    real_git(project.path, "-c", editor, "rebase", "-i", "HEAD~1")
    todo = project.path / ".git" / "rebase-merge" / "git-rebase-todo"
    assert f"exec touch {tmp_path.name}\n" in todo.read_text()

    assert refused_git(project, "rebase", option) == (
        f"git: the operation that was begun in {project.path} contains steps that could start a "
        "program; abort it, or ask the user to finish it\n"
    )
    assert not (project.path / tmp_path.name).exists()
    assert run_git(project, "rebase", "--abort").success


@pytest.mark.parametrize("kind", ["worktree", "submodule"])
def test_a_worktree_and_a_submodule_are_ordinary_repositories(
    project: Project, tmp_path: Path, kind: str
) -> None:
    main = create(tmp_path / "main")
    (project.path / ".git").rename(tmp_path / "moved")
    if kind == "worktree":
        real_git(
            main, "worktree", "add", "-q", "--no-checkout", "-b", "side", str(tmp_path / "tree")
        )
        (tmp_path / "tree" / ".git").rename(project.path / ".git")
        real_git(main, "worktree", "repair", str(project.path))
    else:
        real_git(tmp_path, "init", "-q")
        add = ["-c", "protocol.file.allow=always", "submodule", "add", "-q"]
        real_git(tmp_path, *add, str(main), "sub")
        real_git(tmp_path / "sub", "config", "remote.origin.url", "https://example.org/main")
        (tmp_path / "sub").rename(tmp_path / "sub-of-git")
        project.path.rename(tmp_path / "project-before")
        (tmp_path / "sub-of-git").rename(project.path)
        git = tmp_path / ".git" / "modules" / "sub"
        real_git(tmp_path, "config", "-f", str(git / "config"), "core.worktree", "../../../project")

    assert run_git(project, "log", "--format=%s").data["stdout"] == "first\n"
