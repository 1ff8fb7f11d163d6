"""``rye permissions``, and what other commands say about permissions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confined_machine import missing_parts, needs
from lilux.primitives.subprocess.confinement import ConfinementReport, MissingPart
from rye_console import Console
from rye_project import says

LIMITED = {
    "read": ["{project_path}", "~/.config/gh"],
    "write": ["{project_path}/out", "tmp"],
    "net": ["api.example.org:443", "unix"],
    "env": ["TOKEN"],
    "run": ["git", "{project_path}/build/**"],
    "limits": {"memory": "512MiB", "cpu": 60},
}
BEFORE = {"write": ["{project_path}"], "limits": {"cpu": 5}}


@pytest.fixture
def console(tmp_path: Path) -> Console:
    return Console(tmp_path)


def test_permissions_are_explained_in_words(console: Console) -> None:
    says(console.project, "true", "t/x", permissions=LIMITED)
    assert (
        console("permissions", "t/x").stdout
        == """\
t/x
  reads      the project, ~/.config/gh, out
  writes     out, a private temporary folder
  network    api.example.org:443, and unix sockets
  variables  the base names, TOKEN
  programs   its interpreter, git, those in build
  home       yours, of which it sees the paths above
  limits     memory 512 MiB, cpu 60 s
"""
    )


def test_a_tool_without_permissions_is_called_unconfined(console: Console) -> None:
    says(console.project, "true", "t/x")
    expected = "t/x is unconfined: it declares no permissions and can do everything that you can do"
    assert console("permissions", "t/x").stdout == f"{expected}\n"
    assert console("permissions", "check", "t/x").stdout == (
        "t/x is unconfined: there is nothing to enforce\n"
    )
    assert "  may do     everything that you can do (unconfined)\n" in console("show", "t/x").stdout
    assert "(unconfined)" in console("list", "t/x").stdout
    assert "(unconfined)" not in console("list", "rye/").stdout


@needs("fs", "net", "unix", "syscalls", "privileges")
def test_a_person_reads_which_limit_was_exceeded(console: Console) -> None:
    limits = {"run": ["sleep"], "limits": {"processes": 2}}
    says(console.project, "for i in 1 2 3 4; do sleep 60 & done; wait", "t/x", permissions=limits)
    assert (
        "rye: 't/x' was ended: it used more than 2 processes; "
        "see permissions.limits.processes of the tool\n"
    ) in console("run", "t/x").stderr


def test_grants_of_the_user_are_shown(console: Console) -> None:
    console.project.grant({"tools": ["rye/bash/*"], "net": True, "write": ["~/work"]})
    done = console("permissions", "rye/bash/bash")
    assert "  granted by you: write ~/work, net *\n" in done.stdout
    assert "  network    all hosts\n" in done.stdout
    shown = console.json("permissions", "explain", "rye/bash/bash")
    assert shown["granted_by_you"] == ["write ~/work", "net *"]


@needs("fs", "net", "unix", "signals", "privileges", "syscalls", "attributes")
def test_check_says_what_this_machine_can_enforce(console: Console) -> None:
    done = console("permissions", "check", "rye/fs/read")
    assert done.code == 0
    assert "enforced  reading, writing and running files: by landlock" in done.stdout


def test_check_says_what_this_machine_cannot_enforce(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = ConfinementReport(
        {"fs": "landlock 3"}, (MissingPart("net", "no seccomp"), MissingPart("signals", "old"))
    )
    monkeypatch.setattr("rye.executor.permitted.probe", lambda: report)
    done = console("permissions", "check", "rye/fs/read")
    assert done.code == 4
    assert done.stdout == (
        "enforced  reading, writing and running files: by landlock 3\n"
        "missing  the network: not possible: no seccomp\n"
        "missing  signals to other processes: not possible: old\n"
        "\n"
        "agents may not call this tool here; your own `rye run` warns\n"
        "to accept this everywhere: permissions: {unenforced: allow} in ~/.ai/config.yaml\n"
    )
    findings = console.json("doctor")["findings"]
    (finding,) = [one for one in findings if one["subject"] == "permissions"]
    assert finding["state"] == "warning"
    assert finding["message"] == "this machine cannot enforce net, signals (no seccomp; old)"


def test_the_doctor_says_what_can_be_enforced(console: Console) -> None:
    findings = console.json("doctor")["findings"]
    (finding,) = [one for one in findings if one["subject"] == "permissions"]
    assert finding["state"] == ("warning" if missing_parts() else "ok")


@pytest.mark.parametrize(
    ("after", "now_also"),
    [
        ({**BEFORE, "write": ["{project_path}", "~/.config"]}, ["write ~/.config"]),
        ({**BEFORE, "net": ["a.example:443"]}, ["net a.example:443"]),
        ({"write": ["{project_path}"], "limits": {"cpu": 9}}, ["cpu 9 s"]),
        ({"write": ["{project_path}"], "limits": {}}, ["any cpu"]),
        ({"write": []}, ["any cpu"]),
        (None, ["unconfined"]),
    ],
)
def test_an_update_of_a_lock_shows_what_a_tool_may_do_in_addition(
    console: Console, after: dict[str, Any] | None, now_also: list[str]
) -> None:
    says(console.project, "true", "t/x", permissions=BEFORE)
    assert console("lock", "t/x").code == 0
    fields = {} if after is None else {"permissions": after}
    says(console.project, "true", "t/x", **fields)

    done = console("lock", "--update", "t/x")

    lines = [line.strip() for line in done.stdout.splitlines() if "now also" in line]
    assert lines == [f"now also: {one}" for one in now_also]


def test_an_update_that_narrows_shows_nothing(console: Console) -> None:
    says(console.project, "true", "t/x", permissions={"net": True})
    assert console("lock", "t/x").code == 0
    says(console.project, "true", "t/x", permissions={"limits": {"cpu": 5}})
    assert "now also" not in console("lock", "--update", "t/x").stdout


def test_a_file_with_a_mistake_in_its_permissions_is_not_signed(console: Console) -> None:
    path = console.path / ".ai" / "tools" / "x.yaml"
    text = 'executor_id: rye/core/primitives/subprocess\npermissions: {write: ["../x"]}\n'
    path.write_text(text)
    done = console("sign", "x")
    assert done.code == 1
    assert "expected a path that begins with {project_path}, ~ or / in" in done.stderr
    assert path.read_text() == text
