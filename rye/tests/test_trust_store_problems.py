"""The trust store: entries and folders that cannot be used are reported and never trusted."""

import os
from pathlib import Path

import pytest
from lilux.primitives.signing import ensure_keypair
from rye.trust.key_folder import MAX_ENTRIES, MAX_ENTRY_BYTES
from trust_world import Key, TrustWorld

ALICE, MALLORY = Key.new(), Key.new()


@pytest.fixture
def world(tmp_path: Path) -> TrustWorld:
    return TrustWorld(tmp_path)


def the_problem(world: TrustWorld) -> str:
    """Return the problem of the only entry, which must not be trusted."""
    store = world.store()
    (entry,) = store.entries()
    assert not entry.trusted
    assert store.lookup(entry.fingerprint) is None
    return entry.problem


def test_a_file_name_that_does_not_match_the_key(world: TrustWorld) -> None:
    path = world.put_key(world.user, ALICE, name=MALLORY.fingerprint)
    assert the_problem(world) == (
        f"{path}: contains key {ALICE.fingerprint}, which does not match its name; fix or remove it"
    )
    assert world.store().lookup(ALICE.fingerprint) is None


def test_a_fingerprint_that_does_not_match_the_key(world: TrustWorld) -> None:
    """Otherwise a file could replace the key that signatures name with another."""
    path = world.put_key(world.user, MALLORY, name=ALICE.fingerprint)
    path.write_text(path.read_text().replace(MALLORY.fingerprint, ALICE.fingerprint))
    assert the_problem(world) == (
        f"{path}: fingerprint does not match public_key; fix or remove it"
    )


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('owner = "alice"', "owner = 1", "owner is not a string"),
        ('owner = "alice"\n', "", "owner is missing"),
        ("public_key = ", "x = ", "public_key is missing"),
        ("created = ", "created", "is not valid TOML"),
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
def test_malformed_content(old: str, new: str, reason: str, world: TrustWorld) -> None:
    path = world.put_key(world.user, ALICE)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    assert the_problem(world) == f"{path}: {reason}; fix or remove it"


def test_a_key_has_one_spelling(world: TrustWorld) -> None:
    """Other values of the unused bits in the last digit do not make another key."""
    path = world.put_key(world.user, ALICE)
    digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    last = ALICE.public.decode().splitlines()[1][-2]
    other = digits[digits.index(last) + 1]
    path.write_text(path.read_text().replace(f"{last}=\n", f"{other}=\n"))
    assert the_problem(world).startswith(f"{path}: public_key is not the PEM")


def test_a_symlink(world: TrustWorld, tmp_path: Path) -> None:
    path = world.put_key(world.user, ALICE)
    path.rename(tmp_path / "elsewhere.toml")
    path.symlink_to(tmp_path / "elsewhere.toml")
    assert the_problem(world) == f"{path} is a symlink; put the file itself there"


def test_a_fifo_does_not_block_the_caller(world: TrustWorld) -> None:
    path = world.put_key(world.user, ALICE)
    path.unlink()
    os.mkfifo(path)
    assert the_problem(world) == f"{path} is not a regular file; put the key itself there"


def test_a_huge_file(world: TrustWorld) -> None:
    path = world.put_key(world.user, ALICE)
    with path.open("r+b") as stream:
        stream.truncate(1 << 40)
    assert the_problem(world) == (
        f"{path} is larger than {MAX_ENTRY_BYTES} bytes; restore or remove it"
    )


def test_a_file_that_other_users_can_write(world: TrustWorld) -> None:
    path = world.put_key(world.user, ALICE)
    path.chmod(0o664)
    assert the_problem(world) == (
        f"{path} is writable by other users (mode 0664); fix it with: chmod go-w {path}"
    )


def test_a_folder_that_other_users_can_write(world: TrustWorld) -> None:
    folder = world.put_key(world.user, ALICE).parent
    folder.chmod(0o777)
    assert the_problem(world) == (
        f"{folder} is writable by other users (mode 0777); fix it with: chmod go-w {folder}"
    )
    folder.chmod(0o755)
    assert world.store().lookup(ALICE.fingerprint) == ALICE.public


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_folder_of_another_user(world: TrustWorld) -> None:
    folder = world.put_key(world.user, ALICE).parent
    os.chown(folder, 12345, -1)
    assert the_problem(world) == (
        f"{folder} belongs to another user (uid 12345); "
        "change its owner, or use a user space that belongs to you"
    )


def test_a_folder_with_too_many_files(world: TrustWorld) -> None:
    folder = world.project / "trusted_keys"
    folder.mkdir()
    for number in range(MAX_ENTRIES + 1):
        (folder / f"{number}.toml").touch()
    assert world.store().entries() == ()
    assert world.store().problems() == (
        f"{folder} has more than 1000 keys; remove the ones that you do not need",
    )


def test_a_folder_that_is_unreadable_until_it_is_fixed(world: TrustWorld) -> None:
    folder = world.user / "trusted_keys"
    folder.symlink_to(folder)
    store = world.store()
    assert store.problems() == (
        f"cannot read {folder}: Too many levels of symbolic links; make it readable",
    )
    folder.unlink()
    assert store.problems() == ()
    world.put_key(world.user, ALICE)
    store.stamp()
    assert store.lookup(ALICE.fingerprint) == ALICE.public


def test_a_malformed_entry_does_not_affect_others(world: TrustWorld) -> None:
    world.put_key(world.user, ALICE)
    world.put_key(world.user, MALLORY).write_text("nonsense")
    assert world.store().lookup(ALICE.fingerprint) == ALICE.public
    assert world.store().lookup(MALLORY.fingerprint) is None


def test_a_key_with_a_malformed_entry_is_trusted_by_its_valid_entry(world: TrustWorld) -> None:
    world.put_key(world.user, ALICE).write_text("nonsense")
    world.put_key(world.system, ALICE)
    inside = world.system / "tools/tool.py"
    assert world.store().lookup(ALICE.fingerprint, inside) == ALICE.public


def test_files_of_other_kinds_are_not_entries(world: TrustWorld) -> None:
    folder = world.put_key(world.user, ALICE).parent
    (folder / "README.md").write_text("keys")
    assert len(world.store().entries()) == 1


def test_an_own_key_that_other_users_can_write(world: TrustWorld) -> None:
    ensure_keypair(world.store().key_folder)
    path = world.user / "keys" / "public_key.pem"
    path.chmod(0o666)
    (entry,) = world.store().entries()
    assert not entry.trusted
    assert entry.problem == (
        f"{path} is writable by other users (mode 0666); fix it with: chmod go-w {path}"
    )


def test_an_own_key_in_a_folder_that_other_users_can_write(world: TrustWorld) -> None:
    folder = world.store().key_folder
    ensure_keypair(folder)
    folder.chmod(0o777)
    (entry,) = world.store().entries()
    assert world.store().lookup(entry.fingerprint) is None
    assert entry.problem.startswith(f"{folder} is writable by other users (mode 0777)")


def test_a_malformed_own_key(world: TrustWorld) -> None:
    folder = world.store().key_folder
    ensure_keypair(folder)
    (folder / "public_key.pem").write_text("nonsense")
    (entry,) = world.store().entries()
    assert not entry.trusted
    assert entry.problem == (
        f"{folder / 'public_key.pem'} is not the PEM of an Ed25519 public key; fix or remove it"
    )
