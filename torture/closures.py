"""The cache of closures is used by many processes at once, damaged, full or read-only."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import rye.closure.manifest
from rye.closure.writer import remove_copy
from rye.executor.run.blocking import execute_blocking
from rye_project import Project

from torture import children
from torture.full_disk import MAX_FREE_PAGES, filled, mount_small_disk, require_namespace
from torture.scenario import Outcome

PROCESSES = 50
SHELL = '# /// rye\n# executor_id = "rye/core/runtimes/bash_runtime"\n# ///\n{}\n'
# Tells that it has started, and then waits until its cache is damaged.
WAITS = "echo >started; read -r line <go; echo good"


def at_once(times: int, folder: Path) -> Outcome:
    """Fifty processes, of two versions of Rye, make the same copies: all succeed."""
    return _repeated("at-once", times, folder)


def damaged(times: int, folder: Path) -> Outcome:
    """Damage the cache while a tool runs: this call and the next one run the verified bytes."""
    project = Project(folder, shipped_system=True)
    project.tool("waits.sh", SHELL.format(WAITS))
    project.tool("says.sh", SHELL.format("echo good"))
    for name in ("started", "go"):
        os.mkfifo(project.path / name)
    project.run("says")
    failures: list[str] = []
    names = list(_DAMAGE)
    for turn in range(times):
        name = names[turn % len(names)]
        thread = threading.Thread(target=_when_started, args=(project, _DAMAGE[name]))
        thread.start()
        result = project.run("waits")
        thread.join()
        if not result.success or result.data["stdout"] != "good\n":
            failures.append(f"{name}, during a call: {result.error or result.data}")
        result = project.run("says")
        if not result.success or result.data["stdout"] != "good\n":
            failures.append(f"{name}, next call: {result.error or result.data}")
        _repair(project)
    return Outcome(tried=2 * times, failures=tuple(failures))


def full(times: int, folder: Path) -> Outcome:
    """Call a tool with no free page, one, two …, without inodes, and on a read-only disk."""
    return children.run("closures", "full", folder, times, through=require_namespace())


def _repeated(name: str, times: int, folder: Path) -> Outcome:
    tried = 0
    failures: list[str] = []
    for turn in range(times):
        subfolder = folder / str(turn)
        subfolder.mkdir()
        outcome = children.run("closures", name, subfolder, 1)
        tried += outcome.tried
        failures += outcome.failures
    return Outcome(tried=tried, failures=tuple(failures))


def _cache(project: Project) -> Path:
    return project.user / ".ai/cache/closures"


def _when_started(project: Project, damage: Callable[[Path], object]) -> None:
    with (project.path / "started").open() as started:
        started.read()
    try:
        damage(_cache(project))
    finally:
        (project.path / "go").write_text("\n")


def _copy_of_says(cache: Path) -> Path:
    return next(cache.glob("*/tool/says.sh")).parent.parent


def _empty(cache: Path) -> None:
    for one in cache.iterdir():
        remove_copy(str(one))


def _overwrite(cache: Path) -> None:
    for path in [*cache.glob("*/tool/*.sh"), *cache.glob("*/lib/*.sh")]:
        path.chmod(0o600)
        path.write_text("echo evil\n")


def _plant(cache: Path) -> None:
    folder = _copy_of_says(cache) / "tool"
    folder.chmod(0o700)
    (folder / "evil.sh").write_text("echo evil\n")


def _swap(cache: Path) -> None:
    """Put the copy of another closure in the place of this one."""
    copy = _copy_of_says(cache)
    other = next(cache.glob("*/tool/waits.sh")).parent.parent
    remove_copy(str(copy))
    shutil.copytree(other, copy)


def _link(cache: Path) -> None:
    cache.rename(cache.with_name("elsewhere"))
    cache.symlink_to("elsewhere")


def _file(cache: Path) -> None:
    remove_copy(str(cache))
    cache.write_text("not a folder")


_DAMAGE: dict[str, Callable[[Path], object]] = {
    "removed": lambda cache: remove_copy(str(cache)),
    "overwritten": _overwrite,
    "planted": _plant,
    "swapped": _swap,
    "emptied": _empty,
    "open to others": lambda cache: cache.chmod(0o777),
    "a link": _link,
    "a file": _file,
}


def _repair(project: Project) -> None:
    cache = _cache(project)
    if cache.is_symlink() or cache.is_file():
        cache.unlink()
    else:
        remove_copy(str(cache))
    remove_copy(str(cache.with_name("elsewhere")))
    if project.run("says").metadata.get("closure_note"):
        raise AssertionError("the cache is not used after a repair")


def _many_processes(folder: Path) -> Outcome:
    project = Project(folder, shipped_system=True)
    project.tool("says.sh", SHELL.format("echo good"))
    other = Project(folder / "other", shipped_system=True)
    other.command("hello", "/bin/true")
    execute_blocking("hello", context=other.context)  # triggers the lazy imports
    start, go = os.pipe()
    pids = []
    for number in range(PROCESSES):
        pid = os.fork()
        if pid == 0:
            os.close(go)
            os.read(start, 1)  # returns when the parent closes the pipe
            if number % 2:
                rye.closure.manifest.FORMAT += 1  # another version of Rye
            os._exit(_says_good(project))
        pids.append(pid)
    os.close(go)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    failures = [f"a process ended with {code}" for code in codes if code != 0]
    names = [one.name for one in _cache(project).iterdir() if one.name != ".pruned"]
    if len(names) != 2 or any(len(name) != 64 for name in names):
        failures.append(f"expected two closures, found {names}")
    return Outcome(tried=PROCESSES, failures=tuple(failures))


def _says_good(project: Project) -> int:
    try:
        result = execute_blocking("says", context=project.context, use_lockfile=False)
    except BaseException as error:  # noqa: BLE001 - a forked process must always end here
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 2
    fine = result.success and result.data["stdout"] == "good\n"
    return 0 if fine and "closure_note" not in result.metadata else 1


def _small_disk(folder: Path, times: int) -> Outcome:
    disk = mount_small_disk(folder)
    project = Project(folder, shipped_system=True)
    # The whole cache, as a folder of the small disk.
    (project.user / ".ai/cache").mkdir(exist_ok=True)
    cache = disk / "cache"
    cache.mkdir()
    subprocess.run(["mount", "--bind", cache, project.user / ".ai/cache"], check=True)
    project.tool("says.sh", SHELL.format("echo good"))
    failures: list[str] = []
    temporary = 0
    for turn in range(times):
        free = turn % (MAX_FREE_PAGES + 3) - 2
        remove_copy(str(_cache(project)))
        result = _on_read_only(disk, project) if free == -2 else _on_full(disk, project, free)
        if not result.success or result.data["stdout"] != "good\n":
            failures.append(f"{free} free pages: {result.error or result.data}")
        temporary += "closure_note" in result.metadata
        if not project.run("says", use_lockfile=False).success:
            failures.append(f"{free} free pages: the next call fails")
    if not 0 < temporary < times:
        failures.append(f"{temporary} of {times} calls used a temporary copy")
    return Outcome(tried=times, failures=tuple(failures), note=f"{temporary} temporary copies")


def _on_read_only(disk: Path, project: Project):  # type: ignore[no-untyped-def]
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    try:
        return project.run("says", use_lockfile=False)
    finally:
        subprocess.run(["mount", "-o", "remount,rw", disk], check=True)


def _on_full(disk: Path, project: Project, free: int):  # type: ignore[no-untyped-def]
    with filled(disk, free):
        return project.run("says", use_lockfile=False)


if __name__ == "__main__":
    kind, place, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    children.print_outcome(
        _many_processes(place) if kind == "at-once" else _small_disk(place, count)
    )
