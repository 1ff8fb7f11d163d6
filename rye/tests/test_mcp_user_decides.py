"""What an agent reads says that the user decides, and contains no command that lifts a limit."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import rye.errors
from confined_machine import needs
from lilux.primitives.signing import generate_keypair, save_keypair
from mcp.types import CallToolResult
from mcp_session import connected, text_of
from rye.errors import RyeError
from rye.mcp.content import Presenter, protocol_error
from rye.mcp.outputs import Outputs
from rye.mcp.protocol.types import TextContent
from rye_project import SUBPROCESS, Project, says

ASK = "the user decides about that: show them this error"
LIFTS = re.compile(
    r"rye (?:sign|lock(?! --check)|trust|permissions)\b|--allow(?!-)|chmod [g0-9]|_command\("
)
SOURCES = Path(rye.errors.__file__).parent


def _tree(kind: type[RyeError] = RyeError) -> Iterator[type[RyeError]]:
    yield kind
    for one in kind.__subclasses__():
        yield from _tree(one)


KINDS = {one.__name__: one for one in _tree()}


def _refusal(kind: type[RyeError], hint: str) -> RyeError:
    values: dict[str, Any] = {"path": Path("item"), "lockfile": Path("lock"), "issues": ["wrong"]}
    required = [
        name for name, one in inspect.signature(kind).parameters.items() if one.default is one.empty
    ]
    return kind(**{name: values.get(name, "refused") for name in required}, hint=hint)


def test_each_branch_of_the_tree_says_whether_the_user_decides() -> None:
    undecided = [
        one.__name__ for one in RyeError.__subclasses__() if "decided_by_user" not in vars(one)
    ]
    assert undecided == []


@pytest.mark.parametrize("kind", KINDS.values())
@pytest.mark.parametrize("hint", ["accept it with: rye sign it", ""])
def test_the_hint_of_an_error_that_the_user_decides_is_not_sent(
    kind: type[RyeError], hint: str
) -> None:
    error = _refusal(kind, hint)
    content = Presenter(Outputs()).error(error)
    (text,) = content.content
    assert isinstance(text, TextContent)
    structured = content.structured_content or {}
    expected = ASK if kind.decided_by_user else hint
    message = f"{error.reason}; {expected}" if expected else error.reason
    assert structured["error"]["hint"] == expected
    assert structured["error"]["message"] == text.text == message
    assert str(protocol_error(error)) == message


def test_only_hints_that_are_not_sent_contain_such_a_command() -> None:
    found = []
    for path in SOURCES.rglob("*.py"):
        if path.is_relative_to(SOURCES / "cli"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and path.name != "errors.py":
                # The server finds the class of an error by its name in ``rye.errors``.
                assert not KINDS.keys() & {ast.unparse(base) for base in node.bases}, node.name
            if isinstance(node, ast.Call) and (kind := KINDS.get(ast.unparse(node.func))):
                texts = [*node.args, *[one.value for one in node.keywords if one.arg != "hint"]]
                if not kind.decided_by_user:
                    texts += [one.value for one in node.keywords if one.arg == "hint"]
                found += [str(path) for text in texts if LIFTS.search(ast.unparse(text))]
    assert found == []


def _unsigned(project: Project) -> None:
    path = project.command("it", "/bin/echo")
    path.write_text(path.read_text().split("\n", 1)[1])


def _changed(project: Project) -> None:
    path = project.command("it", "/bin/echo")
    path.write_text(path.read_text().replace("echo", "cat"))


def _untrusted(project: Project) -> None:
    project.command("it", "/bin/echo")
    for file in (project.user / ".ai" / "keys").iterdir():
        file.unlink()
    save_keypair(*generate_keypair(), project.user / ".ai" / "keys")


def _upgraded(project: Project) -> None:
    project.command("it", "/bin/echo")
    assert project.run("it").success
    project.command("it", "/bin/echo", "more")


def _tampered(project: Project) -> None:
    project.command("it", "/bin/echo")
    assert project.run("it").success
    _changed(project)


def _unpinned(project: Project) -> None:
    (project.path / "program").write_text("#!/bin/sh\n")
    (project.path / "program").chmod(0o755)
    project.command("it", "./program")


def _unapproved(project: Project) -> None:
    project.fresh_clone = True
    (project.path / ".env").write_text("TOKEN=planted\n")
    config = {"command": "/bin/echo", "args": ["${TOKEN}"]}
    project.yaml("it", executor_id=SUBPROCESS, config=config)


def _with_open_keys(project: Project) -> None:
    project.command("it", "/bin/echo")
    (project.user / ".ai" / "keys").chmod(0o777)


def _with_an_open_approval(project: Project) -> None:
    _unapproved(project)
    project.fresh_clone = False
    _ = project.context
    project.fresh_clone = True
    (project.user / ".ai" / "approved_projects").chmod(0o777)


def _not_enforced(project: Project) -> None:
    project.settings()
    # The settings of a repository cannot be protected if they do not exist, on any machine.
    (project.path / ".git").mkdir()
    (project.path / ".git" / "HEAD").touch()
    project.command("it", "/bin/echo", permissions={"write": ["{project_path}"]})


def _not_permitted(project: Project) -> None:
    project.yaml(
        "it",
        executor_id="rye/core/primitives/http_client",
        config={"method": "GET", "url": "https://example.org/"},
        permissions={},
    )


def _call(project: Project) -> CallToolResult:
    async def run() -> CallToolResult:
        async with connected(project) as client:
            return await client.call_tool("execute", {"item_id": "it"})

    return asyncio.run(run())


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, shipped_system=True)


def test_rules_that_others_can_write_refer_to_the_user(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    project.command("it", "/bin/echo")
    project.settings()
    config = project.user / ".ai" / "config.yaml"
    config.chmod(0o666)
    reason = f"{config} is writable by other users (mode 0666)"
    assert text_of(_call(project)) == f"{reason}; {ASK}"
    assert f"{reason}; fix it with: chmod go-w {config}" in caplog.messages


@pytest.mark.parametrize(
    ("prepare", "error_type", "reason"),
    [
        (_unsigned, "UnsignedError", "it is not signed"),
        (_changed, "ChangedError", "it was changed after key"),
        (_untrusted, "UntrustedKeyError", "which you do not trust"),
        (_upgraded, "LockUpgradeError", "validly signed: an upgrade"),
        (_tampered, "LockTamperedError", "an unsigned edit or tampering"),
        (_unpinned, "UnpinnedError", "neither signed nor pinned"),
        (_unapproved, "UnapprovedProjectError", "have not approved the unsigned parts"),
        (_not_enforced, "NotEnforcedError", "cannot be enforced here"),
        (_not_permitted, "PermissionsError", "which its permissions do not allow"),
        (_with_open_keys, "KeyStoreError", "keys is writable by other users"),
        (_with_an_open_approval, "UnapprovedProjectError", "projects is writable by other users"),
    ],
)
def test_a_refused_call_refers_to_the_user(
    project: Project,
    prepare: Callable[[Project], None],
    error_type: str,
    reason: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    prepare(project)
    content = _call(project)
    (logged,) = [one for one in caplog.messages if reason in one]
    assert logged == project.run("it").error
    assert content.is_error
    error = (content.structured_content or {})["error"]
    assert error["type"] == error_type
    assert error["hint"] == ASK
    assert reason in text_of(content)
    assert text_of(content).startswith(error["message"])
    assert error["message"].endswith(f"; {ASK}")
    assert not LIFTS.search(content.model_dump_json())


@needs("fs")
def test_a_denial_refers_to_the_user(project: Project, caplog: pytest.LogCaptureFixture) -> None:
    project.settings(permissions={"unenforced": "allow"})
    says(project, f"echo x > {project.user}/file", "it", permissions={"run": ["system"]})
    content = _call(project)
    told = "tried to write ~/file; not in permissions.write; the user decides whether it may"
    assert told in text_of(content)
    logged = "'it' tried something that its permissions do not include; see: rye permissions it"
    assert caplog.messages == [logged]
    assert not LIFTS.search(content.model_dump_json())


def test_a_variable_that_the_tool_does_not_ask_for_refers_to_the_user(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    (project.path / ".env").write_text("TOKEN=planted\n")
    says(project, "echo no TOKEN >&2; exit 1", "it")
    content = _call(project)
    told = "the project's .env sets TOKEN, which 'it' does not ask for"
    assert f"no TOKEN; {told}; the user decides whether it may" in text_of(content)
    (logged,) = [one for one in caplog.messages if told in one]
    assert logged.startswith(f"{told}: add")
    assert LIFTS.search(logged)
    assert not LIFTS.search(content.model_dump_json())
