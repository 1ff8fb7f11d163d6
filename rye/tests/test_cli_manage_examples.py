"""Every example in the help of the commands that manage tools works as written."""

from __future__ import annotations

import shlex
from importlib import import_module
from pathlib import Path

import click
import pytest
from rye.trust.key_format import render_trusted_key, trusted_key
from rye_console import Console
from trust_world import CREATED, Key

COMMANDS = ("init", "new", "sign", "verify", "trust", "lock", "unlock", "doctor")
FINGERPRINT = "4be1c20d9a7f3358"
SECOND = "9c02e6a1b35d7f40"
ALICE, BOB = Key.new(), Key.new()


def examples() -> list[str]:
    found = []
    for name in COMMANDS:
        command: click.Command = import_module(f"rye.cli.commands.{name}").command
        parts = [command]
        if isinstance(command, click.Group):
            parts += command.commands.values()
        for part in parts:
            lines = [line.strip() for line in (part.help or "").split("Examples:")[-1].splitlines()]
            own = [line for line in lines if line.startswith("rye ")]
            assert own, part.name
            found += own
    return list(dict.fromkeys(found))


@pytest.mark.parametrize("line", examples())
def test_an_example_in_the_help_works(tmp_path: Path, line: str) -> None:
    console = Console(tmp_path)
    assert console("new", "team/hello").code == 0
    assert console("lock", "team/hello").code == 0
    (console.path / "alice.pem").write_bytes(ALICE.public)
    folder = console.path / ".ai" / "trusted_keys"
    folder.mkdir()
    key = render_trusted_key(trusted_key(ALICE.public, "alice", CREATED))
    (folder / f"{ALICE.fingerprint}.toml").write_bytes(key)
    if "trust remove" in line:
        assert console("trust", "add", ALICE.fingerprint).code == 0
    if "trust project" in line:
        assert console("trust", "project", "--yes").code == 0

    bob = render_trusted_key(trusted_key(BOB.public, "bob", CREATED))
    (folder / f"{BOB.fingerprint}.toml").write_bytes(bob)
    if "team-keys.toml" in line:
        exported = console("trust", "export").stdout
        (console.path / "team-keys.toml").write_text(exported)
    line = line.replace(FINGERPRINT, ALICE.fingerprint).replace(SECOND, BOB.fingerprint)
    words, _, _ = line.partition(" > ")  # the shell's part

    done = console(*shlex.split(words)[1:])

    assert done.code == 0, done.stderr
