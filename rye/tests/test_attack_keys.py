"""Attacks on trust: folders of other users, readable keys, projects that trust their own key."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from lilux.primitives.signing import ensure_keypair
from rye.errors import KeyStoreError
from rye.trust.operations import sign_item
from rye_project import SUBPROCESS, Project
from trust_world import Key, TrustWorld

MALLORY = Key.new()
TOOL = b'version: "1.0.0"\nexecutor_id: rye/core/primitives/subprocess\nconfig: {command: id}\n'

needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can change the owner of a folder"
)


@pytest.fixture
def world(tmp_path: Path) -> TrustWorld:
    return TrustWorld(tmp_path)


def problems(world: TrustWorld) -> tuple[str, ...]:
    store = world.store()
    assert store.lookup(MALLORY.fingerprint) is None
    return store.problems()


def test_keys_linked_into_a_world_writable_ai_folder_are_not_trusted(
    world: TrustWorld,
) -> None:
    """The target of the link belongs to the user, and only the user can write to it."""
    world.put_key(world.project, MALLORY)
    world.user.chmod(0o777)
    (world.user / "trusted_keys").symlink_to(world.project / "trusted_keys")
    (problem,) = problems(world)
    assert problem == (
        f"{world.user} is writable by other users (mode 0777); fix it with: chmod go-w {world.user}"
    )


@needs_root
def test_keys_in_an_ai_folder_of_another_user_are_not_trusted(world: TrustWorld) -> None:
    world.put_key(world.user, MALLORY)
    os.chown(world.user, 12345, -1)
    (problem,) = problems(world)
    assert problem == (
        f"{world.user} belongs to another user (uid 12345); "
        "change its owner, or use a user space that belongs to you"
    )


@needs_root
def test_approvals_in_an_ai_folder_of_another_user_are_ignored(world: TrustWorld) -> None:
    world.put_key(world.project, MALLORY)
    world.store().approve(MALLORY.fingerprint)
    assert world.store().lookup(MALLORY.fingerprint) == MALLORY.public
    os.chown(world.user, 12345, -1)
    assert len(problems(world)) == 1


@needs_root
def test_the_users_key_in_an_ai_folder_of_another_user_is_not_trusted(
    world: TrustWorld,
) -> None:
    ensure_keypair(world.user / "keys")
    os.chown(world.user, 12345, -1)
    (entry,) = world.store().entries()
    assert not entry.trusted
    assert entry.problem.startswith(f"{world.user} belongs to another user (uid 12345)")


def test_an_ai_folder_that_becomes_world_writable_is_no_longer_trusted(world: TrustWorld) -> None:
    world.put_key(world.user, MALLORY)
    store = world.store()
    assert store.lookup(MALLORY.fingerprint) == MALLORY.public
    world.user.chmod(0o777)
    store.stamp()
    assert store.lookup(MALLORY.fingerprint) is None


@needs_root
def test_an_ai_folder_writable_by_the_users_own_group_is_trusted(world: TrustWorld) -> None:
    world.put_key(world.user, MALLORY)
    os.chown(world.user, 0, 0)
    world.user.chmod(0o775)
    assert world.store().lookup(MALLORY.fingerprint) == MALLORY.public
    os.chown(world.user, 0, 12345)
    assert world.store().lookup(MALLORY.fingerprint) is None


@needs_root
def test_a_project_owned_by_another_user_cannot_make_its_key_trusted(
    tmp_path: Path,
) -> None:
    project = Project(tmp_path)
    tool = project.folder("project") / "tools" / "theirs.yaml"
    tool.write_bytes(MALLORY.sign(TOOL))
    keys = project.folder("project") / "trusted_keys"
    keys.mkdir()
    (keys / f"{MALLORY.fingerprint}.toml").write_bytes(_trusted_key_file())
    for path in (project.path / ".ai").rglob("*"):
        os.chown(path, 12345, 12345)
    os.chown(project.path / ".ai", 12345, 12345)
    result = project.run("theirs")
    assert result.metadata["error_type"] == "UntrustedKeyError"
    assert "which this project lists as mallory's; you have not approved it" in str(result.error)


def _trusted_key_file() -> bytes:
    from rye.trust.key_format import render_trusted_key, trusted_key

    return render_trusted_key(trusted_key(MALLORY.public, "mallory", "2026-11-03T14:25:30Z"))


def test_a_private_key_that_others_can_read_is_not_used_or_printed(
    tmp_path: Path,
) -> None:
    project = Project(tmp_path)
    key = project.user / ".ai/keys/private_key.pem"
    key.chmod(0o644)
    tool = project.tool("t.yaml", TOOL.decode(), signed=False)
    with pytest.raises(KeyStoreError) as raised:
        sign_item(tool, project.context)
    assert f"chmod 600 {key}" in str(raised.value)
    assert "PRIVATE" not in str(raised.value)
    assert tool.read_bytes() == TOOL
    key.chmod(0o600)
    assert sign_item(tool, project.context).changed


def test_the_key_of_a_bundle_is_not_trusted_for_a_project_tool(tmp_path: Path) -> None:
    """A key in the system space is trusted for tools of that space only."""
    project = Project(tmp_path)
    keys = project.folder("system") / "trusted_keys"
    keys.mkdir()
    (keys / f"{MALLORY.fingerprint}.toml").write_bytes(_trusted_key_file())
    for space in ("system", "project"):
        tool = project.folder(space) / "tools" / f"{space}.yaml"
        tool.write_bytes(MALLORY.sign(TOOL))
    assert project.run("system").success
    assert project.run("project").metadata["error_type"] == "UntrustedKeyError"


def test_a_project_file_cannot_replace_a_primitive(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.yaml(SUBPROCESS, executor_id=None, config={"command": "false"})
    project.command("tools/hello", "/bin/echo", "hello")
    assert project.run("tools/hello").data["stdout"] == "hello\n"
