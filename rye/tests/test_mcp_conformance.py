"""The official conformance suite of MCP, for both revisions, against ``rye mcp --http``.

It is installed with npm for the test, and needs Node 22: see the dependency group ``conformance``.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from mcp_session import over_http
from node_packages import SECONDS, install
from rye.mcp.settings import ServerSettings
from rye_project import Project

SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"

REPOSITORY = Path(__file__).parents[2]

NO_PROMPTS = "a project of tools has no prompts"
NO_COMPLETION = "arguments of tools cannot be completed"
NO_RESOURCES = "a project of tools has no fixed resources"
NO_SAMPLING = "a tool cannot use the model or the roots of the client, which are deprecated"
REQUIRES_SAMPLING = "it expects that the missing capability is sampling; here it is elicitation"
NO_RESUMING = "only warnings: a call ends when its client disconnects, so no stream is resumed"

BOTH = {
    "completion-complete": NO_COMPLETION,
    "prompts-get-embedded-resource": NO_PROMPTS,
    "prompts-get-simple": NO_PROMPTS,
    "prompts-get-with-args": NO_PROMPTS,
    "prompts-get-with-image": NO_PROMPTS,
    "prompts-list": NO_PROMPTS,
    "resources-read-binary": NO_RESOURCES,
    "resources-read-text": NO_RESOURCES,
    "resources-templates-read": NO_RESOURCES,
}
EXPECTED_FAILURES = {
    "2025-11-25": {
        **BOTH,
        "resources-subscribe": NO_RESOURCES,
        "resources-unsubscribe": NO_RESOURCES,
        "server-sse-polling": NO_RESUMING,
        "tools-call-sampling": NO_SAMPLING,
    },
    "2026-07-28": {
        **BOTH,
        "caching": NO_PROMPTS,
        "input-required-result-basic-list-roots": NO_SAMPLING,
        "input-required-result-basic-sampling": NO_SAMPLING,
        "input-required-result-capability-check": NO_SAMPLING,
        "input-required-result-multiple-input-requests": NO_SAMPLING,
        "input-required-result-non-tool-request": NO_PROMPTS,
        "server-stateless": REQUIRES_SAMPLING,
    },
}

SCHEMA_2020_12: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
IMAGE = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}
FILE = {
    "type": "resource",
    "resource": {"uri": "test://file", "mimeType": "text/plain", "text": "some text"},
}
CONTENT = {
    "test_image_content": [IMAGE],
    "test_audio_content": [AUDIO],
    "test_embedded_resource": [FILE],
    "test_multiple_content_types": [{"type": "text", "text": "some text"}, IMAGE, FILE],
}
TEXT = {"type": "string"}
FIELDS_WITH_DEFAULTS = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {
        "type": "string",
        "enum": ["active", "inactive", "pending"],
        "default": "active",
    },
    "verified": {"type": "boolean", "default": True},
}
OPTIONS = ["option1", "option2", "option3"]
TITLED = [{"const": f"value{n}", "title": f"Choice {n}"} for n in (1, 2, 3)]
FIELDS_WITH_CHOICES = {
    "untitledSingle": {"type": "string", "enum": OPTIONS},
    "titledSingle": {"type": "string", "oneOf": TITLED},
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
    "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
}
QUESTIONS: dict[str, list[dict[str, Any]]] = {
    "test_elicitation": [{"username": TEXT, "email": TEXT}],
    "test_elicitation_sep1034_defaults": [FIELDS_WITH_DEFAULTS],
    "test_elicitation_sep1330_enums": [FIELDS_WITH_CHOICES],
    "test_input_required_result_elicitation": [{"name": TEXT}],
    "test_input_required_result_multi_round": [{"name": TEXT}, {"color": TEXT}],
    "test_input_required_result_request_state": [{"ok": {"type": "boolean"}}],
    "test_input_required_result_tampered_state": [{"ok": {"type": "boolean"}}],
    "test_streaming_elicitation": [{"ok": {"type": "boolean"}}],
}
"""The forms that a tool shows, one after the other."""
HEADER_SCHEMA = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
}

ONLY = {
    "caching": ["sep-2549-prompts-list-caching-hints"],
    "server-sse-polling": ["server-sse-priming-event", "server-sse-retry-field"],
    "server-stateless": ["sep-2575-server-rejects-undeclared-capability"],
}
"""The only checks that fail in a scenario of which a project of tools serves the rest."""


def asking(forms: list[dict[str, Any]]) -> str:
    """A script that shows each form to the user, and prints the answers."""
    lines = []
    for fields in forms:
        schema = {"type": "object", "properties": fields}
        asked = {"name": "user_name", "message": "Please answer", "schema": schema}
        question = json.dumps({"ask": asked})
        lines.append(f"""echo '{question}' >&"$RYE_CHANNEL"; read -r answer <&"$RYE_CHANNEL" """)
        lines.append('echo "state-ok $answer"')
    return "\n".join(lines)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with the tools that the scenarios call."""
    project = Project(tmp_path)
    scripts = {
        "test_simple_text": "printf 'This is a simple text response for testing.'",
        "test_error_handling": "echo 'This tool intentionally returns an error' >&2; exit 1",
        "test_tool_with_logging": "for n in 1 2 3; do echo log $n >&2; sleep 0.1; done",
        "test_logging_tool": "echo log >&2",
        "test_tool_with_progress": "for n in 0 50 100; do echo $n; sleep 0.3; done",
    }
    for item_id, script in scripts.items():
        project.command(item_id, "/bin/sh", "-c", script, description="For one scenario.")
    for item_id, content in CONTENT.items():
        answer = json.dumps({"content": content})
        project.command(item_id, "/bin/echo", answer, description="For one scenario.")
    for item_id, forms in QUESTIONS.items():
        project.command(item_id, "/bin/sh", "-c", asking(forms), description="For one scenario.")
    project.command(
        "test_missing_capability", "/bin/true", description="For one scenario.", needs_user=True
    )
    for item_id, schema in (
        ("json_schema_2020_12_tool", SCHEMA_2020_12),
        ("test_header", HEADER_SCHEMA),
    ):
        project.command(item_id, "/bin/true", description="A schema.", config_schema=schema)
    add_a_tool_that_changes_the_list(project, tmp_path)
    return project


