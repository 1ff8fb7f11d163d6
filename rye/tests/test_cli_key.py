"""``rye key`` and the keys of a team: rotation, revocation, several keys, a file for CI."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from lilux.primitives.signing import load_keypair, save_keypair
from rye.trust import rotation
from rye_command import Completed
from rye_console import Console
from rye_project import says
from trust_world import Key

ALICE, BOB = Key.new(), Key.new()


@pytest.fixture
def console(tmp_path: Path) -> Console:
    console = Console(tmp_path)
    says(console.project, "echo hello")
    return console


def own(console: Console) -> str:
    return console("key", "show", "--fingerprint").stdout.strip()


def test_show_prints_the_fingerprint_and_where_the_key_is_shared(console: Console) -> None:
    path = console.user / ".ai" / "keys" / "public_key.pem"
    assert console("key", "show").stdout == (
        f"fingerprint  {own(console)}\npublic key   {path}\nshared       not in this project\n"
    )
    assert console("key", "show", "--pem").stdout == path.read_text()
    console("trust", "share", "--owner", "ada@example.org")
    shared = f"shared       as ada@example.org in .ai/trusted_keys/{own(console)}.toml\n"
    assert console("key", "show").stdout.endswith(shared)


def test_without_a_key_the_command_that_creates_one_is_named(tmp_path: Path) -> None:
    console = Console(tmp_path)
    for path in (console.user / ".ai" / "keys").iterdir():
        path.unlink()
    message = "rye: you have no key; create one with: rye init\n"
    assert console("key", "show") == Completed(4, "", message)
    done = console("key", "rotate")
    assert done.code == 4
    assert done.stderr.endswith("; create one with: rye init\n")


def test_your_own_shared_key_is_shown_as_yours(console: Console) -> None:
    console("trust", "share", "--owner", "ada@example.org")
    assert f"{own(console)}  you (ada@example.org)  project " in console("trust", "list").stdout


def test_a_rotation_signs_your_items_and_keeps_the_old_key_trusted(console: Console) -> None:
    console("trust", "share", "--owner", "ada@example.org")
    old = own(console)
    other = console.path / ".ai" / "tools" / "hers.yaml"
    other.write_bytes(ALICE.sign(b"executor_id: subprocess\n"))
    changed = Path(says_path(console, "tools/changed"))
    changed.write_text(f"{changed.read_text()}# an edit that nobody signed\n")
    by_alice, by_nobody = other.read_bytes(), changed.read_bytes()
    assert console("lock", "tools/says").code == 0

    done = console("key", "rotate")

    new = own(console)
    assert new != old
    assert done == Completed(
        0,
        f"your key is now {new}; {old} stays trusted until you revoke it\n"
        "signed again: tools/says\n"
        "left alone: tools/changed; read them, then run: rye sign ITEM...\n"
        f"added it to the project: .ai/trusted_keys/{new}.toml\n"
        f"others approve it with: rye trust add {new}\n"
        f"when nobody needs the old one: rye key revoke {old}\n",
        "",
    )
    load_keypair(console.user / ".ai" / "keys")
    assert console.json("verify", "tools/says")[0]["signer"] == new
    assert console("lock", "--check").code == 0
    assert (other.read_bytes(), changed.read_bytes()) == (by_alice, by_nobody)
    trusted = {one["fingerprint"]: one["owner"] for one in console.json("trust", "list")}
    assert trusted[new] == "ada@example.org"
    listed = console("trust", "list").stdout
    assert re.search(rf"{old}  you, until \d{{4}}-\d\d-\d\d +user +trusted ", listed)


def test_a_rotation_signs_the_lists_of_data_files_too(console: Console) -> None:
    tool = console.path / ".ai" / "tools" / "counts.py"
    tool.write_text(
        '__executor_id__ = "python_runtime"\nFILES = ["words.txt"]\n'
        "from pathlib import Path\n"
        "def main() -> int:\n"
        '    return len(Path(__file__).with_name("words.txt").read_text().split())\n'
    )
    tool.with_name("words.txt").write_text("one two\n")
    assert console("sign", "counts").code == 0
    old = own(console)
    done = console("key", "rotate")
    assert "signed again: counts, counts (its files), tools/says\n" in done.stdout
    console("key", "revoke", old)
    assert console.json("run", "counts")["data"] == 2


def test_after_a_revocation_a_new_key_signs_nothing_unseen(console: Console) -> None:
    """Whoever has the stolen key may have signed the files."""
    old = own(console)
    folder = console.path / ".ai" / "revoked_keys"
    folder.mkdir()
    (folder / f"{old}.toml").write_text("")
    assert f"revoked      by .ai/revoked_keys/{old}.toml; replace it with: rye key rotate\n" in (
        console("key", "show").stdout
    )
    reported = f"problem  your key: {old} is revoked by .ai/revoked_keys/{old}.toml\n"
    assert reported in console("doctor").stdout
    done = console("key", "rotate")
    assert done == Completed(
        0,
        f"your key is now {own(console)}; {old} is revoked\n"
        "left alone: tools/says; read them, then run: rye sign ITEM...\n",
        "",
    )
    assert console("run", "tools/says").code == 4
    assert console("sign", "tools/says").code == 0
    assert console("verify", "tools/says").code == 0


def test_a_file_that_changes_during_the_rotation_is_not_signed(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = console.path / ".ai/tools/tools/says.yaml"

    def save_and_change(*args: Any) -> None:
        save_keypair(*args)
        path.write_text(f"{path.read_text()}# changed\n")

    monkeypatch.setattr(rotation, "save_keypair", save_and_change)
    done = console("key", "rotate")
    assert done.code == 1
    assert "was changed meanwhile and was not signed; read it, then sign it\n" in done.stderr
    assert console("verify", "tools/says").code == 4


def says_path(console: Console, name: str) -> str:
    says(console.project, "true", name=name)
    return str(console.json("show", name)["path"])


def test_a_revoked_key_is_refused_in_the_project_and_by_the_user(console: Console) -> None:
    console("trust", "share", "--owner", "ada@example.org")
    old = own(console)
    assert console("key", "revoke", old) == Completed(
        4, "", f"rye: {old} is the key that you sign with; replace it with: rye key rotate\n"
    )
    before = (console.path / ".ai/tools/tools/says.yaml").read_bytes()
    console("key", "rotate")
    (console.path / ".ai/tools/kept.yaml").write_bytes(before)

    done = console("key", "revoke", old, "--reason", "the laptop was stolen")

    for root in (console.path, console.user):
        text = (root / ".ai" / "revoked_keys" / f"{old}.toml").read_text()
        table = tomllib.loads(text)
        assert (table["fingerprint"], table["owner"]) == (old, "ada@example.org")
        assert table["reason"] == "the laptop was stolen"
    assert "signed by it, and refused from now on: kept\n" in done.stdout
    assert not (console.user / ".ai" / "trusted_keys" / f"{old}.toml").exists()
    assert f"{old}  ada@example.org        project     revoked " in console("trust", "list").stdout
    refused = console("run", "kept")
    assert refused.code == 4
    assert f"kept is signed by key {old} of ada@example.org, which was revoked (" in refused.stderr
    assert console("verify", "kept").stdout.startswith("revoked key  kept ")
    assert "a revoked key" in console("show", "kept").stdout
    assert console("doctor").stdout.count(old) == 0


def test_a_revocation_only_for_the_user_leaves_the_project_alone(console: Console) -> None:
    console("key", "revoke", ALICE.fingerprint, "--only-me")
    assert not (console.path / ".ai" / "revoked_keys").exists()
    assert (console.user / ".ai" / "revoked_keys" / f"{ALICE.fingerprint}.toml").exists()


def test_several_keys_are_added_at_once_and_a_bad_one_is_reported(console: Console) -> None:
    (console.path / "alice.pem").write_bytes(ALICE.public)
    (console.path / "bob.pem").write_bytes(BOB.public)
    done = console("trust", "add", "alice.pem", "nowhere", "bob.pem")
    assert done.code == 4
    trusting = [line for line in done.stdout.splitlines() if line.startswith("Now trusting")]
    assert [line.split()[3] for line in trusting] == [ALICE.fingerprint, BOB.fingerprint]
    assert done.stderr.startswith("rye: cannot trust 'nowhere': there is no such file; ")
    done = console("trust", "add", "alice.pem", "bob.pem", "--owner", "x")
    assert done.stderr.startswith("rye: --owner is only for a single key; ")


def test_an_exported_file_makes_a_ci_job_trust_the_same_keys(
    console: Console, tmp_path: Path
) -> None:
    (console.path / "alice.pem").write_bytes(ALICE.public)
    console("trust", "add", "alice.pem", "--owner", "alice")
    done = console("trust", "export", "--owner", "ada@example.org")
    exported = console.path / "team.toml"
    exported.write_text(done.stdout)
    owners = {one["fingerprint"]: one["owner"] for one in tomllib.loads(done.stdout)["key"]}
    assert owners == {own(console): "ada@example.org", ALICE.fingerprint: "alice"}
    assert "PRIVATE" not in done.stdout

    console.user = tmp_path / "ci"
    console.user.mkdir(mode=0o700)
    assert console("verify").code == 4
    added = console("trust", "add", "team.toml")
    assert added.code == 0, added.stderr
    assert console("verify").code == 0


def test_a_damaged_export_adds_no_key(console: Console) -> None:
    text = console("trust", "export").stdout
    (console.path / "team.toml").write_text(f"{text}\n{text.replace('A', 'B')}")
    done = console("trust", "add", "team.toml")
    assert done.code == 4
    assert "team.toml: key 2: " in done.stderr
    assert done.stderr.endswith("export them again with: rye trust export\n")
    assert not (console.user / ".ai" / "trusted_keys").exists()


def test_after_a_removal_nothing_proposes_to_trust_the_key_again(console: Console) -> None:
    (console.path / "alice.pem").write_bytes(ALICE.public)
    console("trust", "add", "alice.pem", "--owner", "alice")
    (console.path / ".ai/tools/hers.yaml").write_bytes(ALICE.sign(b"executor_id: subprocess\n"))
    console("trust", "remove", ALICE.fingerprint)
    for command in (["run", "hers"], ["verify", "hers"], ["show", "hers"], ["doctor"]):
        done = console(*command)
        assert "trust add" not in done.stdout + done.stderr
    assert "which you stopped trusting on 20" in console("run", "hers").stderr
