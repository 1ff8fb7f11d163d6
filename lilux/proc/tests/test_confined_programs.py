"""Ordinary programs work inside a sensible confinement."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from confined_jobs import PYTHON, SYSTEM_PATH, ConfinedJobs, confined_jobs, users


@pytest.fixture(params=users())
def jobs(request: pytest.FixtureRequest) -> Iterator[ConfinedJobs]:
    """The jobs of root and of an ordinary user."""
    with confined_jobs(request.param) as jobs:
        yield jobs


def output_of(jobs: ConfinedJobs, *command: str) -> str:
    """Run a program with a private folder and without network; return what it prints."""
    if shutil.which(command[0], path=SYSTEM_PATH) is None:
        pytest.skip(f"not tried: {command[0]} is not installed")
    confinement = jobs.confinement(read=["/proc"], tmp=["TMPDIR", "HOME"])
    answer = jobs.run(*command, confinement=confinement)
    assert answer.header["success"], (answer.header, answer.stdout, answer.stderr)
    assert answer.header["confinement"]["enforced"]["fs"].startswith("landlock")
    return answer.stdout.decode().strip()


def test_python_with_asyncio_threads_and_processes(jobs: ConfinedJobs) -> None:
    code = """if True:
        import asyncio, concurrent.futures, os, subprocess, tempfile
        async def main():
            run = asyncio.create_subprocess_exec
            child = await run("echo", "child", stdout=subprocess.PIPE)
            print((await child.communicate())[0].decode().strip())
            print(await asyncio.to_thread(lambda: "thread"))
        asyncio.run(main())
        with tempfile.NamedTemporaryFile() as file: file.write(b"x")
        with concurrent.futures.ThreadPoolExecutor() as pool: print(*pool.map(abs, [-1, -2]))
        print(os.path.expanduser("~") == os.environ["HOME"])
    """
    assert output_of(jobs, PYTHON, "-c", code).splitlines() == ["child", "thread", "1 2", "True"]


def test_bash_pipelines_with_here_documents(jobs: ConfinedJobs) -> None:
    script = """
    cat <<'END' | tr a-z A-Z | sort > sorted
    b
    a
END
    tail -1 sorted; wc -c <<< four; echo "$(seq 1 100000 | tail -1)"; cat <(echo substituted)
    """
    assert output_of(jobs, "bash", "-c", script).split() == ["B", "5", "100000", "substituted"]


def test_node_with_child_processes_and_timers(jobs: ConfinedJobs) -> None:
    code = """
    const {execSync, spawn} = require("child_process");
    const {Worker} = require("worker_threads");
    console.log(execSync("echo sync").toString().trim());
    spawn("echo", ["async"]).stdout.on("data", text => {
        console.log(text.toString().trim());
        new Worker("require('worker_threads').parentPort.postMessage('worker')", {eval: true})
            .on("message", text => console.log(text));
    });
    """
    assert output_of(jobs, "node", "-e", code).split() == ["sync", "async", "worker"]


def test_git_status_commit_and_log(jobs: ConfinedJobs) -> None:
    script = """
    set -e
    export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.com
    export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.com
    git init -q .; echo text > file; git add file; git commit -qm message
    echo more >> file; git status --short; git log --format=%s
    """
    assert output_of(jobs, "git", "--version").startswith("git version")
    assert output_of(jobs, "sh", "-c", script).splitlines() == ["M file", "message"]


def test_gcc_and_make(jobs: ConfinedJobs) -> None:
    output_of(jobs, "gcc", "--version")
    (jobs.project / "main.c").write_text('#include <stdio.h>\nint main() { puts("built"); }\n')
    (jobs.project / "Makefile").write_text("main: main.c\n\tgcc -O1 -o main main.c\n")
    for path in jobs.project.iterdir():
        path.chmod(0o644)
    output_of(jobs, "make")
    built = jobs.confinement(execute=[str(jobs.project / "main")])
    assert jobs.run("./main", confinement=built).stdout == b"built\n"
