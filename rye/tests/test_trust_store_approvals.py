"""The trust store: a project's keys, and the user's approvals of them."""

from pathlib import Path

import pytest
from messages import exactly
from rye.context import Context
from rye.errors import KeyStoreError
from rye.trust.store import TrustStore
from trust_world import Key, TrustWorld

ALICE, MALLORY = Key.new(), Key.new()


@pytest.fixture
def world(tmp_path: Path) -> TrustWorld:
    return TrustWorld(tmp_path)


def test_an_approval_is_stored_in_the_user_space(world: TrustWorld) -> None:
    world.put_key(world.project, ALICE)
    assert world.store().approve(ALICE.fingerprint).trusted
    assert world.store().lookup(ALICE.fingerprint) == ALICE.public
    approval = world.user / "approved_keys" / f"{ALICE.fingerprint}.toml"
    assert f'fingerprint = "{ALICE.fingerprint}"\n' in approval.read_text()


def test_an_approval_is_valid_in_every_project_that_lists_the_key(
    world: TrustWorld, tmp_path: Path
) -> None:
    world.put_key(world.project, ALICE)
    world.store().approve(ALICE.fingerprint)
    other = tmp_path / "other"
    (other / ".ai").mkdir(parents=True)
    context = Context(
        project_path=other, user_space=world.context.user_space, system_space=other, environ={}
    )
    assert TrustStore(context, spaces=()).lookup(ALICE.fingerprint) is None
    world.put_key(other / ".ai", ALICE)
    assert TrustStore(context, spaces=()).lookup(ALICE.fingerprint) == ALICE.public


def test_an_approval_pins_the_key_and_not_only_its_fingerprint(world: TrustWorld) -> None:
    """An attacker can find another key with the same 64 bits, but not with the same hash."""
    world.put_key(world.project, ALICE)
    world.store().approve(ALICE.fingerprint)
    approval = world.user / "approved_keys" / f"{ALICE.fingerprint}.toml"
    text = approval.read_text()
    pinned = text.rpartition('"')[0].rpartition('"')[2]
    approval.write_text(text.replace(pinned, "0" * 64))
    assert world.store().lookup(ALICE.fingerprint) is None


def test_an_approval_is_not_valid_for_another_key(world: TrustWorld) -> None:
    world.put_key(world.project, ALICE)
    world.put_key(world.project, MALLORY)
    world.store().approve(ALICE.fingerprint)
    assert world.store().lookup(MALLORY.fingerprint) is None


@pytest.mark.parametrize("text", ["", "fingerprint = 1\n", "\xff", "[[["])
def test_an_unreadable_approval_is_ignored(text: str, world: TrustWorld) -> None:
    world.put_key(world.project, ALICE)
    world.store().approve(ALICE.fingerprint)
    approval = world.user / "approved_keys" / f"{ALICE.fingerprint}.toml"
    approval.write_text(text, encoding="latin-1")
    assert world.store().lookup(ALICE.fingerprint) is None


def test_an_approval_that_other_users_could_have_written_is_ignored(world: TrustWorld) -> None:
    world.put_key(world.project, ALICE)
    world.store().approve(ALICE.fingerprint)
    (world.user / "approved_keys").chmod(0o777)
    assert world.store().lookup(ALICE.fingerprint) is None


def test_a_key_that_the_project_does_not_list_cannot_be_approved(world: TrustWorld) -> None:
    message = (
        f"key {ALICE.fingerprint} is not in {world.project / 'trusted_keys'}; get the public key "
        "from its owner, and trust it with: rye trust add PUBLIC_KEY.pem"
    )
    with pytest.raises(KeyStoreError, match=exactly(message)):
        world.store().approve(ALICE.fingerprint)


def test_a_malformed_key_cannot_be_approved(world: TrustWorld) -> None:
    path = world.put_key(world.project, ALICE, name=MALLORY.fingerprint)
    message = (
        f"cannot approve key {MALLORY.fingerprint}: {path}: contains key {ALICE.fingerprint}, "
        "which does not match its name; fix or remove it"
    )
    with pytest.raises(KeyStoreError, match=exactly(message)):
        world.store().approve(MALLORY.fingerprint)
