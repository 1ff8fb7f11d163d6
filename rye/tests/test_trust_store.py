"""The trust store: what counts, what does not, and that every change is seen."""

import os
import re
import stat
import time
from pathlib import Path
from typing import Any

import pytest
from lilux.primitives.signing import ensure_keypair
from rye.context import Context
from rye.errors import KeyStoreError
from rye.spaces.model import Space
from rye.trust.key_folder import MAX_ENTRIES, MAX_ENTRY_BYTES, KeyFolder
from rye.trust.key_source import KeyEntry
from rye.trust.store import TrustStore
from trust_world import CREATED, Key, TrustWorld

ALICE, MALLORY = Key.new(), Key.new()


@pytest.fixture
def world(tmp_path: Path) -> TrustWorld:
    return TrustWorld(tmp_path)


def exactly(message: str) -> str:
    return f"^{re.escape(message)}$"


def the_problem(world: TrustWorld) -> str:
    """What keeps the only entry from counting."""
    store = world.store()
    (entry,) = store.entries()
    assert not entry.counts
    assert store.lookup(entry.fingerprint) is None
    return entry.problem


class TestWhatCounts:
    def test_an_empty_store_knows_nobody(self, world: TrustWorld) -> None:
        assert world.store().lookup(ALICE.fingerprint) is None
        assert world.store().entries() == ()

    def test_a_key_of_the_user(self, world: TrustWorld) -> None:
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
                counts=True,
            ),
        )

    def test_a_key_of_the_system_with_its_bundle(self, world: TrustWorld) -> None:
        world.put_key(world.system, ALICE)
        (entry,) = world.store().entries()
        assert (entry.space, entry.bundle, entry.counts) == ("system", "rye", True)
        assert entry.within == world.system

    def test_the_bundles_are_found_if_they_are_not_given(self, world: TrustWorld) -> None:
        world.put_key(world.system, ALICE)
        inside = world.system / "tools/tool.py"
        assert TrustStore(world.context).lookup(ALICE.fingerprint, inside) == ALICE.public

    def test_a_key_of_the_system_only_below_its_root(self, world: TrustWorld) -> None:
        world.put_key(world.system, ALICE)
        store = world.store()
        assert store.lookup(ALICE.fingerprint) is None
        beside = world.system.with_name(".ai-copy")
        climbing = world.system / "../../project/.ai"
        for root in (world.project, world.user, beside, climbing):
            assert store.lookup(ALICE.fingerprint, root / "tools/tool.py") is None
        assert store.lookup(ALICE.fingerprint, world.system / "tools/tool.py") == ALICE.public

    def test_a_key_of_a_bundle_not_for_another_bundle(self, world: TrustWorld) -> None:
        root = world.system.parent / "acme" / ".ai"
        root.mkdir(parents=True)
        world.put_key(root, ALICE)
        acme = Space(name="system", root=root, bundle="acme")
        store = TrustStore(world.context, spaces=(world.system_space, acme))
        assert store.lookup(ALICE.fingerprint, root / "tools/tool.py") == ALICE.public
        assert store.lookup(ALICE.fingerprint, world.system / "tools/tool.py") is None

    def test_a_key_of_the_system_whose_root_is_a_link(self, world: TrustWorld) -> None:
        world.put_key(world.system, ALICE)
        link = world.system.parent / "link"
        link.symlink_to(world.system)
        store = TrustStore(world.context, spaces=(Space(name="system", root=link, bundle="rye"),))
        for root in (link, world.system):
            assert store.lookup(ALICE.fingerprint, root / "tools/tool.py") == ALICE.public

    def test_a_key_of_the_system_everywhere_once_the_user_vouches_for_it(
        self, world: TrustWorld
    ) -> None:
        world.put_key(world.system, ALICE)
        world.put_key(world.user, ALICE)
        assert world.store().lookup(ALICE.fingerprint) == ALICE.public

    def test_the_users_own_key(self, world: TrustWorld) -> None:
        public = ensure_keypair(world.store().key_folder)[1]
        (entry,) = world.store().entries()
        assert (entry.own, entry.counts, entry.public_key) == (True, True, public)
        assert world.store().lookup(entry.fingerprint) == public

    def test_a_key_of_the_project_does_not(self, world: TrustWorld) -> None:
        world.put_key(world.project, ALICE)
        (entry,) = world.store().entries()
        assert (entry.space, entry.counts, entry.problem) == ("project", False, "")
        assert world.store().lookup(ALICE.fingerprint) is None

    def test_a_project_that_is_the_user_space_has_the_users_keys(self, world: TrustWorld) -> None:
        home = world.context.user_space
        context = Context(
            project_path=home, user_space=home, system_space=home / "system", environ={}
        )
        world.put_key(world.user, ALICE)
        (entry,) = TrustStore(context, spaces=()).entries()
        assert (entry.space, entry.counts) == ("user", True)

    @pytest.mark.parametrize("text", ["", "../../keys", "0" * 15, "A" * 16, "0" * 16 + "\n"])
    def test_only_fingerprints_are_looked_up(self, text: str, world: TrustWorld) -> None:
        assert world.store().lookup(text) is None