def add_a_tool_that_changes_the_list(project: Project, folder: Path) -> None:
    """It exchanges two signed versions of another tool."""
    other, script = folder / "other.yaml", folder / "exchange.sh"
    project.command("changing", "/bin/true", description="One version.").rename(other)
    current = project.command("changing", "/bin/true", description="Another version.")
    script.write_text(f"cp {current} {other}.new; mv {other} {current}; mv {other}.new {other}")
    project.command("test_trigger_tool_change", "/bin/sh", str(script), description="Changes.")


@pytest.fixture
def suite(tmp_path: Path) -> list[str]:
    """The command of the suite, installed for this test."""
    folder = tmp_path / "suite"
    node = install(folder, SUITE)
    return [node, str(folder / "node_modules/@modelcontextprotocol/conformance/dist/index.js")]


async def failures(suite: list[str], url: str, revision: str, folder: Path) -> dict[str, list[str]]:
    """Return the failed checks of each scenario of a revision; every scenario is a key."""
    options = ["--url", url, "--suite", "all", "--spec-version", revision, "-o", str(folder)]
    process = await asyncio.create_subprocess_exec(
        *suite, "server", *options, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    await asyncio.wait_for(process.wait(), SECONDS)
    found = {}
    for result in folder.iterdir():
        name = re.fullmatch(r"server-(.+)-\d{4}-\d\d-\d\dT[-\d]+Z", result.name)
        assert name, result.name
        checks = json.loads((result / "checks.json").read_text())
        # As the suite counts: a scenario with a warning has not passed.
        failed = [one for one in checks if one["status"] in ("FAILURE", "WARNING")]
        found[name[1]] = [f"{one['id']}: {one.get('errorMessage')}" for one in failed]
    return found


def test_the_page_lists_the_expected_failures() -> None:
    table = (REPOSITORY / "docs" / "mcp.md").read_text().partition("| scenarios | why |")[2]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    globs = [glob for row in rows for glob in re.findall(r"`([^`]+)`", row)]
    expected = {name for revision in EXPECTED_FAILURES.values() for name in revision}
    listed = {glob: {name for name in expected if fnmatchcase(name, glob)} for glob in globs}
    assert [glob for glob, names in listed.items() if not names] == []
    assert expected - set().union(*listed.values()) == set()


def test_every_scenario_passes_except_the_listed_ones(
    project: Project, suite: list[str], tmp_path: Path
) -> None:
    async def run() -> list[dict[str, list[str]]]:
        async with over_http(project, ServerSettings(all_tools=True)) as server:
            return await asyncio.gather(
                *(
                    failures(suite, server.url, revision, tmp_path / revision)
                    for revision in EXPECTED_FAILURES
                )
            )

    page = " ".join((REPOSITORY / "docs" / "mcp.md").read_text().split())
    for (revision, expected), found in zip(
        EXPECTED_FAILURES.items(), asyncio.run(run()), strict=True
    ):
        assert len(found) > 30, f"{revision}: the suite has run {len(found)} scenarios"
        failed = {scenario: checks for scenario, checks in found.items() if checks}
        unexpected = {name: checks for name, checks in failed.items() if name not in expected}
        assert unexpected == {}, revision
        assert sorted(set(expected) - set(failed)) == [], f"{revision}: these pass now"
        figures = f"{len(found)} scenarios for {revision}, {len(found) - len(failed)} pass"
        assert figures in page
        for scenario, checks in ONLY.items():
            if scenario in failed:
                assert [one.partition(":")[0] for one in failed[scenario]] == checks
        undeclared = failed.get("server-stateless", ["error code -32021"])[0]
        assert "error code -32021" in undeclared, undeclared
