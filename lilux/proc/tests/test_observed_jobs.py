"""An observed job: what it tried is in its result, whether or not it was allowed."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confined_jobs import PYTHON, SYSTEM_PATH, ConfinedJobs, confined_jobs, users
from proc_client import Answer, ProcClient
from processes import wait_until


@pytest.fixture(params=users())
def jobs(request: pytest.FixtureRequest) -> Iterator[ConfinedJobs]:
    """The jobs of root and of an ordinary user."""
    with confined_jobs(request.param) as jobs:
        _skip_unless_observed(jobs.client.exec("true", observe=True))
        yield jobs


def _skip_unless_observed(answer: Answer) -> None:
    if reason := answer.header["observation"].get("missing"):
        pytest.skip(f"not tried: {reason}")


def _run(jobs: ConfinedJobs, *command: str, **fields: Any) -> Answer:
    """Run a command in the project, observed and without a confinement."""
    env = {"PATH": SYSTEM_PATH, "LC_ALL": "C", "HOME": str(jobs.project)}
    options = {"cwd": str(jobs.project), "env": env, "env_mode": "exact", **fields}
    return jobs.client.exec(*command, observe=True, **options)


def _tried(answer: Answer) -> set[tuple[str, str]]:
    return {(one["what"], one["target"]) for one in answer.header["observation"]["accesses"]}


def _python(jobs: ConfinedJobs, code: str, *args: object, **fields: Any) -> set[tuple[str, str]]:
    answer = _run(jobs, PYTHON, "-I", "-S", "-c", code, *map(str, args), **fields)
    assert answer.header["success"], answer.stderr
    return _tried(answer)


def test_reads_writes_and_programs_are_listed(jobs: ConfinedJobs) -> None:
    script = "cat < given > new; mkdir folder; mv new folder/moved; rm folder/moved; cat given"
    given = jobs.make_file("project/given", "text")
    answer = _run(jobs, "bash", "-c", script)
    assert answer.header["success"], answer.stderr
    assert answer.stdout == b"text"
    tried = _tried(answer)
    project = jobs.project
    assert {
        ("read", str(given)),
        ("create", f"{project}/new"),
        ("create", f"{project}/folder"),
        ("remove", f"{project}/new"),
        ("create", f"{project}/folder/moved"),
        ("remove", f"{project}/folder/moved"),
        ("execute", os.path.realpath(shutil.which("bash", path=SYSTEM_PATH) or "")),
        ("execute", os.path.realpath(shutil.which("cat", path=SYSTEM_PATH) or "")),
    } <= tried
    counts = {
        (one["what"], one["target"]): (one["count"], Path(one["program"]).name)
        for one in answer.header["observation"]["accesses"]
    }
    assert counts["read", str(given)][0] == 2
    assert counts["remove", f"{project}/folder/moved"] == (1, "rm")


def test_relative_paths_and_links_are_resolved(jobs: ConfinedJobs) -> None:
    (jobs.project / "link").symlink_to(jobs.outside)
    inner = jobs.make_folder("project/inner")
    jobs.make_file("project/inner/file", "")
    code = """if True:
        import os, sys
        open("link/../outside/id_ed25519").close()
        folder = os.open("inner", os.O_RDONLY)
        os.close(os.open("file", os.O_RDONLY, dir_fd=folder))
        os.chdir("inner")
        os.mkdir("deeper", dir_fd=folder)
        os.chmod("file", 0o600)
        try: open("link-to-nothing/none")
        except OSError: pass
    """
    tried = _python(jobs, code)
    assert {
        ("read", str(jobs.secret)),
        ("read", f"{inner}/file"),
        ("create", f"{inner}/deeper"),
        ("change", f"{inner}/file"),
        ("read", f"{inner}/link-to-nothing/none"),
    } <= tried


def test_the_interpreter_of_a_script_is_listed(jobs: ConfinedJobs) -> None:
    jobs.make_file("project/script", "#!/usr/bin/env bash\necho $0\n", 0o755)
    answer = _run(jobs, "./script")
    assert answer.stdout == b"./script\n"
    assert {
        ("execute", f"{jobs.project}/script"),
        ("execute", os.path.realpath("/usr/bin/env")),
        ("execute", os.path.realpath(shutil.which("bash", path=SYSTEM_PATH) or "")),
    } <= _tried(answer)


def test_addresses_are_listed(jobs: ConfinedJobs) -> None:
    code = """if True:
        import socket, sys
        with socket.create_connection(("127.0.0.1", int(sys.argv[1]))): pass
        datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        datagrams.bind(("127.0.0.1", 0))
        datagrams.sendto(b"x", ("127.0.0.1", 9))
        datagrams.sendmsg([b"x"], [], 0, ("127.0.0.1", 10))
        for address in "/nowhere/docker.sock", "\\0bus":
            try: socket.socket(socket.AF_UNIX).connect(address)
            except OSError: pass
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        tried = _python(jobs, code, port)
    assert {
        ("socket", "inet"),
        ("socket", "unix"),
        ("connect", f"127.0.0.1:{port}"),
        ("bind", "127.0.0.1:0"),
        ("connect", "127.0.0.1:9"),
        ("connect", "127.0.0.1:10"),
        ("unix", "/nowhere/docker.sock"),
        ("unix", "@bus"),
    } <= tried


