"""Attacks by the unsigned parts of a checkout: .env, .venv, node_modules and .ai/config.yaml.

The tools are signed by a key that the user trusts; only the approval of the project is missing.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from approved_project import approve
from mcp_session import connected
from rye.cli.new.project import set_up
from rye.executor.run.result import ExecutionResult
from rye.trust.project_approval import ProjectApproval, unsigned_parts
from rye_command import Terminal, rye
from rye_project import SUBPROCESS, Project

NODE = shutil.which("node")
HINT = "review and approve them with: rye trust project"
ASKS = f"but you have not approved the unsigned parts of this project; {HINT}"
ASKS_AGAIN = f"but the unsigned parts of this project have changed since you approved them; {HINT}"
PYTHON_TOOL = """\
__version__ = "1.0.0"
__executor_id__ = "python_runtime"


def main():
    return "ran"
"""
NODE_TOOL = """\
// /// rye
// version = "1.0.0"
// executor_id = "node_runtime"
// ///
const dep = require("dep");
exports.main = () => dep;
"""


@pytest.fixture
def clone(tmp_path: Path) -> Project:
    path = f"{Path(NODE or '/usr/bin/node').parent}:/usr/bin:/bin"
    return Project(tmp_path, shipped_system=True, fresh_clone=True, environ={"PATH": path})


def send(project: Project) -> ExecutionResult:
    """Run a signed tool that asks for TOKEN and prints it."""
    project.yaml(
        "send",
        executor_id=SUBPROCESS,
        env_config={"env": {"TOKEN": "${TOKEN:-none}"}},
        config={"command": "/bin/echo", "args": ["${TOKEN}"]},
    )
    return project.run("send")


def assert_asks(result: ExecutionResult, message: str) -> None:
    assert not result.success
    assert result.metadata["error_type"] == "UnapprovedProjectError"
    assert result.error == message


def plant_program(path: Path, mark: Path) -> Path:
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\ntouch '{mark}'\n")
    path.chmod(0o755)
    return path


def test_the_dotenv_of_a_fresh_clone_supplies_no_value(clone: Project) -> None:
    assert send(clone).data["stdout"] == "none\n"
    dotenv = clone.path / ".env"
    dotenv.write_text("TOKEN=planted\n")
    assert_asks(send(clone), f"'send' would take TOKEN from {dotenv}, {ASKS}")
    approve(clone.context)
    assert send(clone).data["stdout"] == "planted\n"


def test_an_interpreter_planted_in_a_fresh_clone_does_not_run(clone: Project) -> None:
    mark = clone.path / "planted"
    python = plant_program(clone.path / ".venv" / "bin" / "python", mark)
    clone.tool("hello.py", PYTHON_TOOL)

    assert_asks(clone.run("hello"), f"'hello' would run code of {python}, {ASKS}")
    direct = clone.run("rye/core/runtimes/python_runtime", {"script": "print(1)"})
    assert_asks(direct, f"'rye/core/runtimes/python_runtime' would run code of {python}, {ASKS}")
    assert not mark.exists()


@pytest.mark.parametrize("venv", ["env", "build/env"])
def test_an_interpreter_in_any_folder_of_a_fresh_clone_does_not_run(
    clone: Project, venv: str
) -> None:
    mark = clone.path / "planted"
    python = plant_program(clone.path / venv / "bin" / "python", mark)
    rules = {"type": "venv_python", "venv_path": venv, "var": "OWN", "fallback": "sh"}
    clone.yaml(
        "runtimes/own",
        tool_type="runtime",
        executor_id=SUBPROCESS,
        env_config={"interpreter": rules},
        config={"command": "${OWN}"},
    )
    clone.yaml("hello", executor_id="runtimes/own")

    assert_asks(clone.run("hello"), f"'hello' would run code of {python}, {ASKS}")
    assert not mark.exists()


@pytest.mark.skipif(NODE is None, reason="node is not installed")
@pytest.mark.parametrize("folder", [".", ".ai", ".ai/tools", ".ai/tools/team"])
def test_packages_planted_in_a_fresh_clone_are_not_loaded(clone: Project, folder: str) -> None:
    mark = clone.path / "planted"
    packages = clone.path / folder / "node_modules"
    (packages / "dep").mkdir(parents=True)
    code = f"require('fs').writeFileSync({json.dumps(str(mark))}, ''); module.exports = 1;"
    (packages / "dep" / "index.js").write_text(code)
    clone.tool("team/hello.cjs", NODE_TOOL)

    assert_asks(clone.run("team/hello"), f"'team/hello' would run code of {packages}, {ASKS}")
    assert not mark.exists()
    approve(clone.context)
    assert clone.run("team/hello").data == 1


def test_a_lockfile_of_uv_in_a_fresh_clone_does_not_choose_the_packages(
    clone: Project, tmp_path: Path
) -> None:
    """uv installs from the addresses in ``tool.py.lock`` without asking the package index."""
    mark = tmp_path / "pwned"
    uv = plant_program(tmp_path / "programs" / "uv", mark)
    clone.environ["PATH"] = f"{uv.parent}:/usr/bin:/bin"
    tool = clone.tool(
        "build/wheel.py", '__version__ = "1.0.0"\n__executor_id__ = "uv_script_runtime"\n'
    )
    tool.with_name("wheel.py.lock").write_text("version = 1\n")

    result = clone.run("build/wheel")

    assert (result.metadata["error_type"], mark.exists()) == ("UnpinnedError", False)
    assert result.error is not None
    assert "config.script_lock names .ai/tools/build/wheel.py.lock, a file in" in result.error
    assert 'add the line `PINS = [".ai/tools/build/wheel.py.lock"]` to' in result.error
    tool.with_name("wheel.py.lock").unlink()
    assert clone.run("build/wheel").success
    assert mark.exists()


def test_tools_featured_by_a_fresh_clone_are_not_listed(
    clone: Project, caplog: pytest.LogCaptureFixture
) -> None:
    clone.command("hello", "/bin/echo")
    config = clone.path / ".ai" / "config.yaml"
    config.write_text("mcp: {featured: [hello]}\n")

    async def names() -> list[str]:
        async with connected(clone) as client:
            return [tool.name for tool in (await client.list_tools()).tools]

    assert "hello" not in asyncio.run(names())
    logged = f"{config} is ignored: {ASKS.removeprefix('but ')}"
    assert [one.getMessage() for one in caplog.records if one.name == "rye.mcp"] == [logged]
    approve(clone.context)
    assert "hello" in asyncio.run(names())


def test_a_dotenv_cannot_approve_its_own_project(clone: Project) -> None:
    dotenv = clone.path / ".env"
    dotenv.write_text("RYE_APPROVE_PROJECT=\nTOKEN=\n")
    digest = unsigned_parts(clone.context).digest
    dotenv.write_text(f"RYE_APPROVE_PROJECT={digest}\nTOKEN=planted\n")
    result = send(clone)
    assert result.metadata["error_type"] == "UnapprovedProjectError"
    assert result.error is not None
    assert result.error.endswith(ASKS)

    clone.environ["RYE_APPROVE_PROJECT"] = digest
    assert send(clone).data["stdout"] == "planted\n"
    clone.environ["RYE_APPROVE_PROJECT"] = "0" * 64
    other = "RYE_APPROVE_PROJECT is not the digest of the unsigned parts of this project"
    error = send(clone).error or ""
    assert error.endswith(
        f"but {other}; review them, and set it to the digest that this prints: "
        "rye trust project --show"
    )


def test_a_new_name_in_an_approved_dotenv_asks_again_and_a_new_value_does_not(
    clone: Project,
) -> None:
    dotenv = clone.path / ".env"
    dotenv.write_text("TOKEN=one\n")
    approve(clone.context)
    dotenv.write_text("# a comment\nTOKEN=two\n")
    assert send(clone).data["stdout"] == "two\n"
    dotenv.write_text("TOKEN=two\nMORE=planted\n")
    result = send(clone)
    assert result.metadata["error_type"] == "UnapprovedProjectError"
    assert (result.error or "").endswith(ASKS_AGAIN)


def test_an_environment_that_appears_in_an_approved_project_asks_again(clone: Project) -> None:
    (clone.path / ".ai" / "config.yaml").write_text("mcp: {featured: []}\n")
    approve(clone.context)
    mark = clone.path / "planted"
    python = plant_program(clone.path / ".venv" / "bin" / "python", mark)
    clone.tool("hello.py", PYTHON_TOOL)
    assert_asks(clone.run("hello"), f"'hello' would run code of {python}, {ASKS_AGAIN}")
    assert not mark.exists()


def test_a_warm_executor_notices_every_change_of_an_approved_project(clone: Project) -> None:
    dotenv, config = clone.path / ".env", clone.path / ".ai" / "config.yaml"
    dotenv.write_text("TOKEN=one\n")
    config.write_text("mcp: {featured: [send]}\n")
    send(clone)

    async def run() -> None:
        async with clone.executor() as executor:

            async def works() -> bool:
                return (await executor.execute("send")).success

            assert not await works()
            for _ in range(3):
                approve(clone.context)
                os.utime(config, ns=(0, 0))
                assert await works()
                await asyncio.sleep(0.3)  # old enough to be remembered by its status
                assert await works()
                stamp = config.stat()
                config.write_text("mcp: {featured: [evil]}\n")
                os.utime(config, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
                assert not await works()
                config.write_text("mcp: {featured: [send]}\n")
                assert await works()
                ProjectApproval(clone.context).withdraw()
                assert not await works()

    asyncio.run(run())


@pytest.mark.parametrize("how", ["move", "copy"])
def test_a_moved_or_copied_project_asks_again(clone: Project, how: str) -> None:
    (clone.path / ".env").write_text("TOKEN=planted\n")
    approve(clone.context)
    assert send(clone).success
    elsewhere = clone.path.with_name("elsewhere")
    if how == "move":
        clone.path.rename(elsewhere)
    else:
        shutil.copytree(clone.path, elsewhere)
    clone.path = elsewhere
    assert_asks(send(clone), f"'send' would take TOKEN from {elsewhere / '.env'}, {ASKS}")


def test_a_link_to_an_approved_project_is_the_same_project(clone: Project) -> None:
    (clone.path / ".env").write_text("TOKEN=mine\n")
    send(clone)
    link = clone.path.with_name("link")
    link.symlink_to(clone.path)
    assert rye("run", "send", cwd=link, user=clone.user).code == 4
    assert rye("trust", "project", "--yes", cwd=link, user=clone.user).code == 0
    for place in (clone.path, link):
        done = rye("--project", place, "run", "send", cwd=clone.user, user=clone.user)
        assert (done.code, done.stdout) == (0, "mine\n")


def test_a_project_that_replaces_an_approved_one_asks_again(clone: Project) -> None:
    (clone.path / ".env").write_text("TOKEN=mine\n")
    approve(clone.context)
    assert send(clone).success
    clone.path.rename(clone.path.with_name("old"))
    (clone.path / ".ai").mkdir(parents=True)
    (clone.path / ".env").write_text("TOKEN=planted\n")
    (clone.path / ".ai" / "config.yaml").write_text("mcp: {featured: [send]}\n")
    assert_asks(send(clone), f"'send' would take TOKEN from {clone.path / '.env'}, {ASKS_AGAIN}")


def test_approvals_that_others_can_write_are_not_used(clone: Project) -> None:
    (clone.path / ".env").write_text("TOKEN=planted\n")
    approve(clone.context)
    path = ProjectApproval(clone.context).path
    for shared, mode in ((path, 0o666), (path.parent, 0o777), (path.parent.parent, 0o777)):
        before = shared.stat().st_mode
        shared.chmod(mode)
        assert f"{shared} is writable by other users" in (send(clone).error or "")
        shared.chmod(before)
        assert send(clone).success
    moved = path.with_suffix(".moved")
    path.rename(moved)
    path.symlink_to(moved)
    assert f"{path} is a symlink; " in (send(clone).error or "")


def test_a_config_replaced_during_the_question_is_not_approved(clone: Project) -> None:
    dotenv, config = clone.path / ".env", clone.path / ".ai" / "config.yaml"
    dotenv.write_text("TOKEN=mine\n")
    config.write_text("mcp: {featured: [send]}\n")
    send(clone)
    with Terminal("trust", "project", cwd=clone.path, user=clone.user) as terminal:
        shown = terminal.wait_for("[y/N]")
        config.write_text("mcp: {featured: [evil]}\n")
        terminal.type("y\n")
        assert terminal.finish() == 0
    assert "features for agents: send" in shown
    assert_asks(send(clone), f"'send' would take TOKEN from {dotenv}, {ASKS_AGAIN}")
    config.write_text("mcp: {featured: [send]}\n")
    assert send(clone).success


def test_concurrent_approvals_leave_a_complete_one(clone: Project) -> None:
    (clone.path / ".env").write_text("TOKEN=mine\n")
    send(clone)
    environ = {**os.environ, "USER_SPACE": str(clone.user)}
    command = [sys.executable, "-m", "rye", "trust", "project", "--yes"]
    started = [subprocess.Popen(command, cwd=clone.path, env=environ) for _ in range(6)]
    assert [one.wait(60) for one in started] == [0] * 6
    assert send(clone).success
    path = ProjectApproval(clone.context).path
    assert [one.name for one in path.parent.iterdir()] == [path.name]
    assert path.stat().st_mode & 0o777 == 0o600


def test_setting_up_a_folder_does_not_approve_what_it_already_contains(
    clone: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("USER_SPACE", str(clone.user))
    dotenv = clone.path / ".env"
    dotenv.write_text("TOKEN=planted\n")
    note = ".env will be used after you approve this project with: rye trust project"
    assert note in set_up(clone.path).notes
    assert rye("new", "more", cwd=clone.path, user=clone.user).code == 0
    assert_asks(send(clone), f"'send' would take TOKEN from {dotenv}, {ASKS}")


@pytest.mark.skipif(NODE is None, reason="node is not installed")
@pytest.mark.parametrize("place", [".ai/tools/text", ".ai/tools", ".ai"])
def test_packages_that_appear_beside_a_tool_of_an_approved_project_are_not_loaded(
    clone: Project, place: str
) -> None:
    (clone.path / ".env").write_text("TOKEN=x\n")
    clone.tool("text/t.js", NODE_TOOL)
    approve(clone.context)
    packages = clone.path / place / "node_modules"
    (packages / "dep").mkdir(parents=True)
    (packages / "dep" / "index.js").write_text('module.exports = "planted";\n')
    asks = f"'text/t' would run code of {packages}, {ASKS_AGAIN}"
    assert_asks(clone.run("text/t"), asks)
    done = rye("trust", "project", "--show", cwd=clone.path, user=clone.user)
    assert f"{place}/node_modules" in done.stdout
    approve(clone.context)
    assert clone.run("text/t").data == "planted"
