"""``rye doctor``: problems, and how to fix them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest
from found_interpreters import program
from rye.doctor.checks import Finding, check_items, check_machine, check_trust
from rye.doctor.runtimes import check_runtimes, how_to_install, is_too_old, program_version
from rye_command import rye
from rye_console import Console
from rye_project import Project

BASH = "runtime rye/core/runtimes/bash_runtime"
NODE = "runtime rye/core/runtimes/node_runtime"
PYTHON = "runtime rye/core/runtimes/python_runtime"


@pytest.fixture
def console(tmp_path: Path) -> Console:
    return Console(tmp_path)


def on(findings: Iterable[Finding], subject: str) -> Finding:
    (found,) = [one for one in findings if one.subject == subject]
    return found


def versioned(path: Path, text: str) -> str:
    """A program that prints ``text`` for ``--version``."""
    program(path)
    path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "{text}"\n')
    return str(path)


class Bin:
    """A directory of programs that is the whole PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.project = Project(folder.parent, shipped_system=True, environ={"PATH": str(folder)})

    def add(self, name: str, says: str = "1.0") -> Path:
        return Path(versioned(self.folder / name, says))

    def runtimes(self) -> list[Finding]:
        return list(check_runtimes(self.project.context))


@pytest.fixture
def machine(tmp_path: Path) -> Bin:
    return Bin(tmp_path / "bin")


def test_every_check_of_a_working_machine_is_ok(console: Console) -> None:
    done = rye("doctor", cwd=console.path, user=console.user)

    lines = done.stdout.splitlines()
    assert done.code == 0, done.stdout
    assert any(line.startswith("ok       lilux-proc: /") for line in lines)
    assert any(line.startswith(f"ok       {BASH}: /") for line in lines)
    assert lines[-1].startswith("no problems, ")


def test_json_has_every_finding(console: Console) -> None:
    done = console.json("doctor")

    assert done["ok"] is True
    assert {"state", "subject", "message", "hint"} == done["findings"][0].keys()
    assert {one["state"] for one in done["findings"]} <= {"ok", "warning"}


def test_a_problem_makes_the_command_fail(console: Console) -> None:
    console.project.tool("broken.yaml", "executor_id: [\n")

    done = console("doctor")

    assert done.code == 1
    assert "problem  item broken: " in done.stdout
    assert done.stdout.splitlines()[-1].startswith("1 problem, ")
    assert json.loads(console("doctor", "--json").stdout)["ok"] is False


class TestRuntimes:
    def test_the_interpreter_is_named_with_its_version(self, machine: Bin) -> None:
        path = machine.add("bash", "GNU bash, version 5.2.15(1)-release")

        assert on(machine.runtimes(), BASH) == Finding("ok", BASH, f"{path} (5.2.15)")

    def test_a_missing_interpreter_that_no_tool_needs_is_a_warning(self, machine: Bin) -> None:
        assert on(machine.runtimes(), NODE) == Finding(
            "warning",
            NODE,
            "node is missing; no tool needs it",
            "install node and put it on PATH",
        )

    def test_a_missing_interpreter_that_a_tool_needs_is_a_problem(self, machine: Bin) -> None:
        machine.project.tool("mine.mjs", '// /// rye\n// executor_id = "node_runtime"\n// ///\n')

        found = on(machine.runtimes(), NODE)

        assert (found.state, found.message) == ("problem", "node is missing; tools need it")

    def test_the_hint_uses_the_package_manager_of_this_machine(self, machine: Bin) -> None:
        machine.add("apt-get")

        assert on(machine.runtimes(), NODE).hint == "install it with: sudo apt-get install nodejs"

    def test_an_interpreter_that_is_too_old_is_reported(self, machine: Bin) -> None:
        path = machine.add("bash", "GNU bash, version 3.2.57(1)-release")
        machine.add("brew")

        found = on(machine.runtimes(), BASH)

        assert found == Finding(
            "warning",
            BASH,
            f"{path} is bash 3.2.57; version 4.4 or newer is required",
            "install it with: brew install bash",
        )

    def test_a_program_in_the_project_is_not_started_to_get_its_version(self, machine: Bin) -> None:
        """Looking at a checkout must not run its code."""
        python = machine.project.path / ".venv" / "bin" / "python"
        program(python)
        mark = machine.project.path / "started"
        python.write_text(f"#!/bin/sh\n: > '{mark}'\n")

        found = on(machine.runtimes(), PYTHON)

        assert found == Finding(
            "ok", PYTHON, f"{python} (in the project; not started to get its version)"
        )
        assert not mark.exists()
        (python.parent.parent / "pyvenv.cfg").write_text("home = /usr\nversion = 3.12.1\n")
        assert on(machine.runtimes(), PYTHON).message == f"{python} (3.12.1)"
        assert not mark.exists()

    def test_a_link_in_the_project_is_not_started_either(self, machine: Bin) -> None:
        outside = versioned(machine.folder / "python3", "Python 3.11.2")
        python = machine.project.path / ".venv" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.symlink_to(outside)

        assert program_version(python, machine.project.path) is None

    def test_a_program_that_does_not_print_its_version_is_a_warning(self, machine: Bin) -> None:
        path = Path(program(machine.folder / "bash"))
        path.write_text("#!/bin/sh\nexit 3\n")

        found = on(machine.runtimes(), BASH)

        assert (found.state, found.message) == ("warning", f"{path} does not print its version")

    def test_an_unsigned_runtime_is_a_problem(self, machine: Bin) -> None:
        machine.project.tool(
            "mine_runtime.yaml",
            "tool_type: runtime\nexecutor_id: rye/core/primitives/subprocess\n",
            signed=False,
        )

        found = on(machine.runtimes(), "runtime mine_runtime")

        assert found.state == "problem"
        assert "mine_runtime is not signed" in found.message

    def test_the_missing_program_of_a_lower_runtime_is_named(self, machine: Bin) -> None:
        versioned(machine.folder / "python3", "Python 3.11.2")
        found = on(machine.runtimes(), "runtime rye/core/runtimes/uv_script_runtime")
        assert found.message == "uv is missing; no tool needs it"

    def test_a_runtime_in_the_project_is_checked_too(self, machine: Bin) -> None:
        machine.project.yaml(
            "perl_runtime",
            tool_type="runtime",
            executor_id="rye/core/primitives/subprocess",
            env_config={"interpreter": {"type": "system_binary", "binary": "perl", "var": "PERL"}},
            config={"command": "${PERL}", "args": ["{tool_path}"]},
        )

        found = on(machine.runtimes(), "runtime perl_runtime")

        assert found.message == "perl is missing; no tool needs it"
        assert found.hint == "install perl and put it on PATH"


