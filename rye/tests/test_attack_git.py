"""Attacks by a caller of rye/git/git: options, paths and remotes."""

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


@pytest.mark.parametrize(
    ("command", "args", "shown"),
    [
        ("blame", ["--contents=SECRET"], "--contents"),
        ("blame", ["--cont", "SECRET"], "--cont"),
        ("blame", ["--ignore-revs-file=SECRET"], "--ignore-revs-file"),
        ("blame", ["-SSECRET"], "-S"),
        ("commit", ["--allow-empty", "-F", "SECRET"], "-F"),
        ("commit", ["--allow-empty", "-qFSECRET"], "-F"),
        ("commit", ["--allow-empty", "--file=SECRET"], "--file"),
        ("commit", ["--allow-empty", "--fil=SECRET"], "--fil"),
        ("commit", ["--allow-empty", "--template=SECRET"], "--template"),
        ("commit", ["-a", "--pathspec-from-file=SECRET"], "--pathspec-from-file"),
        ("add", ["--pathspec-from-f=SECRET"], "--pathspec-from-f"),
        ("tag", ["-F", "SECRET", "x"], "-F"),
        ("merge", ["-F", "SECRET", "main"], "-F"),
        ("diff", ["--no-index", "/dev/null", "SECRET"], "--no-index"),
        ("diff", ["--no-ind", "/dev/null", "SECRET"], "--no-ind"),
        ("diff", ["-OSECRET"], "-O"),
        ("diff", ["-pOSECRET"], "-O"),
        ("diff", ["--output=OUT"], "--output"),
        ("log", ["--outpu", "OUT"], "--outpu"),
        ("show", ["--output=OUT"], "--output"),
        ("stash", ["show", "--output=OUT"], "--output"),
        ("log", ["--stdin"], "--stdin"),
        ("diff", ["--ext-diff"], "--ext-diff"),
        ("show", ["--textconv", "HEAD:a.txt"], "--textconv"),
        ("cat-file", ["--textconv", "HEAD:a.txt"], "--textconv"),
        ("cat-file", ["--filters", "HEAD:a.txt"], "--filters"),
        ("grep", ["-Otouch", "one"], "-O"),
        ("grep", ["--open-files-in-pager=touch", "one"], "--open-files-in-pager"),
        ("grep", ["-f", "SECRET"], "-f"),
        ("grep", ["--no-index", "hunter", "SECRET"], "--no-index"),
        ("ls-files", ["--exclude-from=SECRET"], "--exclude-from"),
        ("rebase", ["-x", "touch pwned", "HEAD"], "-x"),
        ("rebase", ["--ex=touch pwned", "HEAD"], "--ex"),
        ("rebase", ["-s", "touch", "HEAD"], "-s"),
        ("merge", ["-s", "touch", "HEAD"], "-s"),
        ("fetch", ["--upload-pack=touch pwned", "."], "--upload-pack"),
        ("fetch", ["--upload-p", "touch pwned", "."], "--upload-p"),
        ("push", ["--exec=touch pwned", "."], "--exec"),
        ("push", ["--receive-pack=touch pwned", "."], "--receive-pack"),
        ("ls-remote", ["--exec=touch pwned", "."], "--exec"),
        ("init", ["--template=SECRET"], "--template"),
        ("init", ["--separate-git-dir=OUT"], "--separate-git-dir"),
        ("checkout", ["--recurse-submodules", "main"], "--recurse-submodules"),
        ("add", ["-f", ".env"], "-f"),
        ("stash", ["-u"], "-u"),
        ("log", ["--an-option-of-tomorrow=x"], "--an-option-of-tomorrow"),
        ("commit", ["--no-verify", "-m", "x"], "--no-verify"),
        ("status", ["--short=x"], "--short=x"),
    ],
)
def test_an_option_that_is_not_listed_is_refused(
    project: Project, tmp_path: Path, command: str, args: list[str], shown: str
) -> None:
    places = {"SECRET": str(tmp_path / "secret"), "OUT": str(tmp_path / "out")}
    for name, place in places.items():
        args = [arg.replace(name, place) for arg in args]
    head = real_git(project.path, "rev-parse", "HEAD")

    message = refused_git(project, command, *args)

    start = f"git {command} {shown}: this option is not allowed; allowed are -"
    assert message.startswith(start)
    assert real_git(project.path, "rev-parse", "HEAD") == head
    assert not (project.path / "pwned").exists()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("args", [["/dev/null", "SECRET"], ["--", "/dev/null", "SECRET"]])
@pytest.mark.parametrize("repository", [True, False])
def test_diff_of_a_file_outside_the_project_is_refused(
    project: Project, tmp_path: Path, args: list[str], *, repository: bool
) -> None:
    if not repository:
        (project.path / ".git").rename(tmp_path / "moved")

    result = run_git(
        project, "diff", *(arg.replace("SECRET", str(tmp_path / "secret")) for arg in args)
    )

    assert not result.success
    assert "hunter2" not in str(result.data)
    reason = {
        (True, True): "/dev/null is outside the project ",
        (True, False): "fatal: bad revision '/dev/null'",
    }.get((repository, "--" in args), f"git: {project.path} is not in a repository; ")
    assert result.data["stderr"].startswith(reason)


@pytest.mark.parametrize("command", ["diff", "log", "blame", "add", "restore", "rm", "ls-files"])
@pytest.mark.parametrize("path", ["../secret", "OUT", "link/secret"])
def test_a_path_outside_the_project_is_refused(
    project: Project, tmp_path: Path, command: str, path: str
) -> None:
    (project.path / "link").symlink_to("..")
    path = path.replace("OUT", str(tmp_path / "secret"))

    assert refused_git(project, command, paths=(path,)) == (
        f"{path} is outside the project {project.path}; use a path inside it, "
        "or ask the user for the file\n"
    )


