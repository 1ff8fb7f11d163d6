"""Many processes run the same tool for the first time, at the same moment."""

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
    """Fifty processes; all succeed, and one valid lockfile is there."""
    tried = 0
    lost: list[str] = []
    for turn in range(times):
        place = folder / str(turn)
        place.mkdir()
        outcome = children.run("first_runs", place)
        tried += outcome.tried
        lost += outcome.lost
    return Outcome(tried=tried, lost=tuple(lost))


def _fork_and_run(folder: Path) -> Outcome:
    """Forked from one process that has loaded everything, so that they do run at once."""
    # What is imported on use is imported by a run elsewhere.
    elsewhere = Project(folder / "elsewhere")
    elsewhere.command("hello", "/bin/true")
    elsewhere.run("hello")
    execute_blocking("hello", context=elsewhere.context)
    project = Project(folder)
    project.command("tools/hello", "/bin/echo", "hi")
    start, go = os.pipe()
    pids = []
    for number in range(PROCESSES):
        pid = os.fork()
        if pid == 0:
            os.close(go)
            os.read(start, 1)  # nobody writes: it returns when the parent closes its end
            os._exit(_first_run(project, blocking=number % 2 == 0))
        pids.append(pid)
    os.close(go)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    lost = [f"a process ended with {code}" for code in codes if code != 0]
    path = project.lockfile("tools/hello")
    LockfileManager().load(path)
    if extra := [one.name for one in path.parent.iterdir() if one != path]:
        lost.append(f"files are left beside the lockfile: {extra}")
    if not project.run("tools/hello", frozen=True).success:
        lost.append("the lockfile is not accepted")
    return Outcome(tried=PROCESSES, lost=tuple(lost))


def _first_run(project: Project, *, blocking: bool) -> int:
    try:
        if blocking:
            result = execute_blocking("tools/hello", context=project.context)
        else:
            result = project.run("tools/hello")
    except BaseException as error:  # noqa: BLE001 - a fork must end here, whatever happens
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 2
    if result.success and result.data["stdout"] == "hi\n":
        return 0
    sys.stderr.write(f"{result.error}\n")
    return 1


if __name__ == "__main__":
    children.tell(_fork_and_run(Path(sys.argv[1])))
