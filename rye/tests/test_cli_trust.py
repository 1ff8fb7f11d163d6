"""``rye trust``: whose signatures count, and the commands that errors name."""

from __future__ import annotations

from pathlib import Path

import pytest
from rye.trust.key_format import render_trusted_key, trusted_key
from rye_console import Console
from trust_world import CREATED, Key

TOOL = b'executor_id: rye/core/primitives/subprocess\nconfig: {command: "true"}\n'
ALICE = Key.new()


@pytest.fixture
def console(tmp_path: Path) -> Console:
    return Console(tmp_path)


@pytest.fixture
def by_alice(console: Console) -> Console:
    path = console.path / ".ai" / "tools" / "hers.yaml"
    path.write_bytes(ALICE.sign(TOOL))
    return console


def bring(console: Console) -> Path:
    """Let the project bring Alice's key."""
    folder = console.path / ".ai" / "trusted_keys"
    folder.mkdir()
    path = folder / f"{ALICE.fingerprint}.toml"
    path.write_bytes(render_trusted_key(trusted_key(ALICE.public, "alice", CREATED)))
    return path


def test_a_key_file_makes_its_signatures_count(by_alice: Console) -> None:
    (by_alice.path / "alice.pem").write_bytes(ALICE.public)
    assert by_alice("verify").code == 4

    done = by_alice("trust", "add", "alice.pem", "--owner", "Alice <a@example.org>")

    entry = by_alice.user / ".ai" / "trusted_keys" / f"{ALICE.fingerprint}.toml"
    assert (done.code, done.stdout) == (
        0,
        f"key {ALICE.fingerprint} of 'Alice <a@example.org>' counts from now on\n  {entry}\n",
    )
    assert by_alice("verify").code == 0
    again = by_alice("trust", "add", "alice.pem", "--owner", "Alice")
    assert again.stdout.startswith(f"key {ALICE.fingerprint} of 'Alice' counted already\n")


def test_the_command_that_the_error_names_approves_the_key_of_the_project(
    by_alice: Console,
) -> None:
    bring(by_alice)
    refused = by_alice("verify")
    command = refused.stderr.splitlines()[0].partition("approve it with: rye ")[2]
    assert command == f"trust add {ALICE.fingerprint}"

    done = by_alice(*command.split())

    assert done.stdout.startswith(f"key {ALICE.fingerprint} of 'alice' counts from now on\n")
    assert by_alice("verify").code == 0


def test_trust_is_taken_back(by_alice: Console) -> None:
    bring(by_alice)
    by_alice("trust", "add", ALICE.fingerprint)

    done = by_alice("trust", "remove", ALICE.fingerprint)

    approval = by_alice.user / ".ai" / "approved_keys" / f"{ALICE.fingerprint}.toml"
    assert done.stdout == (
        f"key {ALICE.fingerprint} does not count any more\n  removed {approval}\n"
    )
    assert by_alice("verify").code == 4


def test_the_list_says_whose_each_key_is_and_whether_it_counts(by_alice: Console) -> None:
    bring(by_alice)

    done = by_alice("trust", "list")

    rows = [line.split() for line in done.stdout.splitlines()]

    assert rows[0][1:4] == ["you", "user", "counts"]
    assert rows[1][1:5] == ["rye", "release", "bundle", "rye"]
    assert rows[2][:5] == [ALICE.fingerprint, "alice", "project", "not", "approved"]
    assert done.stderr == (
        "\nif you know whose a key is, approve it with: rye trust add FINGERPRINT\n"
    )


def test_the_list_as_json(by_alice: Console) -> None:
    bring(by_alice)

    own, release, hers = by_alice.json("trust", "list")

    assert (own["own"], own["counts"], own["problem"]) == (True, True, None)
    assert (release["bundle"], release["counts"]) == ("rye", True)
    assert (hers["fingerprint"], hers["owner"], hers["counts"]) == (
        ALICE.fingerprint, "alice", False,
    )  # fmt: skip


def test_an_entry_that_cannot_be_used_is_listed_with_its_fault(by_alice: Console) -> None:
    bring(by_alice).write_text("nonsense")

    done = by_alice("trust", "list")

    assert done.code == 0
    assert "unusable" in done.stdout
    assert "is not valid TOML; fix or remove it" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["add", "nope.pem"], 4, "cannot trust this key: cannot read "),
        (["add", "0123456789abcdef"], 4, "key 0123456789abcdef is not in "),
        (["remove", "0123456789abcdef"], 4, "it is not in the trust store; list the keys with: "),
        (["remove", "../x"], 4, "'../x' is not a fingerprint; list the keys with: "),
        (["add", "0123456789abcdef", "--owner", "x"], 2, "says itself whose it is"),
    ],
)
def test_what_cannot_be_done_is_told(
    console: Console, arguments: list[str], code: int, message: str
) -> None:
    done = console("trust", *arguments)

    assert done.code == code
    assert message in done.stderr


def test_a_private_key_is_neither_trusted_nor_shown(console: Console) -> None:
    (console.path / "oops.pem").write_bytes(ALICE.private)

    done = console("trust", "add", "oops.pem")

    assert done.code == 4
    assert "is not the PEM of an Ed25519 public key" in done.stderr
    assert ALICE.private.decode().splitlines()[1] not in done.stdout + done.stderr


def test_a_file_named_like_a_fingerprint_is_a_file(by_alice: Console) -> None:
    (by_alice.path / "0123456789abcdef").write_bytes(ALICE.public)

    assert by_alice("trust", "add", "0123456789abcdef", "--owner", "alice").code == 0
    assert by_alice("verify").code == 0


def test_a_shared_key_counts_for_others_once_they_approve_it(
    console: Console, tmp_path: Path
) -> None:
    console("new", "hers", "--runtime", "bash")

    done = console("trust", "share", "--owner", "alice")

    assert done.code == 0
    last = done.stdout.splitlines()[-1]
    command = last.removeprefix("others approve it with: rye ").split()
    other = Console(tmp_path)
    other.user = tmp_path / "bob"
    (other.user / ".ai").mkdir(parents=True)
    assert other("verify").code == 4
    assert other(*command).code == 0
    assert other("verify").code == 0


def test_a_shared_key_is_the_public_half_only(console: Console) -> None:
    console("trust", "share", "--owner", "alice")

    private = (console.user / ".ai" / "keys" / "private_key.pem").read_text().splitlines()[1]
    for path in (console.path / ".ai").rglob("*"):
        assert not path.is_file() or private not in path.read_text()


def test_an_owner_that_would_steer_the_terminal_is_refused(console: Console) -> None:
    done = console("trust", "share", "--owner", "\x1b[31mme")

    assert done.code == 4
    assert "owner is not one line of at most 200 printable characters" in done.stderr
