"""Confinement through the process client: what is sent, enforced and reported."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from lilux.primitives.subprocess import (
    BlockingSubprocess,
    Confinement,
    ConfinementLimits,
    MissingPart,
    SubprocessPrimitive,
)
from lilux.primitives.subprocess.confinement import PARTS, confinement_fields
from lilux.primitives.subprocess.wire import encode
from process_transports import Execute

SYSTEM = tuple(
    sorted({os.path.realpath(p) for p in ("/usr", "/bin", "/lib", "/lib64") if Path(p).exists()})
)
NULL = ("/dev/null",)


def _with(**fields: Any) -> Confinement:
    """Return a confinement with fields of any type."""
    return Confinement(**fields)


@pytest.fixture
def can_confine() -> None:
    """Skip if this machine cannot enforce the base layer."""
    with BlockingSubprocess() as blocking:
        missing = [one for one in blocking.probe_confinement().missing if one.part in ("fs", "net")]
    if missing:
        pytest.skip(f"not tried: {missing[0].reason}")


@pytest.mark.usefixtures("can_confine")
def test_a_confined_job_reads_only_what_it_was_given(execute: Execute, tmp_path: Path) -> None:
    tmp_path = tmp_path.resolve()
    (tmp_path / "given").mkdir()
    (tmp_path / "given/file").write_text("given")
    (tmp_path / "secret").write_text("secret")
    confinement = Confinement(
        execute=SYSTEM, read=(tmp_path / "given",), write=NULL, require=("fs", "net")
    )
    config: dict[str, Any] = {
        "command": "cat",
        "args": ["given/file", "secret"],
        "cwd": str(tmp_path),
        "confinement": confinement,
    }
    result = execute(config)
    assert (result.stdout, result.return_code) == ("given", 1)
    assert result.stderr == "cat: secret: Permission denied\n"
    assert result.confinement is not None
    assert result.confinement.enforced["fs"].startswith("landlock ")
    assert result.confinement.enforced["net"] in ("namespace", "seccomp")
    assert result.limit is None
    plain = execute({**config, "confinement": None})
    assert (plain.stdout, plain.confinement) == ("givensecret", None)


@pytest.mark.usefixtures("can_confine")
def test_a_limit_that_was_exceeded_is_reported(execute: Execute) -> None:
    confinement = Confinement(
        execute=SYSTEM, write=NULL, limits=ConfinementLimits(processes=3), require=("processes",)
    )
    script = "for i in 1 2 3 4 5; do sleep 60 & done; wait"
    result = execute({"command": "sh", "args": ["-c", script], "confinement": confinement})
    assert (result.limit, result.success, result.return_code) == ("processes", False, -1)
    assert result.stderr == "Command ended: it used more than 3 processes"


@pytest.mark.usefixtures("can_confine")
def test_the_private_folder_is_in_the_environment_and_removed(execute: Execute) -> None:
    confinement = Confinement(execute=SYSTEM, write=NULL, tmp=("TMPDIR", "HOME"), require=())
    script = 'echo x > "$HOME/file"; ls -A "$TMPDIR"; echo "$HOME"'
    config = {"command": "sh", "args": ["-c", script], "confinement": confinement}
    result = execute({**config, "env": {"PATH": os.defpath, "HOME": "/root"}, "env_mode": "exact"})
    assert result.success, result.stderr
    home = Path(result.stdout.strip())
    assert home.name == "home"
    assert not home.parent.exists()


def test_what_cannot_be_enforced_is_refused_with_the_reason(
    execute: Execute, tmp_path: Path
) -> None:
    absent = tmp_path.resolve() / ".git"
    confinement = Confinement(
        execute=SYSTEM, write=(tmp_path.resolve(),), read_only=(absent,), require=("read_only",)
    )
    result = execute({"command": "true", "confinement": confinement})
    assert (result.success, result.return_code, result.confinement) == (False, -1, None)
    assert result.stderr.startswith(
        "Failed to spawn: the confinement cannot be enforced here: read_only ("
    )
    allowed = Confinement(
        execute=SYSTEM, write=(tmp_path.resolve(),), read_only=(absent,), require=()
    )
    result = execute({"command": "true", "confinement": allowed})
    assert result.success
    assert result.confinement is not None
    assert "read_only" in [one.part for one in result.confinement.missing]


def test_probe_reports_every_part_over_both_transports() -> None:
    with BlockingSubprocess() as blocking:
        report = blocking.probe_confinement()
    assert {*report.enforced, *(one.part for one in report.missing)} == set(PARTS)
    assert asyncio.run(SubprocessPrimitive().probe_confinement()) == report
    assert all(isinstance(one, MissingPart) and one.reason for one in report.missing)


@pytest.mark.parametrize(
    ("confinement", "message"),
    [
        ({"read": ["/"]}, "confinement must be a Confinement, got dict"),
        (Confinement(read=("relative",)), "confinement.read[0] is not an absolute path"),
        (_with(read="/usr"), "confinement.read must be a tuple of paths, got str"),
        (_with(write=(1,)), "confinement.write[0] must be a path, got int"),
        (_with(net="some"), "confinement.net must be 'none', 'all' or a tuple of hosts"),
        (_with(tmp="TMPDIR"), "confinement.tmp must be a tuple of strings"),
        (_with(limits={"cpu": 1}), "confinement.limits must be ConfinementLimits"),
        (
            Confinement(limits=ConfinementLimits(memory=0)),
            "confinement.limits.memory must be a positive integer below 2^63",
        ),
        (
            Confinement(require=("magic",)),
            "confinement.require: unknown part 'magic'; known are fs, net, ",
        ),
    ],
)
def test_an_invalid_confinement_is_a_failed_result(
    execute: Execute, confinement: Any, message: str
) -> None:
    result = execute({"command": "true", "confinement": confinement})
    assert not result.success
    assert result.stderr.startswith(message)


def test_confined_jobs_cannot_leave_processes_behind(execute: Execute) -> None:
    result = execute({"command": "true", "background": "keep", "confinement": Confinement()})
    assert result.stderr == "background must be 'end' for a job with a confinement"


def test_nothing_is_allowed_by_default() -> None:
    fields = confinement_fields(Confinement())
    assert [fields[name] for name in ("read", "write", "execute")] == [[], [], []]
    assert (fields["net"], fields["unix"]) == ("none", False)
    assert "require" not in fields


def test_a_path_that_is_not_utf8_can_be_given(execute: Execute, tmp_path: Path) -> None:
    folder = tmp_path.resolve() / os.fsdecode(b"\xff")
    folder.mkdir()
    confinement = Confinement(execute=SYSTEM, write=(*NULL, folder), require=())
    touch = {"command": "touch", "args": [str(folder / "file")]}
    result = execute({**touch, "confinement": confinement})
    assert result.success, result.stderr
    assert (folder / "file").exists()


def test_a_confinement_with_lists_is_read_again() -> None:
    paths: Any = ["/usr"]
    listed, fixed = _with(read=paths), _with(read=tuple(paths))
    assert confinement_fields(listed)["read"] == confinement_fields(fixed)["read"] == ["/usr"]
    paths.append("/etc")
    assert confinement_fields(listed)["read"] == ["/usr", "/etc"]
    assert confinement_fields(fixed) is confinement_fields(fixed)


def test_the_kept_text_of_a_confinement_is_what_is_sent() -> None:
    fields = confinement_fields(_with(read=("/a\udcff", '/"b"'), limits=ConfinementLimits(cpu=1)))
    frame = encode({"confinement": fields, "id": 1, "op": "exec"}, b"input")
    length = int.from_bytes(frame[4:8], "little")
    sent = json.loads(frame[8 : 8 + length])
    assert sent == {"id": 1, "op": "exec", "confinement": {**fields}}
    assert frame.endswith(b"input")
