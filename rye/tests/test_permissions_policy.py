"""What happens with permissions that cannot be enforced, and how the user widens permissions."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from confined_machine import needs
from loopback_http import LoopbackServer, respond
from rye.executor.run.execute import PrimitiveExecutor
from rye.executor.run.result import ExecutionResult
from rye_command import Completed, rye
from rye_console import Console
from rye_project import HTTP_CLIENT, Project, says

ENFORCED = ("fs", "net", "unix", "syscalls", "privileges", "read_only")
REFUSED = "'tools/says' declares permissions that cannot be enforced here: read_only ("


@pytest.fixture
def console(tmp_path: Path) -> Console:
    console = Console(tmp_path)
    console.project.settings()
    # The settings of a repository cannot be protected if they do not exist, on any machine.
    (console.path / ".git").mkdir()
    (console.path / ".git" / "HEAD").touch()
    says(console.project, "echo ran", permissions={"write": ["{project_path}"]})
    return console


def reason(console: Console) -> str:
    return f"{console.path}/.git/config does not exist"


def rye_run(console: Console, *arguments: str) -> Completed:
    """Run the command as a person does, in a process of its own."""
    return rye("run", *arguments, cwd=console.path, user=console.user, env=console.env)


def fingerprint(project: Project) -> str:
    says(project, "true", name="tools/any", permissions={})
    return str(project.run("tools/any").chain[0]["signer"])


@needs(*ENFORCED)
def test_what_cannot_be_enforced_is_refused_for_programs(console: Console) -> None:
    result = console.project.run("tools/says")

    assert result.metadata["error_type"] == "NotEnforcedError"
    assert result.error == (
        f"{REFUSED}{reason(console)}); the user decides whether it may run without them, see: "
        "rye permissions check tools/says"
    )


def test_the_refusal_does_not_contain_what_lifts_it(console: Console) -> None:
    text = str(console.project.run("tools/says").error)
    assert "--allow" not in text
    assert "unenforced" not in text


@needs(*ENFORCED)
def test_a_person_is_warned_in_one_line(console: Console) -> None:
    done = rye_run(console, "tools/says")
    assert (done.code, done.stdout) == (0, "ran\n")
    shown = reason(console).removeprefix(f"{console.path}/")
    assert done.stderr == f"rye: not enforced for this call: read_only ({shown})\n"


@needs(*ENFORCED)
def test_a_person_can_accept_it_for_one_call(console: Console) -> None:
    done = rye_run(console, "--allow", "unenforced", "tools/says")
    assert (done.code, done.stdout, done.stderr) == (0, "ran\n", "")


@needs(*ENFORCED)
def test_the_settings_of_the_user_can_refuse_it(console: Console) -> None:
    console.project.settings(permissions={"unenforced": "refuse"})
    done = rye_run(console, "tools/says")
    assert done.code == 4
    assert done.stderr.startswith(f"rye: {REFUSED}")
    assert rye_run(console, "--allow", "unenforced", "tools/says").code == 0


def test_the_settings_of_the_user_can_accept_it_everywhere(console: Console) -> None:
    console.project.settings(permissions={"unenforced": "allow"})
    result = console.project.run("tools/says")
    assert result.success
    confinement = result.metadata["confinement"]
    assert "read_only" in [one["part"] for one in confinement["missing"]]
    assert "read_only" not in confinement["enforced"]
    done = rye_run(console, "tools/says")
    assert (done.code, done.stdout, done.stderr) == (0, "ran\n", "")


def test_a_project_cannot_accept_it(console: Console) -> None:
    text = json.dumps({"permissions": {"unenforced": "allow"}, "grants": [{"tools": ["*"]}]})
    (console.path / ".ai" / "config.yaml").write_text(text)
    assert not console.project.run("tools/says").success


@needs("fs", "net")
def test_a_person_widens_for_one_call(console: Console, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a").write_text("content\n")
    data = tmp_path / "data"
    says(console.project, f"cat {data}/a && echo x > {data}/b && echo $WORD && id -u", "t/x",
         permissions={"run": ["cat"]})  # fmt: skip
    console.env["WORD"] = "word"

    assert rye_run(console, "t/x").code == 1
    allow = ["--allow", f"write={data}", "--allow", "env=WORD", "--allow=run=id"]
    done = rye_run(console, *allow, "t/x")

    assert (done.code, done.stdout.splitlines()[:2]) == (0, ["content", "word"]), done.stderr
    assert (data / "b").read_text() == "x\n"
    assert rye_run(console, "t/x").code == 1


@pytest.mark.parametrize(
    ("given", "issue"),
    [
        ("everything", "'everything' is not understood"),
        ("read", "'read' is not understood"),
        ("net=nowhere", "expected a host and a port, such as api.example.org:443, in"),
        ("env=*", "expected the name of a variable, such as TOKEN or AWS_*, in"),
    ],
)
def test_a_mistake_in_allow_is_explained(console: Console, given: str, issue: str) -> None:
    done = rye_run(console, "--allow", given, "tools/says")
    assert done.code == 2
    assert done.stderr.startswith(f"rye: invalid --allow: {issue}")


@needs("fs")
@pytest.mark.parametrize(
    ("grant", "works"),
    [
        ({"tools": ["t/*"]}, True),
        ({"tools": ["other/*"]}, False),
        ({"tools": ["t/x"], "signer": "0" * 16}, False),
        ({"tools": ["t/x"], "signer": "OWN"}, True),
    ],
)
def test_the_user_grants_more_for_good(tmp_path: Path, grant: dict[str, Any], works: bool) -> None:
    project = Project(tmp_path, shipped_system=True)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a").write_text("content\n")
    if "signer" in grant:
        grant = {**grant, "signer": grant["signer"].replace("OWN", fingerprint(project))}
    project.grant({**grant, "read": [str(tmp_path / "data")], "run": ["cat"]})
    tool = says(project, f"cat {tmp_path}/data/a", "t/x", permissions={})

    assert project.run(tool).success is works


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"grants": {}}, "expected a list in 'grants'"),
        ({"grants": [{}]}, "expected a list of tools, such as rye/bash/*, in 'grants[0].tools'"),
        ({"grants": [{"tools": ["*"], "red": []}]}, "expected read, write, net, env, run or"),
        ({"grants": [{"tools": ["*"], "read": ["x"]}]}, "expected a path that begins with"),
        ({"permissions": {"unenforced": "maybe"}}, "expected refuse or allow in"),
        ({"permissions": {"net": True}}, "expected {unenforced: …} in 'permissions'"),
    ],
)
def test_a_mistake_in_the_settings_refuses_confined_tools(
    console: Console, settings: dict[str, Any], fault: str
) -> None:
    console.project.settings(**settings)
    says(console.project, "echo free", "t/free")

    result = console.project.run("tools/says")

    assert result.metadata["error_type"] == "PermissionsError"
    assert str(result.error).startswith(f"{console.user}/.ai/config.yaml: {fault}")
    assert console.project.run("t/free").success


def test_settings_that_others_can_write_are_not_used(console: Console) -> None:
    console.project.settings(permissions={"unenforced": "allow"})
    (console.user / ".ai" / "config.yaml").chmod(0o666)
    assert "is writable by other users" in str(console.project.run("tools/says").error)


@needs("fs")
def test_the_settings_are_read_again_when_they_change(tmp_path: Path) -> None:
    project = Project(tmp_path, shipped_system=True)
    (tmp_path / "data").write_text("content\n")
    tool = says(project, f"cat {tmp_path}/data", permissions={"run": ["cat"]})

    async def calls() -> list[bool]:
        async with project.executor() as executor:
            before = await executor.execute(tool)
            project.grant({"tools": ["*"], "read": [str(tmp_path / "data")]})
            return [before.success, (await executor.execute(tool)).success]

    assert asyncio.run(calls()) == [False, True]


@needs(*ENFORCED)
@pytest.mark.parametrize(("listed", "works"), [("localhost", True), ("example.org", False)])
def test_a_program_reaches_only_the_hosts_that_it_declares(
    tmp_path: Path, listed: str, works: bool
) -> None:
    project = Project(tmp_path, shipped_system=True)
    with LoopbackServer() as server:
        server.on("/", respond(json={"ok": True}))
        port = server.url.rpartition(":")[2]
        program = (
            "import urllib.request as r; "
            f"print(r.urlopen('http://localhost:{port}/', timeout=5).read().decode())"
        )
        project.command(
            "t/get", "python3", "-c", program, permissions={"net": [f"{listed}:{port}"]}
        )
        result = project.run("t/get")
    assert result.success is works, f"{result.error} {result.data}"
    assert result.metadata["confinement"]["missing"] == []


def test_an_executor_can_be_limited_to_confined_tools(tmp_path: Path) -> None:
    project = Project(tmp_path, shipped_system=True)
    tool = says(project, "echo free")

    async def call() -> ExecutionResult:
        async with PrimitiveExecutor(context=project.context, confined_only=True) as executor:
            return await executor.execute(tool)

    result = asyncio.run(call())
    assert result.error == (
        "'tools/says' declares no permissions; only confined tools may run; use another tool"
    )


@pytest.mark.parametrize(
    ("net", "url", "fault"),
    [
        (False, "http://a.example/x", "sends a request, which its permissions do not allow"),
        (
            ["b.example:80"],
            "http://a.example/x",
            "to a.example:80, which is not in permissions.net",
        ),
        (["a.example:443"], "http://a.example/x", "to a.example:80, which is not in"),
        (["*.b.example:80"], "http://b.example/x", "to b.example:80, which is not in"),
        (["a.example:80"], "http://{host}/x", "the host of the URL is not fixed by the author"),
        (["a.example:80"], "http://a.example@b.example/", "to b.example:80, which is not in"),
    ],
)
def test_a_request_to_another_host_is_refused(
    tmp_path: Path, net: object, url: str, fault: str
) -> None:
    project = Project(tmp_path, shipped_system=True)
    schema = {"type": "object", "properties": {"host": {"type": "string"}}}
    project.yaml(
        "t/get",
        executor_id=HTTP_CLIENT,
        config={"method": "GET", "url": url},
        config_schema=schema,
        permissions={"net": net},
    )
    result = project.run("t/get", {"host": "c.example"})
    assert not result.success
    assert fault in str(result.error)
