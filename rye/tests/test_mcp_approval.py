"""The user's rules decide what agents may run without asking."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from mcp.types import CallToolResult, ElicitResult
from mcp_session import ERAS, HANDSHAKE, STATELESS, connected, over_http, text_of
from rye.cli.output.errors import exit_code_of_name
from rye.errors import PermissionsError
from rye.mcp.approval.rules import ALWAYS, ASK, NEVER, SESSION, AgentRules
from rye.mcp.settings import ServerSettings
from rye_project import Project

SECONDS = 30
USER_DECIDES = "the user decides about that: show them this error"
ACCEPT = ElicitResult(action="accept", content={})


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.command(
        "notes/add",
        "/bin/echo",
        "{text}",
        description="Add a note",
        config_schema={
            "properties": {
                "text": {"type": "string"},
                "token": {"type": "string", "format": "password"},
            }
        },
    )
    return project


def rules(project: Project, *agents: dict[str, Any]) -> None:
    project.settings(agents=list(agents), permissions={"unenforced": "allow"})


class User:
    """Answers every question alike, and remembers the texts."""

    def __init__(self, answer: ElicitResult) -> None:
        self.asked: list[str] = []
        self._answer = answer

    async def __call__(self, _context: object, params: Any) -> ElicitResult:
        self.asked.append(params.message)
        return self._answer


def call(
    project: Project,
    user: User | None,
    era: str = HANDSHAKE,
    settings: ServerSettings | None = None,
    times: int = 1,
    **parameters: Any,
) -> CallToolResult:
    async def run() -> CallToolResult:
        options: Any = {} if user is None else {"elicitation_callback": user}
        async with connected(project, era, settings, **options) as client:
            async with asyncio.timeout(SECONDS):
                for _ in range(times):
                    given = {"item_id": "notes/add", "parameters": {"text": "hi", **parameters}}
                    result = await client.call_tool("execute", given)
        return result

    return asyncio.run(run())


def refusal(result: CallToolResult, error_type: str) -> str:
    assert result.is_error
    assert result.structured_content is not None
    assert result.structured_content["error"]["type"] == error_type
    return text_of(result)


def decided(project: Project, item_id: str, settings: ServerSettings, **hints: bool) -> str:
    return AgentRules(project.context, settings).decide(item_id, hints).allow


def test_the_first_rule_that_matches_decides(project: Project) -> None:
    rules(
        project,
        {"tools": ["rye/fs/read", "notes/*"], "allow": "always"},
        {"tools": ["rye/bash/bash"], "allow": "never"},
        {"tools": ["*"], "when": {"destructive": True}, "allow": "ask"},
    )
    none = ServerSettings()
    assert decided(project, "notes/remove", none) == ALWAYS
    assert decided(project, "rye/bash/bash", none, read_only=True) == NEVER
    assert decided(project, "other", none, destructive=False) == ALWAYS
    assert decided(project, "other", none, destructive=True) == ASK


def test_a_tool_without_hints_is_destructive_and_a_reading_one_is_not(project: Project) -> None:
    rules(project, {"tools": ["*"], "when": {"destructive": True}, "allow": "ask"})
    assert decided(project, "any", ServerSettings()) == ASK
    assert decided(project, "any", ServerSettings(), read_only=True) == ALWAYS
    # A tool that contradicts itself is taken at its worse word.
    assert decided(project, "any", ServerSettings(), read_only=True, destructive=True) == ASK


def test_options_override_the_config_and_the_longest_glob_decides(project: Project) -> None:
    rules(project, {"tools": ["*"], "allow": "session"})
    settings = ServerSettings(ask=("*", "a/b"), allow=("a/*", "c"), deny=("a/secret*", "c"))
    assert decided(project, "z", settings) == ASK
    assert decided(project, "a/x", settings) == ALWAYS
    assert decided(project, "a/b", settings) == ASK
    assert decided(project, "a/secrets", settings) == NEVER
    assert decided(project, "c", settings) == NEVER
    assert decided(project, "z", ServerSettings(allow=("y",))) == SESSION


@pytest.mark.parametrize(
    ("agents", "message"),
    [
        ({}, "expected a list of rules in 'agents'"),
        ([{"tool": ["*"]}], "expected only tools, when, allow in 'agents[0]'"),
        (
            [{"tools": "*", "allow": "ask"}],
            "expected a list of tools, such as rye/bash/*, in 'agents[0].tools'",
        ),
        (
            [{"tools": ["*"], "allow": "sometimes"}],
            "expected one of always, ask, session, never in 'agents[0].allow'",
        ),
        (
            [{"tools": ["*"], "when": {"costly": True}, "allow": "ask"}],
            "expected only read_only, destructive, idempotent, open_world in 'agents[0].when'",
        ),
        (
            [{"tools": ["*"], "when": {"destructive": "yes"}, "allow": "ask"}],
            "expected true or false in 'agents[0].when'",
        ),
    ],
)
def test_a_rule_that_cannot_be_read_is_refused(project: Project, agents: Any, message: str) -> None:
    project.settings(agents=agents)
    path = project.user / ".ai" / "config.yaml"
    with pytest.raises(PermissionsError) as caught:
        AgentRules(project.context, ServerSettings()).current()
    assert str(caught.value) == f"{path}: {message}; correct it"


def test_no_tool_runs_while_the_rules_cannot_be_read(project: Project) -> None:
    project.settings(agents={"tools": "*"}, permissions={"unenforced": "allow"})
    assert "expected a list of rules" in refusal(call(project, None), "PermissionsError")


@pytest.mark.parametrize("era", ERAS)
def test_the_question_shows_tool_parameters_permissions_and_signer(
    project: Project, era: str
) -> None:
    rules(project, {"tools": ["notes/*"], "allow": "ask"})
    user = User(ACCEPT)
    text = 'first\nSigned by: you "\u202e'
    result = call(project, user, era, text=text, token="hunter2")
    assert not result.is_error, text_of(result)
    (asked,) = user.asked
    *lines, signer = asked.splitlines()
    assert lines == [
        "May the agent run notes/add?",
        "Add a note",
        "",
        "Parameters:",
        '  text: "first\\nSigned by: you \\"\\u202e"',
        "  token: (secret, not shown)",
        "",
        "It may:",
        "  everything that you can do (unconfined)",
        "",
    ]
    assert signer.startswith("Signed by: you (")


def test_the_permissions_of_a_confined_tool_are_shown_in_words(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.command("notes/add", "/bin/echo", "hi", permissions={"read": ["{project_path}"]})
    rules(project, {"tools": ["*"], "allow": "ask"})
    user = User(ElicitResult(action="cancel"))
    call(project, user)
    assert "It may:\n  reads: the project\n  writes: nothing\n  network: none\n" in user.asked[0]


def test_a_long_value_says_how_much_is_not_shown(project: Project) -> None:
    rules(project, {"tools": ["*"], "allow": "ask"})
    user = User(ElicitResult(action="decline"))
    call(project, user, text="a" * 3000 + "z")
    assert "a … (1503 characters are not shown) … a" in user.asked[0]
    assert 'az"\n' in user.asked[0]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_what_the_user_declines_does_not_run(project: Project, era: str, action: Any) -> None:
    rules(project, {"tools": ["*"], "allow": "ask"})
    message = refusal(call(project, User(ElicitResult(action=action)), era), "DeclinedError")
    assert message == (
        "the user declined to run 'notes/add'; do something else, or ask the user what to do"
    )


@pytest.mark.parametrize("era", ERAS)
def test_a_client_that_cannot_ask_is_refused_without_a_way_around(
    project: Project, era: str, caplog: pytest.LogCaptureFixture
) -> None:
    rules(project, {"tools": ["*"], "allow": "ask"})
    message = refusal(call(project, None, era), "ApprovalError")
    reason = "'notes/add' needs the user's approval, and this client cannot ask the user"
    assert message == f"{reason}; {USER_DECIDES}"
    path = project.user / ".ai" / "config.yaml"
    (logged,) = caplog.messages
    assert logged == (
        f"{reason}; open a page that can, with: rye ui --run, use a client that supports "
        f"elicitation, or change agents[0] in {path}"
    )


def test_a_denied_tool_does_not_run_and_nobody_is_asked(project: Project) -> None:
    user = User(ACCEPT)
    result = call(project, user, settings=ServerSettings(deny=("notes/*",)))
    reason = "'notes/add' may not be run by agents"
    assert refusal(result, "ApprovalError") == f"{reason}; {USER_DECIDES}"
    assert user.asked == []
    assert exit_code_of_name("ApprovalError") == exit_code_of_name("DeclinedError") == 4


@pytest.mark.parametrize(("allow", "asked"), [("ask", 3), ("session", 1), ("always", 0)])
def test_how_often_the_user_is_asked_in_one_session(
    project: Project, allow: str, asked: int
) -> None:
    rules(project, {"tools": ["*"], "allow": allow})
    user = User(ACCEPT)
    assert not call(project, user, times=3).is_error
    assert len(user.asked) == asked


def test_an_approval_for_a_session_ends_with_it_and_over_http_needs_one(project: Project) -> None:
    rules(project, {"tools": ["*"], "allow": "session"})

    async def run() -> dict[str, int]:
        counted = {}
        given = {"item_id": "notes/add", "parameters": {"text": "hi"}}
        async with over_http(project) as server, asyncio.timeout(SECONDS):
            for name, era in (("first", HANDSHAKE), ("second", HANDSHAKE), ("none", STATELESS)):
                user = User(ACCEPT)
                async with server.client(era, elicitation_callback=user) as client:
                    for _ in range(2):
                        assert not (await client.call_tool("execute", given)).is_error
                counted[name] = len(user.asked)
        return counted

    assert asyncio.run(run()) == {"first": 1, "second": 1, "none": 2}


def test_a_tool_that_changes_while_the_user_thinks_does_not_run(project: Project) -> None:
    rules(project, {"tools": ["*"], "allow": "ask"})

    class Slow(User):
        async def __call__(self, context: object, params: Any) -> ElicitResult:
            project.command("notes/add", "/bin/echo", "something else")
            return await super().__call__(context, params)

    message = refusal(call(project, Slow(ACCEPT)), "DeclinedError")
    assert message == ("'notes/add' changed while the call was waiting; call it again")


def test_the_rules_are_about_the_full_id_whatever_the_agent_writes(project: Project) -> None:
    rules(project, {"tools": ["notes/add"], "allow": "never"})

    async def run() -> CallToolResult:
        async with connected(project) as client:
            return await client.call_tool("execute", {"item_id": "add"})

    assert "'notes/add' may not be run" in refusal(asyncio.run(run()), "ApprovalError")


def test_a_dry_run_needs_no_approval(project: Project) -> None:
    rules(project, {"tools": ["*"], "allow": "never"})

    async def run() -> CallToolResult:
        async with connected(project) as client:
            given = {"item_id": "notes/add", "parameters": {"text": "hi"}, "dry_run": True}
            return await client.call_tool("execute", given)

    assert not asyncio.run(run()).is_error
