"""Fewer descriptors than the jobs need: every request is answered, and every process ends."""

from __future__ import annotations

from pathlib import Path

import pytest
from proc_client import ProcClient, find_binary
from processes import Tree, assert_ended, wait_until

LIMIT = 48
ORPHANS = 60
BUSY = (
    b"no thread or file descriptor is available for this request; "
    b"try again when other jobs have ended"
)


@pytest.fixture
def scarce(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit the open files of each helper."""
    wrapper = tmp_path / "lilux-proc"
    wrapper.write_text(f'#!/bin/sh\nulimit -n {LIMIT}\nexec {find_binary()} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("LILUX_PROC", str(wrapper))


def leave_orphans(then: str) -> str:
    """A script that starts daemons. They exit after a minute, in case the test fails."""
    start = f"i=0; while [ $i -lt {ORPHANS} ]; do (setsid sleep 60 &); i=$((i+1)); done"
    return f"{start}; {then}"


def test_more_orphans_than_descriptors_are_ended(scarce: None) -> None:
    with ProcClient() as client:
        answer = client.exec("sh", "-c", leave_orphans("echo done"))
        assert answer.stdout == b"done\n"
        expected = {"known_by": "subreaper", "ended": ORPHANS, "survivors": []}
        assert answer.header["tree"] == expected


def test_orphans_are_ended_while_other_jobs_use_every_descriptor(
    scarce: None, tmp_path: Path
) -> None:
    with ProcClient() as client:
        wait = f"echo > {tmp_path}/up; while [ ! -e {tmp_path}/go ]; do sleep 0.01; done"
        leaving = client.send("exec", command="sh", args=["-c", leave_orphans(wait)])
        wait_until((tmp_path / "up").exists, "the orphans are running")
        for _ in range(20):
            client.send("exec", command="sleep", args=["60"])
        # The first refusal shows that the jobs before it use all descriptors.
        refused = client.receive()
        assert refused.id != leaving
        (tmp_path / "go").touch()
        while (answer := client.receive()).id != leaving:
            pass
        expected = {"known_by": "subreaper", "ended": ORPHANS, "survivors": []}
        assert answer.header["tree"] == expected


def test_jobs_without_descriptors_fail_and_later_ones_run(scarce: None) -> None:
    count = 40
    with ProcClient() as client:
        for _ in range(count):
            client.send("exec", command="sh", args=["-c", "sleep 0.2; echo done"])
        answers = [client.receive() for _ in range(count)]
        outcomes = {
            bytes(a.stdout + a.stderr) if a.kind == "result" else a.header["message"].encode()
            for a in answers
        }
        assert b"done\n" in outcomes
        assert outcomes - {b"done\n"} <= {
            b"Failed to spawn: Too many open files",
            b"Failed to spawn: sh: Too many open files",
            BUSY,
        }
        # Idle threads free their descriptors when they end, which takes a moment.
        wait_until(lambda: client.exec("echo", "again").kind == "result", "a job is accepted")
        wait_until(lambda: client.exec("echo", "again").stdout == b"again\n", "a job runs")


@pytest.mark.parametrize("how", ["close", "kill keeper", "sigterm"])
def test_all_jobs_end_with_the_connection(tmp_path: Path, how: str) -> None:
    with ProcClient() as client:
        trees = [Tree(tmp_path / str(number)) for number in range(6)]
        for tree in trees:
            client.send("exec", command="sh", args=["-c", tree.script()])
        processes = {
            f"{number} {name}": process
            for number, tree in enumerate(trees)
            for name, process in tree.processes().items()
        }
        match how:
            case "close":
                client.close()
            case "kill keeper":
                client.process.kill()
            case "sigterm":
                client.process.terminate()
        assert_ended(processes)
