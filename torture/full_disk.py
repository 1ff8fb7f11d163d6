"""The disk is full while a lockfile, a key, a token or a signature is written.

The disk is a small tmpfs in a private mount namespace, which disappears with the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lilux.primitives.errors import LiluxError
from lilux.primitives.lockfile import LockfileManager
from lilux.primitives.signing import (
    ensure_keypair,
    generate_keypair,
    load_keypair,
    save_keypair,
)
from lilux.runtime.auth import AuthStore
from lockfiles import lockfile
from rye.errors import RyeError
from rye_project import Project

from torture import children
from torture.scenario import Outcome, ScenarioSkippedError

PAGE = 4096
# More than the largest file needs, so that the last writes of each series succeed.
MAX_FREE_PAGES = 8


@dataclass(frozen=True, kw_only=True)
class Writer:
    """A function that replaces a file with another version, and one that reads the version."""

    name: str
    write: Callable[[str], object]
    read: Callable[[], str]


def written(times: int, folder: Path) -> Outcome:
    """Write each kind of file with no free page, one, two …; also without free inodes."""
    return children.run("full_disk", folder, times, through=require_namespace())


def require_namespace() -> list[str]:
    """The command that starts a process in a private mount namespace, or a skipped scenario."""
    unshare, mount = shutil.which("unshare"), shutil.which("mount")
    if not (unshare and mount):
        raise ScenarioSkippedError("unshare and mount are not installed")
    in_namespace = [unshare, "--user", "--map-root-user", "--mount"]
    if subprocess.run([*in_namespace, "true"], capture_output=True, check=False).returncode:
        raise ScenarioSkippedError("this user may not create a mount namespace")
    return in_namespace


def mount_small_disk(folder: Path) -> Path:
    """Mount a disk of 512 KiB in the folder; ends the process, as skipped, if it may not."""
    disk = folder / "disk"
    disk.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=512k,nr_inodes=256", "tmpfs", str(disk)]
    if subprocess.run(mounting, capture_output=True, check=False).returncode:
        sys.stdout.write(json.dumps({"skipped": "this user may not mount a tmpfs"}))
        sys.exit(0)
    return disk


def _write_to_small_disk(folder: Path, times: int) -> Outcome:
    disk = mount_small_disk(folder)
    failures: list[str] = []
    tried = refused = 0
    for writer in _writers(disk):
        for turn in range(times):
            free = turn % (MAX_FREE_PAGES + 2) - 1
            old, new = f"version {2 * turn}", f"version {2 * turn + 1}"
            writer.write(old)
            names = _names(disk)
            with filled(disk, free):
                error = _attempt(writer, new)
            tried += 1
            refused += error is not None
            found = writer.read()
            if found != (new if error is None else old):
                failures.append(f"{writer.name}: {found!r} instead of the complete file")
            if error is not None and "No space left" not in error and "no space left" not in error:
                failures.append(f"{writer.name}: the error does not name the reason: {error}")
            extra = _names(disk) - names
            if error is not None and extra:
                failures.append(f"{writer.name}: {sorted(extra)} left behind")
    if not 0 < refused < tried:
        failures.append(
            f"{refused} of {tried} writes failed on the full disk: the disk has the wrong size"
        )
    return Outcome(
        tried=tried, failures=tuple(failures), note=f"{refused} refused, the others written"
    )


def _attempt(writer: Writer, version: str) -> str | None:
    """Return why nothing was written; ``None`` on success."""
    try:
        writer.write(version)
    except (OSError, LiluxError, RyeError) as error:
        return str(error)
    return None


def _writers(disk: Path) -> list[Writer]:
    locks, manager = disk / "a.lock.json", LockfileManager()
    keys, first_keys, no_pair = disk / "keys", disk / "made", (b"", b"")
    pairs: dict[str, tuple[bytes, bytes]] = {}
    first_pairs: dict[str, tuple[bytes, bytes]] = {}
    store = AuthStore("torture", disk / "tokens", keychain=None)
    store.set_token("service", "the first token creates the key")
    project = Project(disk)
    tool = project.tool("tool.sh", "echo first\n", signed=False)

    def write_keys(version: str) -> None:
        pairs[version] = generate_keypair()
        save_keypair(*pairs[version], keys)

    def read_keys() -> str:
        found = load_keypair(keys)
        return next((version for version, pair in pairs.items() if pair == found), "no pair")

    def make_keys(version: str) -> None:
        if _is_old(version):
            shutil.rmtree(first_keys, ignore_errors=True)
            first_keys.mkdir(mode=0o700)
            first_pairs[version] = no_pair
        else:
            first_pairs[version] = ensure_keypair(first_keys)

    def read_first_keys() -> str:
        last = next(reversed(first_pairs))
        if not _is_old(last):
            return last if load_keypair(first_keys) == first_pairs[last] else "another pair"
        if any(first_keys.iterdir()):
            # Only one of the two files had space: it is complete, and the next use adds the other.
            ensure_keypair(first_keys)
            make_keys(last)
        return last

    def sign(version: str) -> None:
        # The author writes the text in place, before the disk is full.
        if _is_old(version):
            tool.write_text(f"# {version}\n# {'x' * 3 * PAGE}\n")
        else:
            project.sign(tool)

    return [
        Writer(
            name="a lockfile",
            write=lambda version: manager.save(
                lockfile(registry={"version": version, "fill": "x" * 3 * PAGE}), locks
            ),
            read=lambda: str((manager.load(locks).registry or {})["version"]),
        ),
        Writer(name="a key pair", write=write_keys, read=read_keys),
        Writer(name="a first key pair", write=make_keys, read=read_first_keys),
        Writer(
            name="a token",
            write=lambda version: store.set_token("service", version),
            read=lambda: asyncio.run(store.get_token("service")),
        ),
        Writer(name="a signature", write=sign, read=lambda: _signed_version(tool)),
    ]


def _is_old(version: str) -> bool:
    return int(version.split()[1]) % 2 == 0


def _signed_version(tool: Path) -> str:
    """Return the version of the text; a signature makes it the next version."""
    lines = tool.read_text().splitlines()
    signed = "rye:signed:" in lines[0]
    number = int(lines[1 if signed else 0].split()[-1])
    complete = lines[-1] == f"# {'x' * 3 * PAGE}"
    return f"version {number + signed}" if complete else "an incomplete file"


def _names(disk: Path) -> set[str]:
    return {str(path.relative_to(disk)) for path in disk.rglob("*")}


@contextlib.contextmanager
def filled(disk: Path, free_pages: int) -> Iterator[None]:
    """Fill the disk up to ``free_pages`` pages; -1 leaves space, but no inode for another file."""
    fillers = [disk / "filler"]
    if free_pages < 0:
        with _until_full():
            for number in itertools.count():
                fillers.append(disk / f"filler-{number}")
                fillers[-1].touch()
    else:
        with _until_full(), fillers[0].open("wb", buffering=0) as file:
            while file.write(b"x" * PAGE) == PAGE:
                pass
        os.truncate(fillers[0], fillers[0].stat().st_size // PAGE * PAGE - free_pages * PAGE)
    try:
        yield
    finally:
        for filler in fillers:
            filler.unlink(missing_ok=True)


@contextlib.contextmanager
def _until_full() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise


if __name__ == "__main__":
    children.print_outcome(_write_to_small_disk(Path(sys.argv[1]), int(sys.argv[2])))