class TestApproval:
    def test_it_is_remembered_in_the_user_space(self, world: TrustWorld) -> None:
        world.put_key(world.project, ALICE)
        assert world.store().approve(ALICE.fingerprint).counts
        assert world.store().lookup(ALICE.fingerprint) == ALICE.public
        approval = world.user / "approved_keys" / f"{ALICE.fingerprint}.toml"
        assert f'fingerprint = "{ALICE.fingerprint}"\n' in approval.read_text()

    def test_it_holds_in_every_project_that_brings_the_key(
        self, world: TrustWorld, tmp_path: Path
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

    def test_it_pins_the_key_and_not_only_its_fingerprint(self, world: TrustWorld) -> None:
        """64 bits can be matched by somebody who tries long enough; the whole hash cannot."""
        world.put_key(world.project, ALICE)
        world.store().approve(ALICE.fingerprint)
        approval = world.user / "approved_keys" / f"{ALICE.fingerprint}.toml"
        text = approval.read_text()
        pinned = text.rpartition('"')[0].rpartition('"')[2]
        approval.write_text(text.replace(pinned, "0" * 64))
        assert world.store().lookup(ALICE.fingerprint) is None

    def test_it_does_not_carry_over_to_another_key(self, world: TrustWorld) -> None:
        world.put_key(world.project, ALICE)
        world.put_key(world.project, MALLORY)
        world.store().approve(ALICE.fingerprint)
        assert world.store().lookup(MALLORY.fingerprint) is None

    @pytest.mark.parametrize("text", ["", "fingerprint = 1\n", "\xff", "[[["])
    def test_one_that_cannot_be_read_does_not_count(self, text: str, world: TrustWorld) -> None:
        world.put_key(world.project, ALICE)
        world.store().approve(ALICE.fingerprint)
        approval = world.user / "approved_keys" / f"{ALICE.fingerprint}.toml"
        approval.write_text(text, encoding="latin-1")
        assert world.store().lookup(ALICE.fingerprint) is None

    def test_one_that_others_could_have_given_does_not_count(self, world: TrustWorld) -> None:
        world.put_key(world.project, ALICE)
        world.store().approve(ALICE.fingerprint)
        (world.user / "approved_keys").chmod(0o777)
        assert world.store().lookup(ALICE.fingerprint) is None

    def test_a_key_that_the_project_does_not_bring(self, world: TrustWorld) -> None:
        message = (
            f"no key {ALICE.fingerprint} in {world.project / 'trusted_keys'}; get the public key "
            "from its owner, and trust it with: rye trust add PUBLIC_KEY.pem"
        )
        with pytest.raises(KeyStoreError, match=exactly(message)):
            world.store().approve(ALICE.fingerprint)

    def test_a_key_that_cannot_be_used(self, world: TrustWorld) -> None:
        path = world.put_key(world.project, ALICE, name=MALLORY.fingerprint)
        message = (
            f"cannot approve key {MALLORY.fingerprint}: {path}: it holds key {ALICE.fingerprint}, "
            "which its name does not say; mend it, or remove it"
        )
        with pytest.raises(KeyStoreError, match=exactly(message)):
            world.store().approve(MALLORY.fingerprint)


class TestEntriesThatCannotBeUsed:
    def test_a_name_that_does_not_match_the_content(self, world: TrustWorld) -> None:
        path = world.put_key(world.user, ALICE, name=MALLORY.fingerprint)
        assert the_problem(world) == (
            f"{path}: it holds key {ALICE.fingerprint}, which its name does not say; "
            "mend it, or remove it"
        )
        assert world.store().lookup(ALICE.fingerprint) is None

    def test_a_fingerprint_that_is_not_the_keys(self, world: TrustWorld) -> None:
        """Else a file could put another key in the place of one that signatures name."""
        path = world.put_key(world.user, MALLORY, name=ALICE.fingerprint)
        path.write_text(path.read_text().replace(MALLORY.fingerprint, ALICE.fingerprint))
        assert the_problem(world) == (
            f"{path}: fingerprint is not that of public_key; mend it, or remove it"
        )

    @pytest.mark.parametrize(
        ("old", "new", "reason"),
        [
            ('owner = "alice"', "owner = 1", "owner is not a string"),
            ('owner = "alice"\n', "", "owner is missing"),
            ("public_key = ", "x = ", "public_key is missing"),
            ("created = ", "created", "it is not TOML"),
            ("fingerprint = ", "[fingerprint]\nx = ", "fingerprint is not a string"),
            ("BEGIN PUBLIC", "BEGIN PRIVATE", "public_key is not the PEM of an Ed25519 public key"),
            ("MCowBQYDK2Vw", "MCowBQYDK2Vu", "public_key is not the PEM of an Ed25519 public key"),
            (
                '"alice"',
                '"alice\\u001b[2J"',
                "owner is not one line of at most 200 printable characters",
            ),
            (
                '"alice"',
                '"alice\\u202e"',
                "owner is not one line of at most 200 printable characters",
            ),
            (
                '"alice"',
                f'"{"a" * 201}"',
                "owner is not one line of at most 200 printable characters",
            ),
        ],
    )
    def test_content_that_is_no_entry(
        self, old: str, new: str, reason: str, world: TrustWorld
    ) -> None:
        path = world.put_key(world.user, ALICE)
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        assert the_problem(world) == f"{path}: {reason}; mend it, or remove it"

    def test_a_key_has_one_spelling(self, world: TrustWorld) -> None:
        """The idle bits of the last digit do not make a second key of a first."""
        path = world.put_key(world.user, ALICE)
        digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        last = ALICE.public.decode().splitlines()[1][-2]
        other = digits[digits.index(last) + 1]
        path.write_text(path.read_text().replace(f"{last}=\n", f"{other}=\n"))
        assert the_problem(world).startswith(f"{path}: public_key is not the PEM")

    def test_a_symlink(self, world: TrustWorld, tmp_path: Path) -> None:
        path = world.put_key(world.user, ALICE)
        path.rename(tmp_path / "elsewhere.toml")
        path.symlink_to(tmp_path / "elsewhere.toml")
        assert the_problem(world) == f"{path} is a symlink; put the file itself there"

    def test_a_fifo_does_not_hold_the_caller_up(self, world: TrustWorld) -> None:
        path = world.put_key(world.user, ALICE)
        path.unlink()
        os.mkfifo(path)
        assert the_problem(world) == f"{path} is not a regular file; put the key itself there"

    def test_a_huge_file(self, world: TrustWorld) -> None:
        path = world.put_key(world.user, ALICE)
        with path.open("r+b") as stream:
            stream.truncate(1 << 40)
        assert the_problem(world) == (
            f"{path} is larger than {MAX_ENTRY_BYTES} bytes; restore or remove it"
        )

    def test_a_file_that_others_may_change(self, world: TrustWorld) -> None:
        path = world.put_key(world.user, ALICE)
        path.chmod(0o664)
        assert the_problem(world) == (
            f"{path} may be changed by others (mode 0664); close it with: chmod go-w {path}"
        )

    def test_a_folder_that_others_may_write_into(self, world: TrustWorld) -> None:
        folder = world.put_key(world.user, ALICE).parent
        folder.chmod(0o777)
        assert the_problem(world) == (
            f"{folder} may be changed by others (mode 0777); close it with: chmod go-w {folder}"
        )
        folder.chmod(0o755)
        assert world.store().lookup(ALICE.fingerprint) == ALICE.public

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
    def test_a_folder_of_another_user(self, world: TrustWorld) -> None:
        folder = world.put_key(world.user, ALICE).parent
        os.chown(folder, 12345, -1)
        assert the_problem(world) == (
            f"{folder} belongs to another user (uid 12345); "
            "make it yours, or use a user space that is"
        )

    def test_a_folder_with_far_too_many_files(self, world: TrustWorld) -> None:
        folder = world.project / "trusted_keys"
        folder.mkdir()
        for number in range(MAX_ENTRIES + 1):
            (folder / f"{number}.toml").touch()
        assert world.store().entries() == ()
        assert world.store().problems() == (
            f"{folder} holds more than 1000 keys; remove those that are not needed",
        )

    def test_a_folder_that_cannot_be_read_and_then_is_mended(self, world: TrustWorld) -> None:
        folder = world.user / "trusted_keys"
        folder.symlink_to(folder)
        store = world.store()
        assert store.problems() == (
            f"cannot read {folder}: Too many levels of symbolic links; make it readable for you",
        )
        folder.unlink()
        assert store.problems() == ()
        world.put_key(world.user, ALICE)
        store.stamp()
        assert store.lookup(ALICE.fingerprint) == ALICE.public

    def test_they_leave_the_others_alone(self, world: TrustWorld) -> None:
        world.put_key(world.user, ALICE)
        world.put_key(world.user, MALLORY).write_text("nonsense")
        assert world.store().lookup(ALICE.fingerprint) == ALICE.public
        assert world.store().lookup(MALLORY.fingerprint) is None

    def test_one_that_is_fine_elsewhere_counts(self, world: TrustWorld) -> None:
        world.put_key(world.user, ALICE).write_text("nonsense")
        world.put_key(world.system, ALICE)
        inside = world.system / "tools/tool.py"
        assert world.store().lookup(ALICE.fingerprint, inside) == ALICE.public

    def test_files_of_other_kinds_are_not_entries(self, world: TrustWorld) -> None:
        folder = world.put_key(world.user, ALICE).parent
        (folder / "README.md").write_text("keys")
        assert len(world.store().entries()) == 1

    def test_an_own_key_that_others_may_change(self, world: TrustWorld) -> None:
        ensure_keypair(world.store().key_folder)
        path = world.user / "keys" / "public_key.pem"
        path.chmod(0o666)
        (entry,) = world.store().entries()
        assert not entry.counts
        assert entry.problem == (
            f"{path} may be changed by others (mode 0666); close it with: chmod go-w {path}"
        )

    def test_an_own_key_in_a_folder_that_others_may_write_into(self, world: TrustWorld) -> None:
        folder = world.store().key_folder
        ensure_keypair(folder)
        folder.chmod(0o777)
        (entry,) = world.store().entries()
        assert world.store().lookup(entry.fingerprint) is None
        assert entry.problem.startswith(f"{folder} may be changed by others (mode 0777)")

    def test_an_own_key_that_is_none(self, world: TrustWorld) -> None:
        folder = world.store().key_folder
        ensure_keypair(folder)
        (folder / "public_key.pem").write_text("nonsense")
        (entry,) = world.store().entries()
        assert not entry.counts
        assert entry.problem == (
            f"{folder / 'public_key.pem'} is not the PEM of an Ed25519 public key; "
            "mend it, or remove it"
        )


class TestStamp:
    def test_it_stays_while_nothing_changes(self, world: TrustWorld) -> None:
        world.put_key(world.user, ALICE)
        store = world.store()
        first = store.stamp()
        store.lookup(ALICE.fingerprint)
        assert store.stamp() == first
        assert hash(store.stamp()) == hash(first)
        assert world.store().stamp() == first

    @pytest.mark.parametrize("space", ["project", "user", "system"])
    def test_it_sees_a_new_a_changed_and_a_removed_file(
        self, space: str, world: TrustWorld
    ) -> None:
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

    def test_it_sees_an_edit_in_place_that_keeps_size_and_time(self, world: TrustWorld) -> None:
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

    def test_it_sees_an_approval_and_its_end(self, world: TrustWorld) -> None:
        world.put_key(world.project, ALICE)
        store, other = world.store(), world.store()
        before = store.stamp()
        other.approve(ALICE.fingerprint)
        assert store.stamp() != before
        assert store.lookup(ALICE.fingerprint) == ALICE.public
        other.remove(ALICE.fingerprint)
        store.stamp()
        assert store.lookup(ALICE.fingerprint) is None

    def test_it_sees_the_users_first_key(self, world: TrustWorld) -> None:
        store = world.store()
        before = store.stamp()
        ensure_keypair(store.key_folder)
        assert store.stamp() != before

    def test_it_sees_a_folder_that_is_opened_to_others(self, world: TrustWorld) -> None:
        folder = world.put_key(world.user, ALICE).parent
        store = world.store()
        assert store.lookup(ALICE.fingerprint) is not None
        folder.chmod(0o777)
        store.stamp()
        assert store.lookup(ALICE.fingerprint) is None

    def test_it_sees_that_others_may_exchange_a_folder(self, world: TrustWorld) -> None:
        world.put_key(world.user, ALICE)
        store = world.store()
        assert store.lookup(ALICE.fingerprint) is not None
        world.user.chmod(0o777)
        store.stamp()
        assert store.lookup(ALICE.fingerprint) is None

    def test_it_lists_a_folder_again_while_the_clock_cannot_tell_changes_apart(
        self, world: TrustWorld, monkeypatch: pytest.MonkeyPatch
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
    def test_it_sees_a_folder_of_the_users_own_key_that_is_opened_to_others(
        self, world: TrustWorld, name: str
    ) -> None:
        store = world.store()
        ensure_keypair(store.key_folder)
        (entry,) = store.entries()
        assert store.lookup(entry.fingerprint) is not None
        (world.user / name).chmod(0o777)
        store.stamp()
        assert store.lookup(entry.fingerprint) is None


class TestAdding:
    def test_the_key_counts_at_once_and_for_others(self, world: TrustWorld) -> None:
        store = world.store()
        entry = store.add(ALICE.public, 'Alice "Al" \\ Ælla')
        assert (entry.fingerprint, entry.counts) == (ALICE.fingerprint, True)
        assert entry.owner == 'Alice "Al" \\ Ælla'
        assert store.lookup(ALICE.fingerprint) == ALICE.public
        assert world.store().entries() == (entry,)

    def test_folder_and_file_are_closed_to_others(self, world: TrustWorld) -> None:
        previous = os.umask(0)
        try:
            path = world.store().add(ALICE.public, "alice").path
        finally:
            os.umask(previous)
        assert stat.S_IMODE(path.stat().st_mode) == 0o644
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700

    @pytest.mark.parametrize("key", [b"", b"x", ALICE.private, ALICE.public + b"\n"])
    def test_what_is_no_public_key(self, key: bytes, world: TrustWorld) -> None:
        message = (
            "cannot trust this key: public_key is not the PEM of an Ed25519 public key; "
            "pass the public_key.pem of its owner, and a plain name"
        )
        with pytest.raises(KeyStoreError, match=exactly(message)):
            world.store().add(key, "alice")
        assert world.store().entries() == ()

    def test_an_owner_who_would_write_toml(self, world: TrustWorld) -> None:
        message = (
            "cannot trust this key: owner is not one line of at most 200 printable characters; "
            "pass the public_key.pem of its owner, and a plain name"
        )
        with pytest.raises(KeyStoreError, match=exactly(message)):
            world.store().add(ALICE.public, 'x"\npublic_key = "y')

    def test_into_a_folder_that_others_may_write_into(self, world: TrustWorld) -> None:
        folder = world.user / "trusted_keys"
        folder.mkdir()
        folder.chmod(0o777)
        message = (
            f"key {ALICE.fingerprint} does not count yet: {folder} may be changed by others "
            f"(mode 0777); close it with: chmod go-w {folder}"
        )
        with pytest.raises(KeyStoreError, match=exactly(message)):
            world.store().add(ALICE.public, "alice")

    def test_where_nothing_can_be_written(self, world: TrustWorld) -> None:
        (world.user / "trusted_keys").write_text("a file in the way")
        path = world.user / "trusted_keys" / f"{ALICE.fingerprint}.toml"
        message = f"cannot write {path}: File exists; use a user space that you may write to"
        with pytest.raises(KeyStoreError, match=exactly(message)):
            world.store().add(ALICE.public, "alice")


class TestRemoving:
    def test_the_key_counts_no_more(self, world: TrustWorld) -> None:
        store = world.store()
        path = store.add(ALICE.public, "alice").path
        assert store.remove(ALICE.fingerprint) == (path,)
        assert store.lookup(ALICE.fingerprint) is None

    def test_trust_and_approval_go_together(self, world: TrustWorld) -> None:
        """Else a key that was taken back would still count where a project brings it."""
        world.put_key(world.project, ALICE)
        store = world.store()
        store.approve(ALICE.fingerprint)
        store.add(ALICE.public, "alice")
        assert len(store.remove(ALICE.fingerprint)) == 2
        assert store.lookup(ALICE.fingerprint) is None

    def test_a_key_that_is_not_there(self, world: TrustWorld) -> None:
        message = (
            f"cannot remove key {ALICE.fingerprint}: it is not in the trust store; "
            "see what is with: rye trust list"
        )
        with pytest.raises(KeyStoreError, match=exactly(message)):
            world.store().remove(ALICE.fingerprint)

    def test_a_key_that_the_project_brings(self, world: TrustWorld) -> None:
        path = world.put_key(world.project, ALICE)
        message = (
            f"cannot remove key {ALICE.fingerprint}: it is not approved, only brought by the "
            f"project; remove {path}"
        )
        with pytest.raises(KeyStoreError, match=exactly(message)):
            world.store().remove(ALICE.fingerprint)

    def test_a_key_of_the_system(self, world: TrustWorld) -> None:
        path = world.put_key(world.system, ALICE)
        message = (
            f"cannot remove key {ALICE.fingerprint}: it comes with the bundle rye; uninstall that"
        )
        with pytest.raises(KeyStoreError, match=exactly(message)):
            world.store().remove(ALICE.fingerprint)
        assert path.exists()

    def test_the_users_own_key(self, world: TrustWorld) -> None:
        folder = world.store().key_folder
        ensure_keypair(folder)
        (entry,) = world.store().entries()
        message = (
            f"cannot remove key {entry.fingerprint}: it is your own; to sign with a new one, "
            f"remove {folder}"
        )
        with pytest.raises(KeyStoreError, match=exactly(message)):
            world.store().remove(entry.fingerprint)

    def test_a_path_is_no_fingerprint(self, world: TrustWorld) -> None:
        (world.user / "precious.toml").touch()
        message = "'../precious' is no fingerprint; see which keys there are with: rye trust list"
        with pytest.raises(KeyStoreError, match=exactly(message)):
            world.store().remove("../precious")
        assert (world.user / "precious.toml").exists()
