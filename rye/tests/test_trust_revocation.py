"""Revoked keys, in the trust store and in calls."""

from __future__ import annotations

from pathlib import Path

import pytest
from messages import exactly
from rye.cache.disk import DiskCache
from rye.errors import KeyStoreError, RevokedKeyError, UntrustedKeyError
from rye.trust.revocation import read_revocation, write_revocation
from rye.trust.store import TrustStore
from rye.trust.verify import Standing, judge, verify_item
from rye_project import Project, refused, says
from trust_world import Key, TrustWorld

ALICE = Key.new()
CONTENT = b"print()\n"


@pytest.fixture
def world(tmp_path: Path) -> TrustWorld:
    world = TrustWorld(tmp_path)
    world.put_key(world.user, ALICE)
    return world


def revoke(root: Path, text: str = "", fingerprint: str = ALICE.fingerprint) -> Path:
    folder = root / "revoked_keys"
    folder.mkdir(exist_ok=True)
    path = folder / f"{fingerprint}.toml"
    path.write_text(text)
    return path


def standing(world: TrustWorld, store: TrustStore | None = None) -> Standing:
    return judge(world.item(ALICE.sign(CONTENT)), "#", store or world.store()).standing


@pytest.mark.parametrize("place", ["user", "project"])
def test_a_signature_by_a_revoked_key_is_refused(world: TrustWorld, place: str) -> None:
    assert standing(world) is Standing.TRUSTED
    path = revoke(
        getattr(world, place),
        'owner = "alice"\nrevoked = "2026-11-03T14:25:30Z"\nreason = "lost"\n',
    )
    item = world.item(ALICE.sign(CONTENT))
    message = (
        f"tool is signed by key {ALICE.fingerprint} of alice, which was revoked (2026-11-03, "
        f"lost): {item.path}; get the file from its author, signed again with another key; or "
        f"read it, and if you trust it, sign it with: rye sign {item.path}"
    )
    with pytest.raises(RevokedKeyError, match=exactly(message)):
        verify_item(item, "#", world.store(), "tool")
    path.unlink()
    assert standing(world) is Standing.TRUSTED


@pytest.mark.parametrize("text", ["", "]not toml[", 'reason = "a\\u001b[2Jb"\n', "reason = 3\n"])
def test_a_damaged_revocation_still_revokes(world: TrustWorld, text: str) -> None:
    path = revoke(world.project, text)
    assert standing(world) is Standing.REVOKED
    assert read_revocation(path).words == ""


def test_a_project_cannot_undo_the_revocation_of_the_user(world: TrustWorld) -> None:
    revoke(world.user)
    world.put_key(world.project, ALICE)
    assert standing(world) is Standing.REVOKED
    with pytest.raises(KeyStoreError, match="it was revoked; if that was a mistake, remove "):
        world.store().approve(ALICE.fingerprint)
    with pytest.raises(KeyStoreError, match="it was revoked; if that was a mistake, remove "):
        world.store().add(ALICE.public, "alice")


def test_an_unknown_key_that_is_revoked_is_not_proposed_for_trust(world: TrustWorld) -> None:
    mallory = Key.new()
    revoke(world.project, fingerprint=mallory.fingerprint)
    item = world.item(mallory.sign(CONTENT))
    with pytest.raises(RevokedKeyError) as caught:
        verify_item(item, "#", world.store(), "tool")
    assert "trust add" not in str(caught.value)


def test_a_forged_signature_by_a_revoked_key_is_called_forged(world: TrustWorld) -> None:
    signed = bytearray(Key.new().sign(CONTENT))
    at = signed.index(b"\n") - 16
    signed[at : at + 16] = ALICE.fingerprint.encode()
    revoke(world.project)
    assert judge(world.item(bytes(signed)), "#", world.store()).standing is Standing.FORGED


def test_a_folder_of_revoked_keys_that_cannot_be_read_refuses_every_key(
    world: TrustWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rye.trust.key_folder.MAX_ENTRIES", 3)
    folder = world.project / "revoked_keys"
    folder.mkdir()
    for number in range(4):
        (folder / f"{number:016x}.toml").touch()
    item = world.item(ALICE.sign(CONTENT))
    with pytest.raises(KeyStoreError, match="has more than 3 keys"):
        verify_item(item, "#", world.store(), "tool")


def test_revocations_of_the_user_that_others_could_remove_refuse_every_key(
    world: TrustWorld,
) -> None:
    path = revoke(world.user)
    path.unlink()
    path.parent.chmod(0o777)
    item = world.item(ALICE.sign(CONTENT))
    with pytest.raises(KeyStoreError, match="is writable by other users"):
        verify_item(item, "#", world.store(), "tool")


def test_a_signature_that_the_disk_cache_knows_is_refused_after_a_revocation(
    world: TrustWorld,
) -> None:
    (world.user / "cache").mkdir(mode=0o700)
    (world.user / "cache" / "items").mkdir(mode=0o700)

    def store() -> TrustStore:
        cache = DiskCache(world.user / "cache" / "items")
        return TrustStore(world.context, spaces=(world.system_space,), disk_cache=cache)

    first = store()
    assert standing(world, first) is Standing.TRUSTED
    first.disk_cache.flush()
    revoke(world.project)
    assert standing(world, store()) is Standing.REVOKED


def test_a_warm_store_notices_a_revocation(world: TrustWorld) -> None:
    store = world.store()
    assert standing(world, store) is Standing.TRUSTED
    revoke(world.project)
    store.stamp()
    assert standing(world, store) is Standing.REVOKED


def test_the_list_shows_revoked_keys(world: TrustWorld) -> None:
    path = revoke(world.project)
    (entry,) = world.store().entries()
    assert (entry.trusted, entry.revoked) == (False, path)


def test_a_reason_cannot_control_a_terminal(world: TrustWorld) -> None:
    folder = world.store().revocations.project
    with pytest.raises(KeyStoreError, match="the reason is not one line of at most 200 printable"):
        write_revocation(folder, ALICE.fingerprint, reason="\x1b[2J")
    with pytest.raises(KeyStoreError, match=r"'\.\./x' is not a fingerprint"):
        write_revocation(folder, "../x")
    assert not folder.path.exists()


def test_a_key_that_the_user_removed_is_not_proposed_again(world: TrustWorld) -> None:
    world.put_key(world.project, ALICE)
    store = world.store()
    store.remove(ALICE.fingerprint)
    item = world.item(ALICE.sign(CONTENT))
    with pytest.raises(UntrustedKeyError) as caught:
        verify_item(item, "#", store, "tool")
    assert f"key {ALICE.fingerprint}, which you stopped trusting on 20" in str(caught.value)
    assert "trust add" not in str(caught.value)
    store.approve(ALICE.fingerprint)
    assert store.removed_on(ALICE.fingerprint) == ""
    assert standing(world) is Standing.TRUSTED


def test_a_tool_signed_by_a_revoked_key_does_not_run(tmp_path: Path) -> None:
    project = Project(tmp_path)
    tool = says(project, "touch ran")
    (own,) = [one for one in TrustStore(project.context).entries() if one.own]
    revoke(project.path / ".ai", fingerprint=own.fingerprint)
    message = refused(project.run(tool), "RevokedKeyError")
    assert f"is signed by key {own.fingerprint}, which was revoked" in message
    assert not (project.path / "ran").exists()
