"""The error of a confined tool names what it tried outside its permissions, and nothing else."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from lilux.primitives.subprocess import BlockingSubprocess, Confinement
from lilux.record import replaced
from rye.permissions.denials import Denial, denials, explanation
from rye_project import Project, says

PATH = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
DECIDES = "the user decides whether it may"
RUN = {"run": ["system"]}


@pytest.fixture(autouse=True)
def _can_confine() -> None:
    with BlockingSubprocess() as client:
        report = client.probe_confinement()
    if "fs" not in report.enforced:
        pytest.skip(f"not tried: {report.missing[0].reason}")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path, shipped_system=True, environ={"PATH": PATH, "LC_ALL": "C"})
    (project.user / ".config").mkdir()
    (project.user / "secret").write_text("the secret")
    settings = project.user / ".ai" / "config.yaml"
    settings.write_text("permissions: {unenforced: allow}\n")
    return project


def _run(project: Project, script: str, **permissions: Any) -> tuple[str, dict[str, Any]]:
    """Run a script that fails; return its error and the metadata."""
    result = project.run(says(project, script, permissions={**RUN, **permissions}))
    assert not result.success, result
    return result.error or "", dict(result.metadata)


def _tool(project: Project, name: str, text: str, permissions: str) -> str:
    head = (
        f'__version__ = "1.0.0"\n__executor_id__ = "python_runtime"\nPERMISSIONS = {permissions}\n'
    )
    project.tool(f"{name}.py", head + text)
    result = project.run(name)
    assert not result.success, result
    return result.error or ""


def test_a_refused_write_is_named(project: Project) -> None:
    error, metadata = _run(
        project, "echo token > $REAL/.config/hosts.yml".replace("$REAL", str(project.user))
    )
    told = "tried to write ~/.config/hosts.yml; not in permissions.write"
    assert error.endswith(f"{told}; {DECIDES}")
    assert metadata["denied"] == told
    assert metadata["hint"] == DECIDES
    assert "rye" not in metadata["denied"]


def test_the_text_for_a_person_names_the_command_that_explains(project: Project) -> None:
    from rye.cli.run.result_text import notes_of

    script = f"echo token > {project.user}/.config/hosts.yml"
    result = project.run(says(project, script, permissions=RUN))
    (note,) = notes_of(result)
    told = "tried to write ~/.config/hosts.yml; not in permissions.write"
    assert note == f"{told}; see: rye permissions tools/says"


def test_a_refused_read_is_named(project: Project) -> None:
    error, metadata = _run(project, f"cat {project.user}/secret")
    mounted = metadata["confinement"]["enforced"].get("attributes") == "namespace"
    told = (
        "read ~/secret; not in permissions.read"
        if mounted
        else "open ~/secret; not in permissions.read or permissions.write"
    )
    assert error.endswith(f"; tried to {told}; {DECIDES}")
    assert "the secret" not in error


def test_a_refused_program_is_named(project: Project) -> None:
    own = project.path / "own"
    own.write_text("#!/bin/sh\necho hi\n")
    own.chmod(0o755)
    error, _ = _run(project, "o=o; ./${o}wn", read=["{project_path}"])
    assert error.endswith(f"tried to run {own.resolve()}; not in permissions.run; {DECIDES}")


def test_a_refused_python_tool_is_explained(project: Project) -> None:
    text = f"def main():\n    open('{project.user}/.config/new', 'w')\n"
    error = _tool(project, "py", text, "{}")
    assert error.endswith(f"tried to write ~/.config/new; not in permissions.write; {DECIDES}")


def test_a_refused_program_of_a_python_tool_is_named(project: Project) -> None:
    text = "import subprocess\ndef main():\n    subprocess.run(['ls'], check=True)\n"
    error = _tool(project, "py", text, "{}")
    program = Path(shutil.which("ls", path=PATH) or "").resolve()
    assert error.endswith(f"tried to run {program}; not in permissions.run; {DECIDES}")


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_a_refused_node_tool_is_explained(project: Project) -> None:
    script = f"node -e \"require('fs').writeFileSync('{project.user}/.config/n', '')\""
    error, _ = _run(project, script)
    assert error.endswith(f"tried to write ~/.config/n; not in permissions.write; {DECIDES}")


def test_a_refused_network_is_named(project: Project) -> None:
    text = (
        "import urllib.request\ndef main():\n"
        "    urllib.request.urlopen('http://host.invalid.example')\n"
    )
    error = _tool(project, "py", text, "{}")
    assert error.endswith(f"tried to connect to the network; not in permissions.net; {DECIDES}")
    text = "import socket\ndef main():\n    socket.create_connection(('127.0.0.1', 9))\n"
    error = _tool(project, "other", text, "{}")
    assert error.endswith(f"tried to open a socket; not in permissions.net; {DECIDES}")


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_names_the_host(project: Project) -> None:
    error, _ = _run(project, "git clone https://host.invalid/x", write=["{project_path}"])
    assert error.endswith(f"tried to connect to host.invalid; not in permissions.net; {DECIDES}")


def test_a_protected_file_is_named(project: Project) -> None:
    (project.path / ".ai" / "own").write_text("")
    script = "echo x > .ai/own"
    error, metadata = _run(project, script, write=["{project_path}"])
    if "read_only" not in metadata["confinement"]["enforced"]:
        pytest.skip("not tried: nothing is read-only on this machine")
    path = (project.path / ".ai" / "own").resolve()
    assert error.endswith(f"tried to write {path}; read-only inside permissions.write; {DECIDES}")


def test_an_ordinary_failure_is_not_blamed_on_the_permissions(project: Project) -> None:
    own = project.path / "own"
    own.write_text("")
    own.chmod(0)
    for script in (
        "echo 'own: Permission denied' >&2; exit 1",
        f"echo 'sh: 1: cannot open {own}: Permission denied' >&2; exit 1",
        "echo 'Permission denied' >&2; exit 1",
        "exit 1",
        f"echo 'see {project.user}/secret' >&2; exit 1",
        "echo \"PermissionError: [Errno 13] Permission denied: '/dev/null'\" >&2; exit 1",
    ):
        error, metadata = _run(project, script, write=["{project_path}"])
        assert "permissions" not in error, script
        assert "denied" not in metadata


def test_a_success_is_not_explained(project: Project) -> None:
    script = f"cat {project.user}/secret; true"
    result = project.run(says(project, script, permissions=RUN))
    assert result.success
    assert "denied" not in result.metadata


def test_an_unconfined_tool_is_not_explained(project: Project) -> None:
    result = project.run(
        says(project, f"echo '{project.user}/secret: Permission denied' >&2; exit 1")
    )
    assert not result.success
    assert "denied" not in result.metadata


def test_a_secret_in_a_path_is_not_in_the_text(project: Project) -> None:
    folder = project.user / "s3cr3t-t0ken"
    folder.mkdir()
    project.environ["THE_TOKEN"] = str(folder)
    project.command(
        "told",
        "/bin/sh",
        "-c",
        'echo x > "$0/new"',
        "${THE_TOKEN}",
        permissions={**RUN, "env": ["THE_TOKEN"]},
    )
    result = project.run("told")
    assert not result.success
    assert "s3cr3t-t0ken" not in result.metadata["denied"]
    assert result.metadata["denied"].startswith("tried to write ${THE_TOKEN}/new;")


# What the programs print, without running them


def _policy(tmp_path: Path) -> Confinement:
    return Confinement(read=("/usr",), write=(str(tmp_path / "own"),))


@pytest.mark.parametrize(
    ("line", "tried"),
    [
        ("cat: {out}/file: Permission denied", "open"),
        ("rm: cannot remove '{out}/file': Permission denied", "write"),
        ("sh: 1: cannot create {out}/new: Permission denied", "write"),
        ("sh: 1: cannot create ../out/new: Read-only file system", "write"),
        ("Error: EACCES: permission denied, mkdir '{out}/new'", "write"),
        ("open {out}/file: permission denied", "open"),
        ("mkdir: cannot create directory \u2018{out}/new\u2019: Permission denied", "write"),
        ("fatal: could not open '{out}/file' for reading: Permission denied", "open"),
        ("error: {out}/run: Operation not permitted", "run"),
        ("Error: spawn {out}/run EACCES", "run"),
    ],
)
def test_lines_of_many_programs_are_understood(tmp_path: Path, line: str, tried: str) -> None:
    tmp_path = tmp_path.resolve()
    for name in ("own", "out"):
        (tmp_path / name).mkdir()
    (tmp_path / "out/file").write_text("")
    (tmp_path / "out/run").write_text("")
    (tmp_path / "out/run").chmod(0o755)
    found = denials(
        line.format(out=tmp_path / "out"), _policy(tmp_path), str(tmp_path / "own"), "/usr/bin"
    )
    assert [one.tried for one in found] == [tried]
    assert found[0].target.startswith(str(tmp_path / "out/"))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            "OSError: Tunnel connection failed: 403 b.org:443 is not an allowed host",
            "connect to b.org:443",
        ),
        ("curl: (6) Could not resolve host: b.org", "connect to b.org"),
        ("curl: (6) Could not resolve host: a.org", ""),
        ("curl: (6) Could not resolve host: x.c.org", ""),
        ("Temporary failure in name resolution", ""),
        ("curl: (56) CONNECT tunnel failed, response 403", "connect to another host"),
        ("HTTP Error 403: Forbidden", ""),
    ],
)
def test_hosts_that_are_not_in_a_list_are_named(line: str, told: str) -> None:
    hosts: Any = ("a.org:443", "*.c.org:443")
    policy = Confinement(net=hosts)
    expected = f"tried to {told}; not in permissions.net" if told else ""
    assert explanation(denials(line, policy, "/", ""), "/") == expected


def test_a_unix_socket_is_named(tmp_path: Path) -> None:
    path = str(tmp_path.resolve() / "s")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        line = f"permission denied while trying to connect to the daemon at unix://{path}"
        found = denials(line, _policy(tmp_path), "/", "")
    assert explanation(found, "/") == f"tried to connect to {path}; no unix in permissions.net"


def test_what_the_user_may_not_do_either_is_not_blamed(tmp_path: Path) -> None:
    policy = _policy(tmp_path)
    lines = (
        "sh: 1: cannot create /usr/new: Permission denied",
        "cat: /etc/shadow: Permission denied",
        "touch: cannot touch '/etc/passwd': Permission denied",
    )
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            if os.geteuid() == 0:
                os.setresuid(65534, 65534, 65534)
            blamed = [one for line in lines for one in denials(line, policy, "/", "")]
            os._exit(len(blamed))
        os._exit(99)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_the_program_that_reports_an_error_is_not_blamed(tmp_path: Path) -> None:
    # Root may write it.
    line = "/usr/bin/env: line 1: kill: (1) - Operation not permitted"
    policy = replaced(_policy(tmp_path), execute=(os.path.realpath("/usr"),))
    assert denials(line, policy, "/", "", mounted=True) == []


def test_many_denials_are_counted() -> None:
    found = [Denial("write", f"/home/me/{n}", "write") for n in range(5)]
    assert explanation(found, "/home/me") == (
        "tried to write ~/0; not in permissions.write; "
        "tried to write ~/1; not in permissions.write; "
        "tried to write ~/2; not in permissions.write; and 2 more"
    )
