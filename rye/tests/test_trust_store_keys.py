"""The trust store: which keys are trusted, and for which files."""

from pathlib import Path

import pytest
from lilux.primitives.signing import ensure_keypair
from rye.context import Context
from rye.spaces.model import Space
from rye.trust.key_source import KeyEntry
from rye.trust.store import TrustStore
from trust_world import CREATED, Key, TrustWorld

ALICE, MALLORY = Key.new(), Key.new()


@pytest.fixture
def world(tmp_path: Path) -> TrustWorld:
    return TrustWorld(tmp_path)


def test_an_empty_store_trusts_no_key(world: TrustWorld) -> None:
    assert world.store().lookup(ALICE.fingerprint) is None
    assert world.store().entries() == ()


def test_a_key_of_the_user_is_trusted(world: TrustWorld) -> None:
    path = world.put_key(world.user, ALICE)
    assert world.store().lookup(ALICE.fingerprint) == ALICE.public
    assert world.store().entries() == (
        KeyEntry(
            fingerprint=ALICE.fingerprint,
            space="user",
            path=path,
            owner="alice",
            created=CREATED,
            public_key=ALICE.public,
            trusted=True,
        ),
    )


def test_a_system_key_is_listed_with_its_bundle(world: TrustWorld) -> None:
    world.put_key(world.system, ALICE)
    (entry,) = world.store().entries()
    assert (entry.space, entry.bundle, entry.trusted) == ("system", "rye", True)
    assert entry.within == world.system


def test_bundles_are_searched_if_no_spaces_are_given(world: TrustWorld) -> None:
    world.put_key(world.system, ALICE)
    inside = world.system / "tools/tool.py"
    assert TrustStore(world.context).lookup(ALICE.fingerprint, inside) == ALICE.public


def test_a_system_key_is_trusted_only_in_its_space(world: TrustWorld) -> None:
    world.put_key(world.system, ALICE)
    store = world.store()
    assert store.lookup(ALICE.fingerprint) is None
    beside = world.system.with_name(".ai-copy")
    climbing = world.system / "../../project/.ai"
    for root in (world.project, world.user, beside, climbing):
        assert store.lookup(ALICE.fingerprint, root / "tools/tool.py") is None
    assert store.lookup(ALICE.fingerprint, world.system / "tools/tool.py") == ALICE.public


def test_a_key_of_a_bundle_is_not_trusted_for_another_bundle(world: TrustWorld) -> None:
    root = world.system.parent / "acme" / ".ai"
    root.mkdir(parents=True)
    world.put_key(root, ALICE)
    acme = Space(name="system", root=root, bundle="acme")
    store = TrustStore(world.context, spaces=(world.system_space, acme))
    assert store.lookup(ALICE.fingerprint, root / "tools/tool.py") == ALICE.public
    assert store.lookup(ALICE.fingerprint, world.system / "tools/tool.py") is None


def test_a_system_key_is_trusted_if_the_root_of_its_space_is_a_link(world: TrustWorld) -> None:
    world.put_key(world.system, ALICE)
    link = world.system.parent / "link"
    link.symlink_to(world.system)
    store = TrustStore(world.context, spaces=(Space(name="system", root=link, bundle="rye"),))
    for root in (link, world.system):
        assert store.lookup(ALICE.fingerprint, root / "tools/tool.py") == ALICE.public


def test_a_system_key_that_the_user_added_is_trusted_everywhere(world: TrustWorld) -> None:
    world.put_key(world.system, ALICE)
    world.put_key(world.user, ALICE)
    assert world.store().lookup(ALICE.fingerprint) == ALICE.public


def test_the_users_own_key_is_trusted(world: TrustWorld) -> None:
    public = ensure_keypair(world.store().key_folder)[1]
    (entry,) = world.store().entries()
    assert (entry.own, entry.trusted, entry.public_key) == (True, True, public)
    assert world.store().lookup(entry.fingerprint) == public


def test_a_key_of_the_project_is_not_trusted(world: TrustWorld) -> None:
    world.put_key(world.project, ALICE)
    (entry,) = world.store().entries()
    assert (entry.space, entry.trusted, entry.problem) == ("project", False, "")
    assert world.store().lookup(ALICE.fingerprint) is None


def test_a_project_that_is_the_user_space_has_the_users_keys(world: TrustWorld) -> None:
    home = world.context.user_space
    context = Context(project_path=home, user_space=home, system_space=home / "system", environ={})
    world.put_key(world.user, ALICE)
    (entry,) = TrustStore(context, spaces=()).entries()
    assert (entry.space, entry.trusted) == ("user", True)


@pytest.mark.parametrize("text", ["", "../../keys", "0" * 15, "A" * 16, "0" * 16 + "\n"])
def test_only_fingerprints_are_looked_up(text: str, world: TrustWorld) -> None:
    assert world.store().lookup(text) is None
