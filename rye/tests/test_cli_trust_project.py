"""``rye trust project``: what it shows, asks, remembers and withdraws."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from rye.trust.project_approval import ProjectApproval, unsigned_parts
from rye_command import Terminal, rye
from rye_console import Console
from rye_project import SUBPROCESS

NOT_APPROVED = "you have not approved the unsigned parts of this project"


@pytest.fixture
def console(tmp_path: Path) -> Console:
    console = Console(tmp_path)
    console.project.fresh_clone = True
    return console


@pytest.fixture
def clone(console: Console) -> Console:
    """A project with all unsigned parts, and a signed tool that asks for TOKEN."""
    (console.path / ".env").write_text("TOKEN=s3cret\nOTHER=1\n")
    python = console.path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to("/usr/bin/env")
    (console.path / "node_modules").mkdir()
    (console.path / ".ai" / "config.yaml").write_text("mcp: {featured: [send, 'notes/*']}\n")
    declares = {"env": {"TOKEN": "${TOKEN:-none}"}}
    config = {"command": "/bin/echo", "args": ["${TOKEN}"]}
    console.project.yaml("send", executor_id=SUBPROCESS, env_config=declares, config=config)
    return console


def run(console: Console, item_id: str = "send") -> int:
    """Run a tool, and return the exit code."""
    return rye("run", item_id, cwd=console.path, user=console.user).code


def digest(console: Console) -> str:
    return unsigned_parts(console.project.context).digest


def test_it_shows_what_it_would_enable_with_the_digest(clone: Console) -> None:
    unsigned = clone.project.yaml("evil", executor_id=SUBPROCESS, env_config={"env": {"OTHER": ""}})
    unsigned.write_text(unsigned.read_text() + "\n")

    done = clone("trust", "project", "--show")

    assert done.code == 0
    real = Path("/usr/bin/env").resolve()
    assert done.stdout.splitlines() == [
        f"{clone.path}: {NOT_APPROVED}",
        "  .env             supplies TOKEN to send",
        "  .env             contains OTHER, which no signed tool asks for",
        f"  .venv            runs Python tools with its interpreter ({real}) and packages",
        "  node_modules     supplies packages, and node, to JavaScript tools",
        "  .ai/config.yaml  features for agents: send, notes/*",
        f"  digest           {digest(clone)}",
    ]
    assert not ProjectApproval(clone.project.context).path.exists()


def test_json_has_the_names_and_no_value(clone: Console) -> None:
    done = clone("trust", "project", "--show", "--json")
    assert json.loads(done.stdout) == {
        "project": str(clone.path),
        "approved": False,
        "digest": digest(clone),
        "env": {"OTHER": [], "TOKEN": ["send"]},
        "folders": [".venv", "node_modules"],
        "pins": {},
        "interpreter": str(Path("/usr/bin/env").resolve()),
        "featured": ["send", "notes/*"],
    }


def test_without_a_terminal_it_refuses_and_names_the_option(clone: Console) -> None:
    done = rye("trust", "project", cwd=clone.path, user=clone.user, input="y\n")
    assert (done.code, done.stdout) == (4, "")
    assert done.stderr == (
        f"rye: {clone.path} is not approved, and there is no terminal to ask on; see what it "
        "would enable with --show; if you trust it, run: rye trust project --yes\n"
    )
    assert run(clone) == 4


@pytest.mark.parametrize(("answer", "code"), [("\n", 1), ("n\n", 1), ("y\n", 0)])
def test_on_a_terminal_it_asks_and_the_default_is_no(
    clone: Console, answer: str, code: int
) -> None:
    with Terminal("trust", "project", cwd=clone.path, user=clone.user) as terminal:
        shown = terminal.wait_for("Use these parts for the tools that you run here? [y/N]")
        terminal.type(answer)
        assert terminal.finish() == code
    assert "supplies TOKEN to send" in shown
    assert run(clone) == (4 if code else 0)


def test_yes_approves_and_remove_withdraws(clone: Console) -> None:
    path = ProjectApproval(clone.project.context).path
    refused = clone("run", "send")
    command = refused.stderr.strip().rpartition("approve them with: rye ")[2]
    assert command == "trust project"

    done = clone(*command.split(), "--yes")

    assert (done.code, done.stdout) == (0, f"Approved {clone.path}\n  {path}\n")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert rye("run", "send", cwd=clone.path, user=clone.user).stdout == "s3cret\n"
    assert clone("trust", "project").stdout.startswith(f"{clone.path}: approved\n")
    removed = clone("trust", "project", "--remove")
    assert removed.stdout == f"No longer approving {clone.path}\n  removed {path}\n"
    assert run(clone) == 4
    again = clone("trust", "project", "--remove")
    assert (again.code, again.stderr) == (
        4,
        f"rye: {clone.path} is not approved; there is nothing to remove\n",
    )


def test_the_digest_in_the_environment_approves_one_process(clone: Console) -> None:
    env = {"RYE_APPROVE_PROJECT": digest(clone)}
    assert rye("run", "send", cwd=clone.path, user=clone.user, env=env).stdout == "s3cret\n"
    assert rye("run", "send", cwd=clone.path, user=clone.user).code == 4


def test_a_project_without_unsigned_parts_needs_no_approval(console: Console) -> None:
    assert console("new", "hello").code == 0
    assert run(console, "hello") == 0
    assert not ProjectApproval(console.project.context).path.parent.exists()


def test_the_user_space_needs_no_approval(clone: Console) -> None:
    done = rye("run", "send", cwd=clone.path, user=clone.path)
    assert "UnapprovedProject" not in done.stderr
    assert NOT_APPROVED not in done.stderr
    shown = rye("trust", "project", cwd=clone.path, user=clone.path)
    assert shown.stdout == f"{clone.path} is your user space, which needs no approval\n"


def test_a_config_cannot_control_the_terminal(clone: Console) -> None:
    (clone.path / ".ai" / "config.yaml").write_text('mcp: {featured: ["\\e[2J\\u202e"]}\n')
    assert r"features for agents: \x1b[2J\u202e" in clone("trust", "project", "--show").stdout


def test_a_config_that_cannot_be_parsed_is_shown_with_the_reason(clone: Console) -> None:
    (clone.path / ".ai" / "config.yaml").write_text("mcp: [\n")
    shown = clone("trust", "project", "--show").stdout
    assert ".ai/config.yaml  cannot be used:" in shown


def test_a_config_that_is_not_a_file_is_an_error(clone: Console) -> None:
    config = clone.path / ".ai" / "config.yaml"
    config.unlink()
    config.mkdir()
    for command in (["trust", "project", "--yes"], ["run", "send"]):
        done = clone(*command)
        assert done.code != 0
        assert ".ai/config.yaml" in done.stderr


def test_two_of_the_options_are_refused(clone: Console) -> None:
    done = clone("trust", "project", "--show", "--yes")
    assert (done.code, done.stderr) == (
        2,
        "rye: --show, --yes and --remove exclude each other; see `rye trust project --help`\n",
    )


def test_a_malformed_approval_is_reported(clone: Console) -> None:
    clone("trust", "project", "--yes")
    path = ProjectApproval(clone.project.context).path
    path.write_text('digest = "short"\n')
    refused = clone("run", "send").stderr
    reason = f"{path}: digest is not 64 lower-case hex digits; remove it"
    assert f"but your approval of this project cannot be used: {reason}; " in refused
    assert clone("trust", "project", "--yes").code == 0
    assert run(clone) == 0


def test_doctor_reports_a_project_that_is_not_approved(clone: Console) -> None:
    findings = clone.json("doctor")["findings"]
    (project,) = [one for one in findings if one["subject"] == "project"]
    assert (project["state"], project["message"]) == ("warning", NOT_APPROVED)
    assert project["hint"] == "review and approve them with: rye trust project"
    clone("trust", "project", "--yes")
    findings = clone.json("doctor")["findings"]
    (project,) = [one for one in findings if one["subject"] == "project"]
    assert (project["state"], project["message"]) == ("ok", "you have approved its unsigned parts")


def test_a_project_with_an_interpreter_elsewhere_can_be_approved(console: Console) -> None:
    own = console.path / "env" / "bin" / "python"
    own.parent.mkdir(parents=True)
    own.write_text("#!/bin/sh\necho own\n")
    own.chmod(0o755)
    interpreter = {"type": "venv_python", "venv_path": "env", "var": "OWN"}
    console.project.yaml(
        "own",
        executor_id=SUBPROCESS,
        env_config={"interpreter": interpreter},
        config={"command": "${OWN}"},
    )
    assert run(console, "own") == 4
    shown = console("trust", "project", "--show").stdout
    assert (
        "programs  an interpreter elsewhere in the project, if a tool uses one; there is" in shown
    )
    assert console("trust", "project", "--yes").code == 0
    assert run(console, "own") == 0


@pytest.mark.parametrize("name", [b"line\nbreak", b"not\xffutf8", b"quote\"\\'", "ünï 😀".encode()])
def test_a_project_of_any_name_can_be_approved(tmp_path: Path, name: bytes) -> None:
    console = Console(tmp_path / os.fsdecode(name))
    console.project.fresh_clone = True
    (console.path / ".env").write_text("TOKEN=1\n")
    context = console.project.context
    approval, parts = ProjectApproval(context), unsigned_parts(context)
    assert approval.why_not(parts) == NOT_APPROVED
    approval.approve(parts)
    assert ProjectApproval(context).why_not(parts) == ""
    assert len(approval.path.read_text().splitlines()) == 3
