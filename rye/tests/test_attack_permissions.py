"""Signed tools that try to do what their permissions do not allow, with real processes."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest
from confined_machine import needs
from rye.executor.run.result import ExecutionResult
from rye.permissions import base
from rye_project import SUBPROCESS, Project, says

SECRET = "the-secret-of-the-user"
EVERYTHING = {"write": ["{project_path}", "tmp"], "run": ["system"]}

OWN_COPY = """\
# /// rye
# executor_id = "rye/core/runtimes/bash_runtime"
# permissions = {write = ["~/.ai"], run = ["system"]}
# ///
touch ~/.ai/fine
chmod u+w "$0" "$(dirname "$0")"
echo 'echo evil' >>"$0"
touch "$(dirname "$0")/new"
mv "$(dirname "$0")" "$(dirname "$0")/../moved"
echo tried
"""

pytestmark = needs("fs", "net", "unix", "syscalls", "privileges", "read_only", "hidden")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path, shipped_system=True)
    (project.user / ".ssh").mkdir()
    (project.user / ".ssh" / "id_ed25519").write_text(SECRET)
    return project


def run(project: Project, script: str, **permissions: Any) -> ExecutionResult:
    """Run a shell script with these permissions."""
    return project.run(says(project, script, permissions=permissions or EVERYTHING))


def bash(project: Project, command: str) -> ExecutionResult:
    return project.run("rye/bash/bash", {"command": command})


def output(result: ExecutionResult) -> str:
    return f"{result.data} {result.error}"


@pytest.mark.parametrize(
    "command",
    [
        "cat {key}",
        "cat {home}/.ssh/*",
        "cat /proc/self/root{key}",
        "cat /proc/$PPID/root{key}",
        "ln -s {key} here; cat here",
        "ln {key} here; cat here",
        "python3 -c 'print(open(\"{key}\").read())'",
        "/lib64/ld-linux-x86-64.so.2 /bin/cat {key}",
        "(setsid cat {key} &) ; sleep 0.2",
    ],
)
def test_the_shell_of_an_agent_cannot_read_the_keys_of_the_user(
    project: Project, command: str
) -> None:
    key = project.user / ".ssh" / "id_ed25519"
    result = bash(project, command.format(key=key, home=project.user))

    assert SECRET not in output(result)
    assert key.read_text() == SECRET
    assert result.metadata["confinement"]["missing"] == []


def test_the_shell_of_an_agent_has_an_empty_private_home(project: Project) -> None:
    first = bash(project, "echo $HOME; ls -A ~; touch ~/left; cd; pwd")
    second = bash(project, "ls -A ~")

    home = first.data["stdout"].splitlines()
    assert home[0] == home[1] != str(project.user)
    assert second.data["stdout"] == ""
    assert not Path(home[0]).exists()


@pytest.mark.parametrize(
    "command",
    [
        "echo x > {outside}/new",
        "echo x > {outside}/old",
        "mv {outside}/old .",
        "mv made {outside}/new",
        "ln -s {outside}/new link; echo x > link",
        "ln {outside}/old link; echo x > link",
        "rm {outside}/old",
        "mkdir {outside}/new",
        "chmod 777 {outside}/old",
        "echo x > /proc/self/root{outside}/new",
    ],
)
def test_a_confined_tool_cannot_write_outside(
    project: Project, tmp_path: Path, command: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "old").write_text("old")
    (outside / "old").chmod(0o600)

    run(project, f"touch made; {command.format(outside=outside)}")

    assert [(one.name, one.read_text()) for one in outside.iterdir()] == [("old", "old")]
    assert (outside / "old").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("setting", ["stdout_file", "stderr_file"])
@pytest.mark.parametrize("confined", ["rye/core/primitives/subprocess", "t"])
def test_the_output_of_a_confined_tool_is_not_written_outside_by_the_helper(
    project: Project, setting: str, confined: str
) -> None:
    outside = project.user / ".bashrc"
    call: dict[str, Any] = {"command": "echo", "args": ["pwned"], setting: str(outside)}
    project.yaml("t", executor_id=SUBPROCESS, config=call, permissions=EVERYTHING)

    result = project.run(confined, {} if confined == "t" else call)

    assert result.error == (
        f"'{confined}' is confined, and {setting} would be written with all your rights; "
        "write the file in the command, as in sh -c 'ls > \"$1\"' sh FILE"
    )
    assert not outside.exists()


def test_only_declared_variables_reach_a_confined_tool(project: Project) -> None:
    project.environ.update(TOKEN=SECRET, AWS_KEY="a", AWS_REGION="b", LC_ALL="C", RYE_X=SECRET)

    result = run(project, "env", env=["AWS_*"], run=["env"])

    names = {line.partition("=")[0] for line in result.data["stdout"].splitlines()}
    own = {"PWD", "_", "SHLVL", "OLDPWD", "RYE_CHANNEL"}
    assert names - own == {*("PATH", "HOME", "LANG", "LC_ALL", "AWS_KEY", "AWS_REGION")}
    assert SECRET not in output(result)


def test_a_program_that_run_does_not_name_is_not_started(project: Project) -> None:
    result = run(project, "cat /etc/hostname >/dev/null && id", run=["cat"])

    assert result.metadata["return_code"] == 126
    assert "id: Permission denied" in result.data["stderr"]


def test_a_program_that_a_tool_wrote_is_not_started(project: Project) -> None:
    script = "f=$(printf x%s 1); cp /bin/true $f; ./$f"

    refused = run(project, script)
    allowed = run(project, script, **{**EVERYTHING, "run": ["system", "{project_path}/**"]})

    assert refused.metadata["return_code"] == 126
    assert allowed.success, allowed.error


@pytest.mark.parametrize("kind", ["tcp", "udp", "dns", "raw"])
def test_without_net_there_is_no_network(project: Project, kind: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        programs = {
            "tcp": f"socket.create_connection(('127.0.0.1', {port}), 2)",
            "udp": "socket.socket(2, 2).sendto(b'x', ('127.0.0.1', 9))",
            "dns": "socket.getaddrinfo('example.org', 80)",
            "raw": "socket.socket(2, 3, 1)",
        }
        result = bash(project, f'python3 -c "import socket; {programs[kind]}"')
    assert result.metadata["return_code"] == 1, output(result)


@pytest.mark.parametrize(("net", "works"), [([], False), (["unix"], True)])
def test_a_unix_socket_needs_to_be_granted(
    project: Project, tmp_path: Path, net: list[str], works: bool
) -> None:
    path = f"{project.path}/agent.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        program = f"import socket; socket.socket(socket.AF_UNIX).connect('{path}')"
        result = run(project, f'python3 -c "{program}"', **{**EVERYTHING, "net": net})
    assert result.success is works, output(result)


def test_what_the_users_programs_trust_in_a_project_is_read_only(project: Project) -> None:
    git = project.path / ".git"
    git.mkdir()
    for name in ("HEAD", "config"):
        (git / name).write_text("before")
    (project.path / ".env").write_text(f"TOKEN={SECRET}\n")

    result = bash(
        project,
        "cat .env; echo x > .git/config; echo x > .git/hooks/post-commit; mv .git moved; "
        "echo x > .ai/tools/x.sh; mv .ai moved; rm -f .env; touch ok",
    )

    assert (project.path / "ok").exists()
    assert SECRET not in output(result)
    assert (git / "config").read_text() == "before"
    assert list((git / "hooks").iterdir()) == []
    assert not (project.path / ".ai" / "tools" / "x.sh").exists()
    assert (project.path / ".env").read_text() == f"TOKEN={SECRET}\n"


def test_a_writable_home_does_not_include_what_rye_trusts(project: Project) -> None:
    project.grant({"tools": ["rye/bash/*"], "write": ["~"]})
    ai = project.user / ".ai"

    result = bash(
        project, f"touch {project.user}/ok; echo > {ai}/config.yaml; touch {ai}/x; ls {ai}/keys"
    )

    assert (project.user / "ok").exists()
    assert "grants" in (ai / "config.yaml").read_text()
    assert not (ai / "x").exists()
    assert "pem" not in output(result)


@pytest.mark.parametrize("key", ["read", "write"])
def test_a_link_in_a_checkout_does_not_widen_the_permissions(project: Project, key: str) -> None:
    (project.path / "out").symlink_to(project.user / ".ssh")

    result = run(project, "cat $o/id_ed25519", **{key: ["{project_path}/out"], "run": ["cat"]})

    assert result.metadata["error_type"] == "PermissionsError"
    assert result.error == (
        "'tools/says' may use {project_path}/out, but a link there leads out of the project, to "
        f"{project.user}/.ssh; replace the link by a folder"
    )


def test_a_worktree_can_not_name_the_repository_of_another_folder(
    project: Project, tmp_path: Path
) -> None:
    other = tmp_path / "other.git"
    other.mkdir()
    (other / "HEAD").write_text(SECRET)
    (project.path / ".git").write_text(f"gitdir: {other}\n")

    assert SECRET not in output(bash(project, f"cat {other}/HEAD"))


def test_a_project_that_contains_the_home_is_not_granted_as_a_whole(tmp_path: Path) -> None:
    project = Project(tmp_path, shipped_system=True)
    project.environ["HOME"] = str(project.path / "home")
    (project.path / "home").mkdir()
    (project.path / "home" / "secret").write_text(SECRET)

    result = bash(project, "echo started; cat home/secret; touch new")

    assert result.data["stdout"] == "started\n"
    assert SECRET not in output(result)
    assert not (project.path / "new").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may read it")
def test_root_does_not_read_the_hashes_of_passwords(project: Project) -> None:
    assert bash(project, "cat /etc/shadow").metadata["return_code"] == 1
    assert bash(project, "cat /etc/passwd").success


def test_root_does_not_read_private_settings_in_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private = tmp_path / "network" / "connections" / "home"
    private.parent.mkdir(parents=True)
    private.write_text(SECRET)
    private.chmod(0o600)
    for name in ("hosts", "network/names", "network/connections/README", "fonts/x/y"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    monkeypatch.setattr(base, "_SETTINGS", str(tmp_path))
    monkeypatch.setattr(base, "_for_root", [])
    monkeypatch.setattr(os, "geteuid", lambda: 0)

    granted = ("fonts", "hosts", "network/connections/README", "network/names")
    assert sorted(base.settings()) == [str(tmp_path / name) for name in granted]


def test_other_processes_are_neither_read_nor_killed(project: Project) -> None:
    result = bash(project, f"cat /proc/{os.getpid()}/environ; kill {os.getpid()}")
    assert result.metadata["return_code"] == 1
    assert result.data["stdout"] == ""


@pytest.mark.parametrize(
    ("limits", "script", "limit"),
    [
        ({"processes": 8}, "for i in 1 2 3 4 5 6 7 8 9; do sleep 9 & done; wait", "processes"),
        ({"memory": "64MiB"}, "python3 -c \"x = b'x' * 10**9\"", "memory"),
    ],
)
def test_a_tool_beyond_its_limits_is_ended(
    project: Project, limits: dict[str, Any], script: str, limit: str
) -> None:
    result = run(project, script, run=["system"], limits=limits)

    assert not result.success
    if limit == "processes":
        assert result.metadata["limit"] == limit
        assert f"see permissions.limits.{limit} of the tool" in str(result.error)


def test_the_next_tool_without_permissions_is_not_confined(project: Project) -> None:
    bash(project, "true")
    free = says(project, f"cat {project.user}/.ssh/id_ed25519", name="tools/free")
    assert project.run(free).data["stdout"] == SECRET


def test_a_runtime_does_not_confine_a_tool_without_permissions(project: Project) -> None:
    text = (
        '__executor_id__ = "rye/core/runtimes/python_runtime"\n'
        "def main(path):\n    return open(path).read()\n"
    )
    project.tool("free.py", text)
    project.tool("held.py", f"PERMISSIONS = {{}}\n{text}")
    parameters = {"path": str(project.user / ".ssh" / "id_ed25519")}

    assert project.run("free", parameters).data == SECRET
    assert not project.run("held", parameters).success


def test_a_link_to_hooks_cannot_be_replaced(project: Project) -> None:
    git = project.path / ".git"
    git.mkdir()
    for name in ("HEAD", "config"):
        (git / name).write_text("before")
    (project.path / "shared").mkdir()
    (git / "hooks").symlink_to("../shared")

    result = bash(
        project, "echo x > shared/pre-commit; rm .git/hooks && mkdir .git/hooks; touch ok"
    )

    assert result.metadata["confinement"]["missing"] == []
    assert (project.path / "ok").exists()
    assert (git / "hooks").is_symlink()
    assert list((project.path / "shared").iterdir()) == []


@pytest.mark.parametrize("place", [".venv", ".venv/bin", ".venv/lib"])
def test_a_link_that_a_tool_put_on_the_search_path_grants_nothing(
    project: Project, place: str
) -> None:
    programs = project.path / ".venv" / "bin"
    programs.mkdir(parents=True)
    project.environ["PATH"] = f"{programs}:{os.environ['PATH']}"
    secrets = project.user / ".ssh"
    (secrets / "bin").mkdir()

    assert bash(project, f"rm -rf {place}; ln -s {secrets} {place}").success
    result = bash(project, f"cat {secrets}/id_ed25519")

    assert (project.path / place).is_symlink()
    assert SECRET not in output(result)


def test_keys_beside_the_programs_of_the_user_cannot_be_read(project: Project) -> None:
    programs = project.user / ".cargo" / "bin"
    programs.mkdir(parents=True)
    (programs.parent / "credentials.toml").write_text(SECRET)
    program = programs / "greet"
    program.write_text("#!/bin/sh\necho hello\n")
    program.chmod(0o755)
    project.environ["PATH"] = f"{programs}:{os.environ['PATH']}"

    result = bash(project, f"greet; cat {programs.parent}/credentials.toml")

    assert result.data["stdout"] == "hello\n"
    assert SECRET not in output(result)


def test_a_tool_cannot_change_the_copies_that_tools_run_from(project: Project) -> None:
    """Not even one that may write the rest of the user's files."""
    project.tool("own.sh", OWN_COPY)
    result = project.run("own")
    copy = project.user / ".ai/cache/closures" / result.metadata["closure"] / "tool/own.sh"
    assert result.data["stdout"] == "tried\n"
    assert (project.user / ".ai/fine").exists()
    assert copy.read_text().endswith("echo tried\n")
    assert not (copy.parent / "new").exists()


def test_the_right_to_write_the_copies_is_refused(project: Project) -> None:
    result = run(project, "true", write=["~/.ai/cache/closures"])
    assert result.error == (
        f"'tools/says' may write {project.user}/.ai/cache/closures, where the copies are that "
        "tools run from; grant another folder"
    )
