"""Real processes: start trees of them, check which are alive, and wait with a deadline."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil


def wait_until(condition: Callable[[], object], what: str, seconds: float = 15) -> None:
    """Return as soon as the condition is true; fail with ``what`` after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.005)


def is_alive(process: psutil.Process) -> bool:
    """True if the process is alive, by pid and start time; a zombie is not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def pid_in(path: Path) -> psutil.Process:
    """Wait until a job has written its pid to ``path``; return the process."""
    wait_until(lambda: path.exists() and path.read_text().endswith("\n"), f"a pid in {path.name}")
    return psutil.Process(int(path.read_text()))


def stop_process(process: psutil.Process) -> None:
    """Send SIGSTOP, and wait until every thread has stopped: until then, some may still react."""

    def stopped() -> bool:
        tasks = Path(f"/proc/{process.pid}/task").glob("*/stat")
        return all(task.read_text().rpartition(") ")[2].startswith("T") for task in tasks)

    process.suspend()
    wait_until(stopped, f"process {process.pid} is stopped")


def helper_processes(keeper_pid: int) -> list[psutil.Process]:
    """Return the processes of the helper, from the one that was started down to the worker."""

    def below(process: psutil.Process) -> Iterator[psutil.Process]:
        yield process
        for child in process.children():
            if child.name() == "lilux-proc":
                yield from below(child)

    return list(below(psutil.Process(keeper_pid)))


class Tree:
    """A job that starts a child, a grandchild in a new session and a double-forked daemon."""

    NAMES = ("root", "child", "own_session", "daemon")

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)

    def script(self, then: str = "exec sleep 600") -> str:
        """Return a script for ``sh -c``; ``then`` runs in the root process once all are up."""
        sleeper = "exec sleep 600 >/dev/null 2>&1"
        start = [
            f"sh -c 'echo $$ > {self.folder}/child; {sleeper}' &",
            f"setsid sh -c 'echo $$ > {self.folder}/own_session; {sleeper}' &",
            f"(setsid sh -c 'echo $$ > {self.folder}/daemon; {sleeper}' &)",
            f"echo $$ > {self.folder}/root",
        ]
        ready = "; ".join(
            f"while [ ! -s {self.folder}/{name} ]; do sleep 0.01; done" for name in self.NAMES[1:]
        )
        return "\n".join([*start, ready, f"echo up > {self.folder}/up", then])

    def processes(self) -> dict[str, psutil.Process]:
        """Wait until all four are running; return them by name."""
        wait_until((self.folder / "up").exists, "the tree is up")
        return {name: pid_in(self.folder / name) for name in self.NAMES}


def kill_together(*processes: psutil.Process) -> None:
    """Kill processes; some may end because of others."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def assert_ended(processes: dict[str, psutil.Process], seconds: float = 15) -> None:
    """Wait until all processes have ended; fail with the names of those still alive."""

    def left() -> list[str]:
        return [name for name, process in processes.items() if is_alive(process)]

    try:
        wait_until(lambda: not left(), "all processes have ended", seconds)
    except AssertionError:
        survivors = left()
        for name in survivors:
            processes[name].kill()
        raise AssertionError(f"still alive: {survivors}") from None
