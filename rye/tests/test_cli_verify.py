"""``rye verify``: the state of each file, and the fix."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from rye_console import Console
from trust_world import Key

TOOL = 'executor_id: rye/core/primitives/subprocess\nconfig: {command: "true"}\n'
MALLORY = Key.new()


@pytest.fixture
def console(tmp_path: Path) -> Console:
    return Console(tmp_path)


def fill(console: Console) -> None:
    """A tool in each state."""
    project = console.project
    project.tool("a_trusted.yaml", TOOL)
    project.tool("b_unsigned.yaml", TOOL, signed=False)
    path = project.tool("c_changed.yaml", TOOL)
    path.write_text(path.read_text() + "# more\n")
    path = project.tool("d_forged.yaml", TOOL)
    line, _, rest = path.read_text().partition("\n")
    head, _, tail = line.rpartition(":")
    start, _, signature = head.rpartition(":")
    turned = ("A" if signature[0] != "A" else "B") + signature[1:]
    path.write_text(f"{start}:{turned}:{tail}\n{rest}")
    path = project.tool("e_untrusted.yaml", TOOL, signed=False)
    path.write_bytes(MALLORY.sign(TOOL.encode()))
    path = project.tool("f_unreadable.yaml", TOOL, signed=False)
    os.truncate(path, 2 * 1024 * 1024)


def test_every_state_has_its_own_label(console: Console) -> None:
    fill(console)

    done = console("verify")

    assert done.code == 4
    assert [line.split("  ")[0] for line in done.stdout.splitlines()] == [
        "trusted", "unsigned", "changed", "forged", "untrusted key", "unreadable",
    ]  # fmt: skip
    fixes = [line for line in done.stderr.splitlines() if line.startswith("rye: ")]
    assert len(fixes) == 5
    assert fixes[0] == (
        "rye: b_unsigned is not signed: .ai/tools/b_unsigned.yaml; read the file, then sign it "
        "with: rye sign .ai/tools/b_unsigned.yaml"
    )
    assert done.stderr.endswith("\n1 of 6 trusted\n")


def test_json_has_the_states_and_the_signers(console: Console) -> None:
    fill(console)

    done = console.json("verify")

    assert [one["state"] for one in done] == [
        "trusted", "unsigned", "changed", "forged", "untrusted", "unreadable",
    ]  # fmt: skip
    assert (done[0]["owner"], done[0]["error"]) == ("you", None)
    assert done[1]["signer"] is None
    assert (done[4]["signer"], done[4]["owner"]) == (MALLORY.fingerprint, None)
    assert "is larger than" in done[5]["error"]


def test_a_project_with_only_trusted_items_passes(console: Console) -> None:
    console.project.tool("a.yaml", TOOL)

    done = console("verify")

    assert done.code == 0
    assert done.stdout.startswith("trusted  a  ")
    assert done.stdout.endswith(" (you)\n")


def test_without_arguments_only_the_project_is_checked(console: Console) -> None:
    console.project.tool("a.yaml", TOOL)
    console.project.tool("mine.yaml", TOOL, space="user", signed=False)

    assert console("verify").code == 0
    done = console("verify", "--all")
    assert done.code == 4
    states = {line.split()[1]: line.split()[0] for line in done.stdout.splitlines()}
    assert (states["a"], states["mine"], states["rye/bash/bash"]) == (
        "trusted", "unsigned", "trusted",
    )  # fmt: skip


def test_a_shadowed_item_is_checked_too(console: Console) -> None:
    console.project.tool("a.yaml", TOOL)
    console.project.tool("a.yaml", TOOL, space="user", signed=False)

    assert console("verify", "--all").code == 4


@pytest.mark.parametrize("argument", ["a", ".ai/tools/a.yaml", "[a]"])
def test_items_paths_and_globs_can_be_passed(console: Console, argument: str) -> None:
    console.project.tool("a.yaml", TOOL)
    console.project.tool("b.yaml", TOOL, signed=False)

    done = console("verify", argument)

    assert (done.code, len(done.stdout.splitlines())) == (0, 1)
    assert console("verify", "b").code == 4


def test_an_unknown_item_exits_with_3(console: Console) -> None:
    assert console("verify", "nope").code == 3
    assert console("verify", "nope*").code == 3


def test_an_empty_project_has_nothing_to_verify(console: Console) -> None:
    done = console("verify")

    assert (done.code, done.stdout) == (
        0,
        "nothing to verify in .ai/tools\n",
    )


def test_all_cannot_be_combined_with_items(console: Console) -> None:
    done = console("verify", "--all", "a")

    assert done.code == 2
    assert "--all checks everything; pass no items" in done.stderr


def test_an_ambiguous_id_is_mentioned(console: Console) -> None:
    console.project.tool("a.yaml", TOOL)
    console.project.tool("b.yaml", TOOL)
    console.project.tool("b.sh", "echo\n")

    assert (
        "note: some ids are ambiguous or have no file; see: rye doctor\n"
        in console("verify").stderr
    )


def test_a_file_name_cannot_control_the_terminal(console: Console) -> None:
    path = console.project.tool("a.yaml", TOOL)
    odd = path.with_name("x\x1b[31m.yaml")
    path.rename(odd)

    done = console("verify", odd)

    assert "\x1b" not in done.stdout + done.stderr