@pytest.mark.parametrize("path", [":(top)..", ":/", "*.txt", ":(glob)**"])
def test_a_path_is_a_name_and_not_a_pattern(project: Project, path: str) -> None:
    (project.path / "b.txt").write_text("two\n")

    result = run_git(project, "add", paths=(path,))

    assert result.data["stderr"].startswith(f"fatal: pathspec '{path}' did not match any files")


@pytest.mark.parametrize(
    ("command", "remote"),
    [
        ("fetch", "ext::sh -c touch% pwned"),
        ("pull", "../other"),
        ("push", "."),
        ("ls-remote", "https://example.org/x"),
        ("fetch", "file:///srv/x"),
        ("push", "origin"),
        ("pull", "known/../x"),
    ],
)
def test_a_remote_that_is_not_configured_is_refused(
    project: Project, command: str, remote: str
) -> None:
    real_git(project.path, "config", "remote.known.url", "https://example.org/known")

    assert refused_git(project, command, remote) == (
        f"git {command} {remote}: is not a configured remote; name one of: known\n"
    )


@pytest.mark.parametrize(
    ("command", "args"),
    [
        ("mv", ["a.txt", ".env"]),
        ("mv", ["a.txt", ".husky/pre-commit"]),
        ("mv", ["src", "node_modules"]),
        ("mv", ["src", "env/x"]),
        ("mv", ["a.txt", "src/HEAD"]),
        ("rm", ["-r", "hidden"]),
        ("rm", [".ai/config.yaml"]),
        ("restore", ["--source=HEAD", ".ai/config.yaml"]),
        ("checkout", ["HEAD", "--", ".ai/config.yaml"]),
    ],
)
def test_what_runs_as_code_or_decides_trust_is_not_changed(
    project: Project, command: str, args: list[str]
) -> None:
    for name in ("src/a.py", "hidden/.envrc", ".ai/config.yaml"):
        (project.path / name).parent.mkdir(exist_ok=True)
        (project.path / name).write_text("")
        real_git(project.path, "add", name)
    (project.path / "env").mkdir()
    (project.path / "env" / "pyvenv.cfg").write_text("")
    (project.path / ".husky").mkdir()
    real_git(project.path, "commit", "-q", "-m", "files")

    message = refused_git(project, command, *args)

    assert "where a change could run code or decide what is trusted; " in message
    assert real_git(project.path, "status", "--porcelain", "--untracked-files=no") == ""


@pytest.mark.parametrize("args", [["-A"], ["."], [".env"], ["sub"], []])
def test_a_file_that_may_contain_secrets_is_not_added(project: Project, args: list[str]) -> None:
    (project.path / ".env").write_text("hunter2\n")
    (project.path / "sub").mkdir()
    (project.path / "sub" / ".npmrc").write_text("hunter2\n")

    message = refused_git(project, "add", *args)

    assert message.endswith(
        ": files whose names start with a dot may contain secrets; leave it out, or ask the user\n"
    )
    assert "hunter2" not in str(run_git(project, "diff", "--cached").data)


@pytest.mark.parametrize("tree", ["HEAD:src", "ID"])
@pytest.mark.parametrize(
    ("command", "args"),
    [("restore", ["--source=TREE"]), ("restore", ["-sTREE"]), ("checkout", ["TREE"]),
     ("reset", ["TREE"])],
)  # fmt: skip
def test_a_folder_of_a_commit_is_not_restored_to_another_place(
    project: Project, command: str, args: list[str], tree: str
) -> None:
    (project.path / "src" / "env" / "bin").mkdir(parents=True)
    (project.path / "src" / "env" / "bin" / "python").write_text("planted")
    real_git(project.path, "add", "src")
    real_git(project.path, "commit", "-q", "-m", "src")
    (project.path / "env").mkdir()
    (project.path / "env" / "pyvenv.cfg").write_text("")
    tree = tree.replace("ID", real_git(project.path, "rev-parse", "HEAD:src").strip())

    result = run_git(project, command, *(arg.replace("TREE", tree) for arg in args), paths=(".",))

    assert not result.success
    assert "^{commit}" in result.data["stderr"]
    assert not (project.path / "env" / "bin").exists()
    assert "env/bin/python" not in real_git(project.path, "ls-files", "env")


@pytest.mark.parametrize("command", ["merge", "rebase", "cherry-pick"])
def test_a_merge_does_not_carry_a_change_to_a_name_with_a_dot(
    project: Project, command: str
) -> None:
    """A commit of the project renames a file, which the agent then changes before that commit."""
    old, new = project.path / "env.txt", project.path / ".envrc"
    old.write_text("".join(f"{number}\n" for number in range(30)))
    real_git(project.path, "add", "env.txt")
    real_git(project.path, "commit", "-q", "-m", "before")
    real_git(project.path, "switch", "-q", "-c", "agent")
    real_git(project.path, "switch", "-q", "main")
    real_git(project.path, "mv", "env.txt", ".envrc")
    real_git(project.path, "commit", "-q", "-m", "renamed")
    real_git(project.path, "switch", "-q", "agent")
    old.write_text(old.read_text().replace("15\n", "planted\n"))
    real_git(project.path, "commit", "-q", "-a", "-m", "change")

    assert not run_git(project, command, "main").success

    assert not new.exists() or "planted" not in new.read_text()
    real_git(project.path, command, "--abort")
    project.environ["RYE_GIT_ALLOW"] = "merge.renames"
    assert run_git(project, command, "main").success
    assert "planted" in new.read_text()
