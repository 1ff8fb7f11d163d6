"""``rye trust``: trusted keys, and the commands in error messages."""

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


def list_key(console: Console) -> Path:
    """Add Alice's key to the keys that the project lists."""
    folder = console.path / ".ai" / "trusted_keys"
    folder.mkdir()
    path = folder / f"{ALICE.fingerprint}.toml"
    path.write_bytes(render_trusted_key(trusted_key(ALICE.public, "alice", CREATED)))
    return path


def test_signatures_of_an_added_key_are_trusted(by_alice: Console) -> None:
    (by_alice.path / "alice.pem").write_bytes(ALICE.public)
    assert by_alice("verify").code == 4

    done = by_alice("trust", "add", "alice.pem", "--owner", "Alice <a@example.org>")

    entry = by_alice.user / ".ai" / "trusted_keys" / f"{ALICE.fingerprint}.toml"
    assert (done.code, done.stdout) == (
        0,
        f"Now trusting key {ALICE.fingerprint} (Alice <a@example.org>)\n  {entry}\n",
    )
    assert by_alice("verify").code == 0
    again = by_alice("trust", "add", "alice.pem", "--owner", "Alice")
    assert again.stdout.startswith(f"Already trusting key {ALICE.fingerprint} (Alice)\n")


def test_the_command_in_the_error_approves_a_key_that_the_project_lists(
    by_alice: Console,
) -> None:
    list_key(by_alice)
    refused = by_alice("verify")
    command = refused.stderr.splitlines()[0].partition("approve it with: rye ")[2]
    assert command == f"trust add {ALICE.fingerprint}"

    done = by_alice(*command.split())

    assert done.stdout.startswith(f"Now trusting key {ALICE.fingerprint} (alice)\n")
    assert by_alice("verify").code == 0


def test_a_removed_key_is_not_trusted(by_alice: Console) -> None:
    list_key(by_alice)
    by_alice("trust", "add", ALICE.fingerprint)

    done = by_alice("trust", "remove", ALICE.fingerprint)

    approval = by_alice.user / ".ai" / "approved_keys" / f"{ALICE.fingerprint}.toml"
    assert done.stdout == (
        f"No longer trusting key {ALICE.fingerprint}; what it signed does not run any more\n"
        f"  removed {approval}\n"
        "to refuse it for everybody who uses this project: "
        f"rye key revoke {ALICE.fingerprint}\n"
    )
    assert by_alice("verify").code == 4


def test_the_list_has_the_owner_of_each_key_and_whether_it_is_trusted(by_alice: Console) -> None:
    list_key(by_alice)

    done = by_alice("trust", "list")

    rows = [line.split() for line in done.stdout.splitlines()]

    assert rows[0][1:4] == ["you", "user", "trusted"]
    assert rows[1][1:5] == ["rye", "release", "bundle", "rye"]
    assert rows[2][:5] == [ALICE.fingerprint, "alice", "project", "not", "approved"]
    assert done.stderr == (
        "\nif you know the owner of a key, approve it with: rye trust add FINGERPRINT\n"
    )


def test_the_list_as_json(by_alice: Console) -> None:
    list_key(by_alice)

    own, release, hers = by_alice.json("trust", "list")

    assert (own["own"], own["trusted"], own["problem"]) == (True, True, None)
    assert (release["bundle"], release["trusted"]) == ("rye", True)
    assert (hers["fingerprint"], hers["owner"], hers["trusted"]) == (
        ALICE.fingerprint, "alice", False,
    )  # fmt: skip


def test_an_unusable_entry_is_listed_with_its_fault(by_alice: Console) -> None:
    list_key(by_alice).write_text("nonsense")

    done = by_alice("trust", "list")

    assert done.code == 0
    assert "unusable" in done.stdout
    assert "is not valid TOML; fix or remove it" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ["add", "nope.pem"],
            4,
            "cannot trust 'nope.pem': there is no such file; pass a public key ",
        ),
        (["add", "0123456789abcdef"], 4, "key 0123456789abcdef is not in "),
        (["remove", "0123456789abcdef"], 4, "it is not in the trust store; list the keys with: "),
        (["remove", "../x"], 4, "'../x' is not a fingerprint; list the keys with: "),
        (
            ["add", "0123456789abcdef", "--owner", "x"],
            2,
            "--owner is only for a key file; the project names the owner",
        ),
    ],
)
def test_errors_are_reported(
    console: Console, arguments: list[str], code: int, message: str
) -> None:
    done = console("trust", *arguments)

    assert done.code == code
    assert message in done.stderr


def test_a_private_key_is_refused_and_not_printed(console: Console) -> None:
    (console.path / "oops.pem").write_bytes(ALICE.private)

    done = console("trust", "add", "oops.pem")

    assert done.code == 4
    assert "is not the PEM of an Ed25519 public key" in done.stderr
    assert ALICE.private.decode().splitlines()[1] not in done.stdout + done.stderr


def test_a_file_named_like_a_fingerprint_is_a_file(by_alice: Console) -> None:
    (by_alice.path / "0123456789abcdef").write_bytes(ALICE.public)

    assert by_alice("trust", "add", "0123456789abcdef", "--owner", "alice").code == 0
    assert by_alice("verify").code == 0


def test_others_trust_a_shared_key_after_they_approve_it(console: Console, tmp_path: Path) -> None:
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


def test_a_shared_key_stays_trusted_by_its_owner(console: Console) -> None:
    console("trust", "share", "--owner", "alice")

    listed = [key for key in console.json("trust", "list") if key["owner"] == "alice"]

    assert [(key["trusted"], key["own"]) for key in listed] == [(True, True)]
    assert "approve" not in console("trust", "list").stderr
    assert "approve" not in console("doctor").stdout


def test_a_key_that_the_user_added_needs_no_approval(by_alice: Console) -> None:
    list_key(by_alice)
    (by_alice.path / "alice.pem").write_bytes(ALICE.public)
    by_alice("trust", "add", "alice.pem", "--owner", "alice")

    hers = [key for key in by_alice.json("trust", "list") if key["owner"] == "alice"]

    assert [(key["trusted"], key["own"]) for key in hers] == [(True, False)] * 2
    assert "approve" not in by_alice("doctor").stdout


def test_only_the_public_key_is_shared(console: Console) -> None:
    console("trust", "share", "--owner", "alice")

    private = (console.user / ".ai" / "keys" / "private_key.pem").read_text().splitlines()[1]
    for path in (console.path / ".ai").rglob("*"):
        assert not path.is_file() or private not in path.read_text()


def test_an_owner_with_control_characters_is_refused(console: Console) -> None:
    done = console("trust", "share", "--owner", "\x1b[31mme")

    assert done.code == 4
    assert "owner is not one line of at most 200 printable characters" in done.stderr
