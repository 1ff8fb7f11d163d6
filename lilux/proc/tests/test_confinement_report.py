"""What a confinement reports, and when a job is refused."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confined_jobs import ConfinedJobs, confined_jobs
from proc_client import ProcClient, find_binary, run_command

PARTS = {
    *("fs", "net", "unix", "signals", "privileges", "syscalls"),
    *("attributes", "read_only", "hidden", "memory", "cpu", "processes", "file_size"),
}
WITHOUT_NAMESPACES = (
    'for kind in user mnt net; do echo 0 > /proc/sys/user/max_${kind}_namespaces; done; exec "$@"'
)


@pytest.fixture
def jobs() -> Iterator[ConfinedJobs]:
    """The jobs of this user."""
    with confined_jobs("root" if os.geteuid() == 0 else "ordinary") as jobs:
        yield jobs


@pytest.fixture
def portable() -> Iterator[ProcClient]:
    """A helper that uses no mechanism of Linux."""
    with ProcClient("--platform", "portable") as client:
        yield client


def missing(report: dict[str, Any]) -> dict[str, str]:
    return {one["part"]: one["reason"] for one in report["missing"]}


def test_probe_reports_every_part(jobs: ConfinedJobs) -> None:
    report = jobs.client.call("probe").header
    assert {*report["enforced"], *missing(report)} == PARTS
    code, printed = run_command("probe")
    assert code == 0
    assert printed == {"enforced": report["enforced"], "missing": report["missing"]}


def test_a_job_reports_the_parts_that_it_asked_for(jobs: ConfinedJobs) -> None:
    report = jobs.run("true", confinement=jobs.confinement(require=[])).header["confinement"]
    asked = {*report["enforced"], *missing(report)}
    assert asked == {*("fs", "net", "unix", "signals", "privileges", "syscalls", "attributes")}
    assert report["enforced"]["fs"].startswith("landlock ")


def test_the_portable_platform_confines_nothing_and_says_so(portable: ProcClient) -> None:
    report = portable.call("probe").header
    assert (report["enforced"], {*missing(report)}) == ({}, PARTS)
    answer = portable.exec("true", confinement={"require": ["net"]})
    assert answer.stderr.decode() == (
        "Failed to spawn: the confinement cannot be enforced here: "
        "net (lilux-proc does not confine processes on this platform)"
    )
    answer = portable.exec(
        "sh", "-c", 'ls -a "$HOME"; echo "$HOME"', confinement={"require": [], "tmp": ["HOME"]}
    )
    assert answer.header["success"]
    assert {*missing(answer.header["confinement"])} >= {"fs", "net"}
    *listed, home = answer.stdout.decode().split()
    assert listed == [".", ".."]
    assert not Path(home).exists()


def test_without_namespaces_the_base_layer_is_enforced_and_the_rest_is_missing() -> None:
    command = ["unshare", "--user", "--map-root-user", "sh", "-c", WITHOUT_NAMESPACES, "sh"]
    tried = subprocess.run([*command, "true"], capture_output=True, check=False)
    if tried.returncode != 0:
        pytest.skip("not tried: this machine has no user namespaces to switch off")
    done = subprocess.run([*command, find_binary(), "probe"], capture_output=True, check=True)
    report = json.loads(done.stdout)
    assert report["enforced"]["net"] == "seccomp"
    assert report["enforced"]["fs"].startswith("landlock ")
    assert missing(report) == dict.fromkeys(
        ("attributes", "read_only", "hidden"),
        "mount namespaces cannot be used: No space left on device",
    )
    confinement = '{"command": "true", "confinement": {"execute": ["/usr"], "tmp": ["TMPDIR"]}}'
    done = subprocess.run(
        [*command, find_binary(), "exec", "--request"],
        input=confinement.encode(),
        capture_output=True,
        check=False,
    )
    assert b"cannot be enforced here: attributes (mount namespaces cannot be used" in done.stdout


def test_a_helper_in_a_chroot_does_not_let_its_jobs_out(tmp_path: Path) -> None:
    script = f"""
    set -e
    cd {tmp_path}
    mkdir root; mount --bind / root
    for name in proc dev; do mount --rbind /$name root/$name; done
    exec chroot root "$@"
    """
    command = ["unshare", "--mount", "sh", "-c", script, "sh"]
    tried = subprocess.run([*command, "true"], capture_output=True, check=False)
    if tried.returncode != 0:
        pytest.skip("not tried: this user cannot mount")
    (tmp_path / "root").rmdir()
    done = subprocess.run([*command, find_binary(), "probe"], capture_output=True, check=True)
    assert missing(json.loads(done.stdout)) == dict.fromkeys(
        ("attributes", "read_only", "hidden"),
        "mount namespaces cannot be used: lilux-proc runs in a chroot",
    )


@pytest.mark.parametrize(
    ("confinement", "message"),
    [
        ({"write": ["relative"]}, "confinement.write[0] is not an absolute path"),
        ({"limits": {"cpu": 0}}, "confinement.limits.cpu must be at least 1 and less than 2^63"),
        ({"require": ["magic"]}, "exec request: unknown variant, expected one of "),
        ({"colour": 1}, "exec request: unknown field `colour`, expected one of "),
        (
            {"net": "some"},
            "exec request: confinement.net must be 'none', 'all' or a list of hosts",
        ),
        ({"net": ["a.org:1"] * 257}, "confinement.net has more than 256 hosts"),
        ({"read": ["/x"] * 257}, "confinement.read has more than 256 paths"),
        ({"tmp": ["A=B"]}, "confinement.tmp must be names of environment variables"),
    ],
)
def test_an_invalid_confinement_is_refused(
    client: ProcClient, confinement: dict[str, Any], message: str
) -> None:
    answer = client.exec("true", confinement=confinement)
    assert (answer.kind, answer.header["error"]) == ("error", "invalid_request")
    assert answer.header["message"].startswith(message)


def test_background_processes_of_a_confined_job_are_not_kept(client: ProcClient) -> None:
    answer = client.exec("true", background="keep", confinement={})
    assert answer.header["message"] == "background must be 'end' for a job with a confinement"
    assert client.call("spawn", command="true", confinement={}).header["error"] == "invalid_request"


def test_many_confined_jobs_at_once(jobs: ConfinedJobs) -> None:
    confinement = jobs.confinement(tmp=["TMPDIR"])
    for number in range(60):
        jobs.client.send(
            "exec",
            command="sh",
            args=["-c", f'echo {number} > "$TMPDIR/x"; sleep 0.05; cat "$TMPDIR/x"'],
            confinement=confinement,
        )
    printed = sorted(int(jobs.client.receive().stdout) for _ in range(60))
    assert printed == list(range(60))
