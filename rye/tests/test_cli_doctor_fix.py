"""``rye doctor --fix``: what is fixed, and what is left to the user."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from rye_console import Console
from rye_project import says


@pytest.fixture
def console(tmp_path: Path) -> Console:
    console = Console(tmp_path)
    says(console.project, "true")
    return console


def states(console: Console, *options: str) -> list[tuple[str, str, str]]:
    """What is neither ok nor about programs, as (state, subject, message)."""
    subjects = ("your key", "user space", "project", "cache", "lockfile", "trust store")
    return [
        (one["state"], one["subject"], one["message"])
        for one in console.json("doctor", *options)["findings"]
        if one["state"] != "ok" and one["subject"] in subjects
    ]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_private_key_that_others_can_read_is_closed(console: Console) -> None:
    keys = console.user / ".ai" / "keys"
    private = keys / "private_key.pem"
    keys.chmod(0o755)
    private.chmod(0o644)
    found = states(console)
    assert ("warning", "your key", f"{keys} has mode 0755, so that others have access") in found
    assert (
        "problem",
        "your key",
        f"{private} has mode 0644, so that others have access",
    ) in found
    assert (mode(keys), mode(private)) == (0o755, 0o644)
    done = console("doctor", "--fix")
    assert f"fixed    your key: set the mode of {private} to 0600\n" in done.stdout
    assert "others could have read the key; to be safe, run: rye key rotate\n" in done.stdout
    assert (mode(keys), mode(private)) == (0o700, 0o600)
    assert states(console) == []


def test_a_key_that_others_could_have_written_is_left_to_the_user(console: Console) -> None:
    private = console.user / ".ai" / "keys" / "private_key.pem"
    private.chmod(0o622)
    assert {state for state, _, _ in states(console, "--fix")} == {"problem"}
    assert mode(private) == 0o622


def test_a_trust_store_that_others_could_have_written_is_left_to_the_user(
    console: Console,
) -> None:
    folder = console.user / ".ai" / "trusted_keys"
    folder.mkdir()
    folder.chmod(0o777)
    found = states(console, "--fix")
    assert [(state, subject) for state, subject, _ in found] == [("problem", "trust store")]
    assert "is writable by other users (mode 0777)" in found[0][2]
    assert mode(folder) == 0o777


def test_missing_folders_are_created(tmp_path: Path) -> None:
    console = Console(tmp_path)
    for path in (console.path / ".ai" / "tools", console.user / ".ai"):
        path.rename(f"{path}-moved")
    assert ("warning", "project", f"{console.path}/.ai/tools does not exist") in states(console)
    console("doctor", "--fix")
    assert (console.path / ".ai" / "tools").is_dir()
    assert mode(console.user / ".ai") == 0o700


def test_caches_of_other_versions_and_open_caches_are_removed(console: Console) -> None:
    cache = console.user / ".ai" / "cache"
    old = cache / "items" / "0.0.1-1"
    old.mkdir(parents=True, mode=0o700)
    for folder in (cache, old.parent):
        folder.chmod(0o700)
    (old / "entry").write_text("x")
    assert [("warning", "cache", f"{old} belongs to another version of Rye")] == states(console)
    assert ("fixed", "cache", f"removed {old}") in states(console, "--fix")
    assert not old.exists()
    cache.chmod(0o755)
    assert ("fixed", "cache", f"removed {cache}") in states(console, "--fix")


def test_a_cache_that_is_a_link_is_not_followed(console: Console, tmp_path: Path) -> None:
    target = tmp_path / "precious"
    (target / "items" / "0.0.1-1").mkdir(parents=True)
    target.chmod(0o755)
    cache = console.user / ".ai" / "cache"
    cache.symlink_to(target)
    console("doctor", "--fix")
    assert (target / "items" / "0.0.1-1").is_dir()


def test_lockfiles_of_missing_tools_are_removed_and_others_are_kept(console: Console) -> None:
    assert console("lock", "tools/says").code == 0
    folder = console.path / ".ai" / "lockfiles"
    (kept,) = folder.rglob("*.lock.json")
    gone = folder / "old" / "tool@1.0.0.lock.json"
    gone.parent.mkdir()
    gone.write_text("{}")
    message = f"{gone} pins old/tool, which does not exist"
    assert states(console) == [("warning", "lockfile", message)]
    assert states(console, "--fix") == [("fixed", "lockfile", f"removed {gone}")]
    assert not gone.parent.exists()
    assert kept.exists()
    broken = console.path / ".ai" / "tools" / "tools" / "says.yaml"
    broken.write_text("a: [")
    assert states(console, "--fix") == []
    assert kept.exists()
