"""Pinned chains are verified before anything is built; each violation has a message."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from lilux.primitives.lockfile import LockfileManager
from rye.executor.chain.snapshot import Library
from rye.executor.locks.verify import Breach, IntegrityVerifier
from rye.executor.run.result import ExecutionResult
from rye_project import SUBPROCESS, Project, refused


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A tool of the project on a runtime of the system, locked by a first run."""
    project = Project(tmp_path)
    project.yaml("tools/hello", executor_id="runtimes/echo", config={"args": ["one"]})
    project.yaml(
        "runtimes/echo", executor_id=SUBPROCESS, config={"command": "/bin/echo"}, space="system"
    )
    first = project.run("tools/hello")
    assert first.success, first.error
    return project


def edit(path: Path, **changes: Any) -> dict[str, Any]:
    """Change fields of a lockfile; return its new content."""
    document: dict[str, Any] = json.loads(path.read_text())
    document.update(changes)
    path.write_text(json.dumps(document))
    return document


def integrity_of(project: Project, item_id: str) -> str:
    snapshot = Library(project.context).snapshot()
    return snapshot.verdict(snapshot.resolve(item_id)).content_hash


def test_a_first_success_pins_every_element_that_has_a_file(project: Project) -> None:
    lockfile = LockfileManager().load(project.lockfile("tools/hello"))
    assert lockfile.root.tool_id == "tools/hello"
    assert lockfile.root.version == "1.0.0"
    assert lockfile.root.integrity == integrity_of(project, "tools/hello")
    assert lockfile.resolved_chain == [
        {
            "item_id": "tools/hello",
            "space": "project",
            "version": "1.0.0",
            "executor_id": "runtimes/echo",
            "integrity": integrity_of(project, "tools/hello"),
        },
        {
            "item_id": "runtimes/echo",
            "space": "system",
            "version": "1.0.0",
            "executor_id": SUBPROCESS,
            "integrity": integrity_of(project, "runtimes/echo"),
        },
    ]
    assert lockfile.verified_deps is None


def test_a_locked_tool_runs_again(project: Project) -> None:
    before = project.lockfile("tools/hello").read_bytes()
    again = project.run("tools/hello")
    assert again.success
    assert "lockfile_created" not in again.metadata
    assert project.lockfile("tools/hello").read_bytes() == before


def test_a_validly_signed_change_of_the_tool_is_an_upgrade(project: Project) -> None:
    pinned = integrity_of(project, "tools/hello")
    tool = project.yaml("tools/hello", executor_id="runtimes/echo", config={"args": ["two"]})
    found = integrity_of(project, "tools/hello")
    lockfile = project.lockfile("tools/hello")
    assert refused(project.run("tools/hello"), "LockUpgradeError") == (
        f"lockfile {lockfile}: 'tools/hello' is pinned as {pinned}, but {tool} is {found}, "
        "validly signed: an upgrade; accept it with: rye lock --update tools/hello"
    )


def test_the_hint_of_an_upgrade_works(project: Project) -> None:
    project.yaml("tools/hello", executor_id="runtimes/echo", config={"args": ["two"]})
    project.lockfile("tools/hello").unlink()
    result = project.run("tools/hello")
    assert result.success
    assert result.data["stdout"] == "two\n"


def test_a_change_that_is_not_signed_is_tampering(project: Project) -> None:
    pinned = integrity_of(project, "tools/hello")
    tool = project.path / ".ai" / "tools" / "tools" / "hello.yaml"
    tool.write_text(tool.read_text().replace("one", "two"))
    found = integrity_of(project, "tools/hello")
    lockfile = project.lockfile("tools/hello")
    assert refused(project.run("tools/hello"), "LockTamperedError") == (
        f"lockfile {lockfile}: 'tools/hello' is pinned as {pinned}, but {tool} is {found}, "
        "not validly signed (changed): an unsigned edit or tampering; "
        "restore the file; or review it, and "
        f"accept it with: rye sign {tool} && rye lock --update tools/hello"
    )