def test_what_landlock_refuses_is_listed(jobs: ConfinedJobs) -> None:
    confinement = jobs.confinement(require=["fs"])
    answer = _run(jobs, "cat", str(jobs.secret), confinement=confinement)
    if not answer.header.get("confinement"):
        pytest.skip(f"not tried: {answer.stderr.decode()}")
    assert answer.stderr.decode() == f"cat: {jobs.secret}: Permission denied\n"
    assert ("read", str(jobs.secret)) in _tried(answer)
    assert answer.header["observation"]["unreadable"] == 0


def test_threads_forks_and_processes_that_leave_the_group_are_listed(jobs: ConfinedJobs) -> None:
    code = """if True:
        import os, subprocess, threading
        def touch(name): open(name, "w").close()
        threads = [threading.Thread(target=touch, args=(f"t{n}",)) for n in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        if os.fork() == 0:
            os.setsid(); touch("forked"); os._exit(0)
        os.wait()
        subprocess.run(["touch", "started"], check=True)
    """
    tried = _python(jobs, code)
    names = [*(f"t{n}" for n in range(8)), "forked", "started"]
    assert {("create", f"{jobs.project}/{name}") for name in names} <= tried


def test_the_list_is_bounded_and_says_what_it_left_out(jobs: ConfinedJobs) -> None:
    code = """if True:
        import os
        for n in range(5000):
            try: os.unlink(f"none{n}")
            except OSError: pass
    """
    answer = _run(jobs, PYTHON, "-I", "-S", "-c", code)
    observation = answer.header["observation"]
    assert len(observation["accesses"]) == 4096
    removed = sum(one["what"] == "remove" for one in observation["accesses"])
    assert removed + observation["omitted"] == 5000


def test_a_timeout_ends_an_observed_job(jobs: ConfinedJobs) -> None:
    script = "while :; do cat given; done"
    answer = _run(jobs, "bash", "-c", script, timeout=0.5)
    assert answer.header["timed_out"]
    assert ("read", f"{jobs.project}/given") in _tried(answer)


def test_a_missing_program_is_reported_as_always(jobs: ConfinedJobs) -> None:
    answer = _run(jobs, "no-such-program")
    assert answer.stderr.decode().startswith("Failed to spawn: no-such-program: ")
    assert "observation" not in answer.header
    assert _run(jobs, "true").header["success"]


def test_jobs_are_observed_at_the_same_time(jobs: ConfinedJobs) -> None:
    answers: dict[int, Answer] = {}
    ids = {
        jobs.client.send(
            "exec",
            command="sh",
            args=["-c", f": > own{n}; sleep 0.1; : > last{n}"],
            observe=True,
            cwd=str(jobs.project),
        ): n
        for n in range(12)
    }
    for _ in ids:
        answer = jobs.client.receive()
        answers[ids[answer.id]] = answer
    for n, answer in answers.items():
        created = {target for what, target in _tried(answer) if what == "create"}
        assert created == {f"{jobs.project}/own{n}", f"{jobs.project}/last{n}"}


def test_the_portable_platform_says_that_it_cannot(tmp_path: Path) -> None:
    with ProcClient("--platform", "portable") as client:
        answer = client.exec("true", observe=True, cwd=str(tmp_path))
    assert answer.header["success"]
    assert answer.header["observation"] == {
        "accesses": [],
        "omitted": 0,
        "unreadable": 0,
        "missing": "lilux-proc does not observe processes on this platform",
    }


def test_a_job_that_leaves_processes_behind_cannot_be_observed(linux: ProcClient) -> None:
    answer = linux.exec("true", observe=True, background="keep")
    assert answer.header["message"] == "background must be 'end' for a job with observe"


def test_the_next_job_and_the_helper_are_not_observed(linux: ProcClient) -> None:
    _skip_unless_observed(linux.exec("true", observe=True))
    answer = linux.exec("grep", "Seccomp:", "/proc/self/status")
    assert answer.stdout.split() == [b"Seccomp:", b"0"]
    assert "observation" not in answer.header


def test_observers_leave_no_threads_and_descriptors(linux: ProcClient) -> None:
    _skip_unless_observed(linux.exec("true", observe=True))
    worker = int(linux.exec("sh", "-c", "echo $PPID").stdout)

    # Only root may look at the descriptors of a helper.
    folders = [Path(f"/proc/{worker}/task"), *[Path(f"/proc/{worker}/fd")][: os.geteuid() == 0]]

    def used() -> list[int]:
        return [len(list(folder.iterdir())) for folder in folders]

    for _ in range(20):
        linux.exec("true", observe=True)
    before = used()
    for _ in range(50):
        linux.exec("true", observe=True)
        linux.exec("no-such-program", observe=True)
    # On a busy machine the worker keeps a few more threads for requests, but not one for each of
    # these hundred jobs.
    wait_until(
        lambda: all(now < then + 20 for now, then in zip(used(), before, strict=True)),
        "the observers have ended",
    )
