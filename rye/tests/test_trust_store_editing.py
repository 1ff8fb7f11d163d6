"""The trust store: adding and removing keys."""

import os
import stat
from pathlib import Path

import pytest
from lilux.primitives.signing import ensure_keypair
from messages import exactly
from rye.errors import KeyStoreError
from trust_world import Key, TrustWorld

ALICE, MALLORY = Key.new(), Key.new()


@pytest.fixture
def world(tmp_path: Path) -> TrustWorld:
    return TrustWorld(tmp_path)


def test_an_added_key_is_trusted_at_once_by_every_store(world: TrustWorld) -> None:
    store = world.store()
    entry = store.add(ALICE.public, 'Alice "Al" \\ Ælla')
    assert (entry.fingerprint, entry.trusted) == (ALICE.fingerprint, True)
    assert entry.owner == 'Alice "Al" \\ Ælla'
    assert store.lookup(ALICE.fingerprint) == ALICE.public
    assert world.store().entries() == (entry,)


def test_other_users_cannot_write_to_the_new_folder_and_file(world: TrustWorld) -> None:
    previous = os.umask(0)
    try:
        path = world.store().add(ALICE.public, "alice").path
    finally:
        os.umask(previous)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("key", [b"", b"x", ALICE.private, ALICE.public + b"\n"])
def test_only_a_public_key_can_be_added(key: bytes, world: TrustWorld) -> None:
    message = (
        "cannot trust this key: public_key is not the PEM of an Ed25519 public key; "
        "pass the public_key.pem of its owner, and a plain name"
    )
    with pytest.raises(KeyStoreError, match=exactly(message)):
        world.store().add(key, "alice")
    assert world.store().entries() == ()


def test_an_owner_cannot_inject_toml(world: TrustWorld) -> None:
    message = (
        "cannot trust this key: owner is not one line of at most 200 printable characters; "
        "pass the public_key.pem of its owner, and a plain name"
    )
    with pytest.raises(KeyStoreError, match=exactly(message)):
        world.store().add(ALICE.public, 'x"\npublic_key = "y')


def test_adding_to_a_folder_that_other_users_can_write_is_an_error(world: TrustWorld) -> None:
    folder = world.user / "trusted_keys"
    folder.mkdir()
    folder.chmod(0o777)
    message = (
        f"key {ALICE.fingerprint} is not trusted yet: {folder} is writable by other users "
        f"(mode 0777); fix it with: chmod go-w {folder}"
    )
    with pytest.raises(KeyStoreError, match=exactly(message)):
        world.store().add(ALICE.public, "alice")


def test_adding_where_nothing_can_be_written_is_an_error(world: TrustWorld) -> None:
    (world.user / "trusted_keys").write_text("a file in the way")
    path = world.user / "trusted_keys" / f"{ALICE.fingerprint}.toml"
    message = f"cannot write {path}: File exists; use a user space that you can write to"
    with pytest.raises(KeyStoreError, match=exactly(message)):
        world.store().add(ALICE.public, "alice")


def test_a_removed_key_is_not_trusted(world: TrustWorld) -> None:
    store = world.store()
    path = store.add(ALICE.public, "alice").path
    assert store.remove(ALICE.fingerprint) == (path,)
    assert store.lookup(ALICE.fingerprint) is None


def test_trust_and_approval_are_removed_together(world: TrustWorld) -> None:
    """Otherwise a removed key would still be trusted where a project lists it."""
    world.put_key(world.project, ALICE)
    store = world.store()
    store.approve(ALICE.fingerprint)
    store.add(ALICE.public, "alice")
    assert len(store.remove(ALICE.fingerprint)) == 2
    assert store.lookup(ALICE.fingerprint) is None


def test_a_missing_key_cannot_be_removed(world: TrustWorld) -> None:
    message = (
        f"cannot remove key {ALICE.fingerprint}: it is not in the trust store; "
        "list the keys with: rye trust list"
    )
    with pytest.raises(KeyStoreError, match=exactly(message)):
        world.store().remove(ALICE.fingerprint)


def test_a_key_of_the_project_cannot_be_removed(world: TrustWorld) -> None:
    path = world.put_key(world.project, ALICE)
    message = (
        f"cannot remove key {ALICE.fingerprint}: it is not approved, only listed by the "
        f"project; remove {path}"
    )
    with pytest.raises(KeyStoreError, match=exactly(message)):
        world.store().remove(ALICE.fingerprint)


def test_a_key_of_the_system_cannot_be_removed(world: TrustWorld) -> None:
    path = world.put_key(world.system, ALICE)
    message = (
        f"cannot remove key {ALICE.fingerprint}: it is part of the bundle rye; uninstall the bundle"
    )
    with pytest.raises(KeyStoreError, match=exactly(message)):
        world.store().remove(ALICE.fingerprint)
    assert path.exists()


def test_the_users_own_key_cannot_be_removed(world: TrustWorld) -> None:
    folder = world.store().key_folder
    ensure_keypair(folder)
    (entry,) = world.store().entries()
    message = (
        f"cannot remove key {entry.fingerprint}: it is your own key; to sign with a new one, "
        "run: rye key rotate"
    )
    with pytest.raises(KeyStoreError, match=exactly(message)):
        world.store().remove(entry.fingerprint)


def test_a_path_is_not_a_fingerprint(world: TrustWorld) -> None:
    (world.user / "precious.toml").touch()
    message = "'../precious' is not a fingerprint; list the keys with: rye trust list"
    with pytest.raises(KeyStoreError, match=exactly(message)):
        world.store().remove("../precious")
    assert (world.user / "precious.toml").exists()