@pytest.mark.parametrize(
    ("version", "old"), [("4.4", False), ("4.3.48", True), ("5", False), ("10.1", False)]
)
def test_versions_are_compared_as_numbers(version: str, old: bool) -> None:
    assert is_too_old(version, (4, 4)) is old


def test_no_hint_contains_a_url() -> None:
    for name in ("bash", "node", "python3", "uv", "perl"):
        assert "://" not in how_to_install(name, {"PATH": ""})


class TestTrust:
    def test_a_missing_key_is_a_warning(self, console: Console) -> None:
        shutil.rmtree(console.user / ".ai" / "keys")

        found = on(check_trust(console.project.context), "your key")

        assert (found.state, found.hint) == ("warning", "create one with: rye init")
        assert not (console.user / ".ai" / "keys").exists()

    def test_a_private_key_that_others_can_read_is_a_problem(self, console: Console) -> None:
        (console.user / ".ai" / "keys" / "private_key.pem").chmod(0o644)

        assert on(check_trust(console.project.context), "your key").state == "problem"

    def test_an_unusable_entry_is_a_problem(self, console: Console) -> None:
        folder = console.user / ".ai" / "trusted_keys"
        folder.mkdir(mode=0o755)
        path = folder / "0123456789abcdef.toml"
        path.write_text("nonsense")
        path.chmod(0o644)

        found = on(check_trust(console.project.context), "trust store")

        assert found == Finding(
            "problem", "trust store", f"{path}: is not valid TOML; fix or remove it"
        )

    def test_a_folder_that_others_can_change_is_a_problem(self, console: Console) -> None:
        folder = console.user / ".ai" / "trusted_keys"
        folder.mkdir()
        folder.chmod(0o777)

        found = on(check_trust(console.project.context), "trust store")

        assert found.state == "problem"
        assert "is writable by other users" in found.message


class TestItems:
    def test_an_id_with_two_files_is_a_problem(self, console: Console) -> None:
        console.project.tool("two.yaml", "executor_id: null\n")
        console.project.tool("two.sh", "echo\n")

        found = on(check_items(console.project.context), "item id")

        assert found.state == "problem"
        assert found.message.startswith("'two' is both ")

    def test_names_that_collide_over_mcp_are_a_problem(self, console: Console) -> None:
        console.project.command("team/a.b", "true")
        console.project.command("team/a/b", "true")

        found = on(check_items(console.project.context), "MCP name")

        assert found == Finding(
            "problem",
            "MCP name",
            "team/a.b and team/a/b have the same MCP name 'team.a.b'",
            "rename all but one of them",
        )


class TestMachine:
    def test_a_helper_that_does_not_run_is_a_problem(
        self, console: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        helper = Path(program(tmp_path / "bin" / "lilux-proc"))
        helper.write_text("#!/bin/sh\nexit 3\n")
        monkeypatch.setenv("PATH", str(helper.parent))

        assert on(check_machine(console.project.context), "lilux-proc") == Finding(
            "problem", "lilux-proc", f"{helper} fails with exit code 3", "reinstall lilux-proc"
        )

    def test_a_check_that_fails_does_not_hide_the_others(self, console: Console) -> None:
        """A file in place of the user space makes the other checks fail."""
        shutil.rmtree(console.user / ".ai")
        (console.user / ".ai").write_text("in the way")

        done = console("doctor")

        assert BASH in done.stdout

    def test_a_folder_of_another_user_is_a_problem(self, console: Console) -> None:
        if os.geteuid() != 0:
            pytest.skip("only root can give a folder away")
        os.chown(console.path / ".ai", 12345, -1)

        found = on(check_machine(console.project.context), "project")

        assert found.state == "problem"
        assert found.message == (
            f"{console.path}/.ai belongs to another user (uid 12345), who can change what runs"
        )

    def test_a_user_space_that_does_not_exist_yet_is_ok(self, console: Console) -> None:
        shutil.rmtree(console.user / ".ai")

        found = on(check_machine(console.project.context), "user space")

        assert found == Finding("ok", "user space", f"{console.user}/.ai (not created yet)")
