"""The trust store: every change of its files is noticed, also by several threads."""

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from lilux.primitives.signing import ensure_keypair
from rye.errors import UntrustedKeyError
from rye.executor.chain import snapshot
from rye.executor.chain.snapshot import Library
from rye.trust.key_folder import KeyFolder
from rye.trust.key_source import KeyEntry, KeySource
from rye.trust.verify import Verdict, verify_item
from rye_project import Project
from trust_world import Key, TrustWorld

ALICE, MALLORY = Key.new(), Key.new()


@pytest.fixture
def world(tmp_path: Path) -> TrustWorld:
    return TrustWorld(tmp_path)


def test_the_stamp_stays_the_same_while_nothing_changes(world: TrustWorld) -> None:
    world.put_key(world.user, ALICE)
    store = world.store()
    first = store.stamp()
    store.lookup(ALICE.fingerprint)
    assert store.stamp() == first
    assert hash(store.stamp()) == hash(first)
    assert world.store().stamp() == first


@pytest.mark.parametrize("space", ["project", "user", "system"])
def test_a_new_a_changed_and_a_removed_file_are_noticed(space: str, world: TrustWorld) -> None:
    store = world.store()
    seen = [store.stamp()]
    path = world.put_key(getattr(world, space), ALICE)
    seen.append(store.stamp())
    world.put_key(getattr(world, space), MALLORY)
    seen.append(store.stamp())
    path.write_text(path.read_text().replace("alice", "al"))
    seen.append(store.stamp())
    path.chmod(0o600)
    seen.append(store.stamp())
    path.unlink()
    seen.append(store.stamp())
    assert len(set(seen)) == len(seen)


def test_an_edit_that_keeps_size_and_time_is_noticed(world: TrustWorld) -> None:
    path = world.put_key(world.user, ALICE)
    store = world.store()
    before, status = store.stamp(), path.stat()
    path.write_text(path.read_text().replace("alice", "mallo"))
    deadline = time.monotonic() + 5
    # Where the clock of the file system is coarse, the edit may fall into the same tick.
    while path.stat().st_ctime_ns == status.st_ctime_ns and time.monotonic() < deadline:
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (
        status.st_size,
        status.st_mtime_ns,
    )
    assert store.stamp() != before


def test_an_approval_and_its_removal_are_noticed(world: TrustWorld) -> None:
    world.put_key(world.project, ALICE)
    store, other = world.store(), world.store()
    before = store.stamp()
    other.approve(ALICE.fingerprint)
    assert store.stamp() != before
    assert store.lookup(ALICE.fingerprint) == ALICE.public
    other.remove(ALICE.fingerprint)
    store.stamp()
    assert store.lookup(ALICE.fingerprint) is None


def test_the_users_first_key_is_noticed(world: TrustWorld) -> None:
    store = world.store()
    before = store.stamp()
    ensure_keypair(store.key_folder)
    assert store.stamp() != before


def test_a_folder_that_becomes_writable_to_others_is_noticed(world: TrustWorld) -> None:
    folder = world.put_key(world.user, ALICE).parent
    store = world.store()
    assert store.lookup(ALICE.fingerprint) is not None
    folder.chmod(0o777)
    store.stamp()
    assert store.lookup(ALICE.fingerprint) is None


def test_a_parent_folder_that_becomes_writable_to_others_is_noticed(world: TrustWorld) -> None:
    world.put_key(world.user, ALICE)
    store = world.store()
    assert store.lookup(ALICE.fingerprint) is not None
    world.user.chmod(0o777)
    store.stamp()
    assert store.lookup(ALICE.fingerprint) is None


def test_a_folder_that_changed_just_now_is_listed_again(
    world: TrustWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = KeyFolder(world.put_key(world.user, ALICE).parent, guarded=True)
    listed: list[str] = []
    scandir = os.scandir

    def list_folder(path: str) -> Any:
        listed.append(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", list_folder)
    changed = folder.path.stat().st_ctime_ns
    for now, lists in ((changed, 1), (changed - 10**12, 2), (changed + 10**9, 3), (0, 3)):
        monkeypatch.setattr(time, "time_ns", lambda now=now: now)
        folder.look()
        assert len(listed) == lists


@pytest.mark.parametrize("name", ["keys", "."])
def test_a_folder_of_the_own_key_that_becomes_writable_to_others_is_noticed(
    world: TrustWorld, name: str
) -> None:
    store = world.store()
    ensure_keypair(store.key_folder)
    (entry,) = store.entries()
    assert store.lookup(entry.fingerprint) is not None
    (world.user / name).chmod(0o777)
    store.stamp()
    assert store.lookup(entry.fingerprint) is None


def test_the_stamp_of_an_earlier_state_never_comes_back(world: TrustWorld) -> None:
    """A verdict by one state must not be used in another, even if the files look the same."""
    world.put_key(world.user, ALICE)
    store = world.store()
    first = store.stamp()
    world.user.chmod(0o777)
    store.stamp()
    world.user.chmod(0o755)
    assert store.stamp() != first


def test_a_key_that_a_slow_thread_read_before_its_removal_is_not_trusted_afterwards(
    world: TrustWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = world.put_key(world.user, ALICE)
    store = world.store()
    store.stamp()
    was_read, go_on = threading.Event(), threading.Event()
    entry = KeySource.entry

    def slow(*arguments: Any) -> KeyEntry:
        found = entry(*arguments)
        was_read.set()
        assert go_on.wait(10)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(KeySource, "entry", slow)
        reader = threading.Thread(target=store.find, args=(ALICE.fingerprint,))
        reader.start()
        assert was_read.wait(10)
    path.unlink()
    store.stamp()
    go_on.set()
    reader.join()
    assert store.lookup(ALICE.fingerprint) is None


def test_a_key_is_trusted_while_another_thread_lists_its_folder(
    world: TrustWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.put_key(world.user, ALICE)
    store = world.store()
    store.stamp()
    world.put_key(world.user, MALLORY)
    listing, go_on = threading.Event(), threading.Event()
    scandir = os.scandir

    def slow(path: str) -> Any:
        listing.set()
        assert go_on.wait(10)
        return scandir(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", slow)
        other = threading.Thread(target=store.stamp)
        other.start()
        assert listing.wait(10)
    try:
        assert store.lookup(ALICE.fingerprint) == ALICE.public
    finally:
        go_on.set()
        other.join()
    assert store.lookup(MALLORY.fingerprint) == MALLORY.public


def test_a_file_verified_before_a_key_was_removed_is_verified_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when another thread notices the removal just after the verification."""
    project = Project(tmp_path)
    helper = project.tool("helper.py", "x = 1\n")
    library = Library(project.context)

    def verify_then_remove(*arguments: Any) -> Verdict:
        verdict = verify_item(*arguments)
        (project.user / ".ai/keys/public_key.pem").unlink()
        library.store.stamp()
        return verdict

    with monkeypatch.context() as patch:
        patch.setattr(snapshot, "verify_item", verify_then_remove)
        library.snapshot().verify_file(str(helper), project.path / ".ai", "helper.py")
    with pytest.raises(UntrustedKeyError):
        library.snapshot().verify_file(str(helper), project.path / ".ai", "helper.py")
