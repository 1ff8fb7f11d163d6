"""Many processes run the same tool for the first time at the same moment."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from lilux.primitives.lockfile import LockfileManager
from rye.executor.run.blocking import execute_blocking
from rye_project import Project

from torture import children
from torture.scenario import Outcome

PROCESSES = 50


def at_once(times: int, folder: Path) -> Outcome:
    """Run fifty processes: all succeed, and write one valid lockfile."""
    tried = 0
    failures: list[str] = []
    for turn in range(times):
        subfolder = folder / str(turn)
        subfolder.mkdir()
        outcome = children.run("first_runs", subfolder)
        tried += outcome.tried
        failures += outcome.failures
    return Outcome(tried=tried, failures=tuple(failures))


def _fork_and_run(folder: Path) -> Outcome:
    """Fork the processes after all imports, so that they really run at the same time."""
    # A run in another project triggers the lazy imports.
    other = Project(folder / "other")
    other.command("hello", "/bin/true")
    other.run("hello")
    execute_blocking("hello", context=other.context)
    project = Project(folder)
    project.command("tools/hello", "/bin/echo", "hi")
    start, go = os.pipe()
    pids = []
    for number in range(PROCESSES):
        pid = os.fork()
        if pid == 0:
            os.close(go)
            os.read(start, 1)  # returns when the parent closes the pipe
            os._exit(_first_run(project, blocking=number % 2 == 0))
        pids.append(pid)
    os.close(go)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    failures = [f"a process ended with {code}" for code in codes if code != 0]
    path = project.lockfile("tools/hello")
    LockfileManager().load(path)
    if extra := [one.name for one in path.parent.iterdir() if one != path]:
        failures.append(f"extra files beside the lockfile: {extra}")
    if not project.run("tools/hello", frozen=True).success:
        failures.append("the lockfile is not accepted")
    return Outcome(tried=PROCESSES, failures=tuple(failures))


def _first_run(project: Project, *, blocking: bool) -> int:
    try:
        if blocking:
            result = execute_blocking("tools/hello", context=project.context)
        else:
            result = project.run("tools/hello")
    except BaseException as error:  # noqa: BLE001 - a forked process must always end here
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 2
    if result.success and result.data["stdout"] == "hi\n":
        return 0
    sys.stderr.write(f"{result.error}\n")
    return 1


if __name__ == "__main__":
    children.print_outcome(_fork_and_run(Path(sys.argv[1])))