def test_the_runtime_is_pinned_as_well(project: Project) -> None:
    project.yaml(
        "runtimes/echo", executor_id=SUBPROCESS, config={"command": "/bin/true"}, space="system"
    )
    assert "'runtimes/echo' is pinned as" in refused(project.run("tools/hello"), "LockUpgradeError")


def test_tampering_outweighs_an_upgrade_and_both_are_reported(project: Project) -> None:
    project.yaml("tools/hello", executor_id="runtimes/echo", config={"args": ["two"]})
    runtime = project.system / ".ai" / "tools" / "runtimes" / "echo.yaml"
    runtime.write_text(runtime.read_text() + "# a remark\n")
    message = refused(project.run("tools/hello"), "LockTamperedError")
    assert "validly signed: an upgrade; 'runtimes/echo'" in message


def test_a_pinned_system_runtime_that_the_project_shadows_is_named(project: Project) -> None:
    pinned = integrity_of(project, "runtimes/echo")
    shadow = project.yaml("runtimes/echo", executor_id=SUBPROCESS, config={"command": "/bin/false"})
    found = integrity_of(project, "runtimes/echo")
    assert refused(project.run("tools/hello"), "LockShadowedError") == (
        f"lockfile {project.lockfile('tools/hello')}: 'runtimes/echo' is pinned in the system "
        f"space ({pinned}), but {shadow} of the project space ({found}) now takes its place; "
        "remove the file that shadows it, or accept it with: rye lock --update tools/hello"
    )


def test_a_shadow_with_the_very_same_content_is_still_a_violation(project: Project) -> None:
    system = project.system / ".ai" / "tools" / "runtimes" / "echo.yaml"
    project.tool("runtimes/echo.yaml", system.read_text(), signed=False)
    refused(project.run("tools/hello"), "LockShadowedError")


def test_a_short_executor_id_that_now_means_another_file_is_a_violation(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.yaml("tools/hello", executor_id="echo_runtime")
    fields: dict[str, Any] = {
        "tool_type": "runtime",
        "executor_id": SUBPROCESS,
        "config": {"command": "/bin/echo"},
    }
    project.yaml("runtimes/echo_runtime", space="system", **fields)
    assert project.run("tools/hello").success
    shadow = project.yaml("other/echo_runtime", **fields)
    assert refused(project.run("tools/hello"), "LockShadowedError") == (
        f"lockfile {project.lockfile('tools/hello')} pins tools/hello, runtimes/echo_runtime, but "
        f"the chain now leads through {shadow}, which it does not pin; remove that file, or accept "
        "it with: rye lock --update tools/hello"
    )


def test_a_warm_executor_notices_violations(project: Project) -> None:
    async def call() -> list[ExecutionResult]:
        async with project.executor() as executor:
            results = [await executor.execute("tools/hello")]
            project.yaml("tools/hello", executor_id="runtimes/echo", config={"args": ["two"]})
            results.append(await executor.execute("tools/hello"))
            project.yaml("tools/hello", executor_id="runtimes/echo", config={"args": ["one"]})
            results.append(await executor.execute("tools/hello"))
            return results

    assert [result.success for result in asyncio.run(call())] == [True, False, True]


def test_a_warm_executor_reads_a_lockfile_that_changed(project: Project) -> None:
    lockfile = project.lockfile("tools/hello")

    async def call() -> list[ExecutionResult]:
        async with project.executor() as executor:
            first = await executor.execute("tools/hello")
            edit(lockfile, resolved_chain=[])
            return [first, await executor.execute("tools/hello")]

    first, second = asyncio.run(call())
    assert first.success
    refused(second, "LockShadowedError")


def test_a_corrupt_lockfile_is_an_error_and_stays_unchanged(project: Project) -> None:
    lockfile = project.lockfile("tools/hello")
    lockfile.write_text("{ not json")
    message = refused(project.run("tools/hello"), "LockCorruptError")
    assert message.startswith(f"lockfile {lockfile}: ")
    assert message.endswith("; restore it, or delete it and lock the tool again")
    assert lockfile.read_text() == "{ not json"


def test_an_entry_without_integrity_is_malformed(project: Project) -> None:
    lockfile = project.lockfile("tools/hello")
    chain = json.loads(lockfile.read_text())["resolved_chain"]
    del chain[1]["integrity"]
    edit(lockfile, resolved_chain=chain)
    assert "resolved_chain[1]" in refused(project.run("tools/hello"), "LockCorruptError")


def test_a_lockfile_of_another_tool_is_refused(project: Project) -> None:
    lockfile = project.lockfile("tools/hello")
    root = json.loads(lockfile.read_text())["root"]
    edit(lockfile, root={**root, "tool_id": "tools/other"})
    assert refused(project.run("tools/hello"), "LockCorruptError") == (
        f"lockfile {lockfile} is for 'tools/other' 1.0.0, not for 'tools/hello' 1.0.0; "
        "delete it and run the tool again"
    )


def test_a_lock_without_one_element_is_refused(project: Project) -> None:
    lockfile = project.lockfile("tools/hello")
    chain = json.loads(lockfile.read_text())["resolved_chain"]
    edit(lockfile, resolved_chain=chain[:1])
    message = refused(project.run("tools/hello"), "LockShadowedError")
    assert "runtimes/echo.yaml, which it does not pin" in message


def test_a_lock_with_an_additional_element_is_refused(project: Project) -> None:
    lockfile = project.lockfile("tools/hello")
    chain = json.loads(lockfile.read_text())["resolved_chain"]
    edit(lockfile, resolved_chain=[*chain, chain[1]])
    assert refused(project.run("tools/hello"), "LockCorruptError") == (
        f"lockfile {lockfile} pins tools/hello, runtimes/echo, runtimes/echo, which is not the "
        "chain of 'tools/hello'; make it again with: rye lock --update tools/hello"
    )


def test_the_hash_of_the_root_is_checked(project: Project) -> None:
    lockfile = project.lockfile("tools/hello")
    root = json.loads(lockfile.read_text())["root"]
    edit(lockfile, root={**root, "integrity": "0" * 64})
    message = refused(project.run("tools/hello"), "LockUpgradeError")
    assert f"'tools/hello' is pinned as {'0' * 64}, but" in message


def test_the_lock_is_verified_before_the_chain_is_built(project: Project) -> None:
    """The runtime cannot be parsed, but the mismatch with the lock is reported first."""
    project.tool("runtimes/echo.yaml", "][", space="system")
    refused(project.run("tools/hello"), "LockUpgradeError")


def test_a_missing_pinned_element_is_named(project: Project) -> None:
    (project.system / ".ai" / "tools" / "runtimes" / "echo.yaml").unlink()
    message = refused(project.run("tools/hello"), "MissingExecutorError")
    assert message.startswith("executor 'runtimes/echo' not found")


def test_without_lockfiles_nothing_is_read_or_written(project: Project) -> None:
    project.lockfile("tools/hello").write_text("{ not json")
    assert project.run("tools/hello", use_lockfile=False).success
    project.lockfile("tools/hello").unlink()
    assert project.run("tools/hello", use_lockfile=False).success
    assert not project.lockfile("tools/hello").exists()


def test_verify_chain_returns_a_result_with_success(project: Project) -> None:
    entries = LockfileManager().load(project.lockfile("tools/hello")).resolved_chain

    def verifier() -> IntegrityVerifier:
        return IntegrityVerifier(Library(project.context).snapshot())

    assert verifier().verify_chain(entries).success
    project.yaml("tools/hello", executor_id="runtimes/echo")
    result = verifier().verify_chain(entries)
    assert not result.success
    assert [one.breach for one in result.violations] == [Breach.UPGRADE]
    assert result.violations[0].pinned == entries[0]["integrity"]
    assert not verifier().verify_chain([{"item_id": "tools/hello"}]).success
    assert not verifier().verify_chain([{"item_id": "tools/gone", "integrity": "0"}]).success
    assert not verifier().verify_chain([{"item_id": SUBPROCESS, "integrity": "0"}]).success


def test_the_verifier_of_the_documents_needs_no_argument(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project.path)
    monkeypatch.setenv("USER_SPACE", str(project.user))
    entries = LockfileManager().load(project.lockfile("tools/hello")).resolved_chain
    assert IntegrityVerifier().verify_chain(entries[:1]).success
