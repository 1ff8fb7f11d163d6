"""The disk is full while a lockfile, a key, a token or a signature is written.

The disk is a small tmpfs in a mount namespace of its own, which goes when the process does.
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
from torture.scenario import CannotBeTriedError, Outcome

PAGE = 4096
# More than the largest of the files takes, so that the last writes of each series succeed.
MOST_FREE_PAGES = 8


@dataclass(frozen=True, kw_only=True)
class Writer:
    """Something that replaces a file by another version of it."""

    name: str
    write: Callable[[str], object]
    read: Callable[[], str]


def written(times: int, folder: Path) -> Outcome:
    """Each kind of file, with nothing free, one page free, two …; also without inodes."""
    unshare, mount = shutil.which("unshare"), shutil.which("mount")
    if not (unshare and mount):
        raise CannotBeTriedError("unshare and mount are not installed")
    own_mounts = [unshare, "--user", "--map-root-user", "--mount"]
    if subprocess.run([*own_mounts, "true"], capture_output=True, check=False).returncode:
        raise CannotBeTriedError("this user may not have a mount namespace")
    return children.run("full_disk", folder, times, through=own_mounts)


def _on_a_small_disk(folder: Path, times: int) -> Outcome:
    disk = folder / "disk"
    disk.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=512k,nr_inodes=256", "tmpfs", str(disk)]
    if subprocess.run(mounting, capture_output=True, check=False).returncode:
        sys.stdout.write(json.dumps({"cannot": "this user may not mount a tmpfs"}))
        sys.exit(0)
    lost: list[str] = []
    tried = refused = 0
    for writer in _writers(disk):
        for turn in range(times):
            free = turn % (MOST_FREE_PAGES + 2) - 1
            old, new = f"version {2 * turn}", f"version {2 * turn + 1}"
            writer.write(old)
            names = _names(disk)
            with _filled(disk, free):
                said = _attempt(writer, new)
            tried += 1
            refused += said is not None
            found = writer.read()
            if found != (new if said is None else old):
                lost.append(f"{writer.name}: {found!r} is there instead of the whole file")
            if said is not None and "No space left" not in said and "no space left" not in said:
                lost.append(f"{writer.name}: the error does not tell the reason: {said}")
            left = _names(disk) - names
            if said is not None and left:
                lost.append(f"{writer.name}: {sorted(left)} is left")
    if not 0 < refused < tried:
        lost.append(f"{refused} of {tried} writes met the full disk: the disk has the wrong size")
    return Outcome(tried=tried, lost=tuple(lost), note=f"{refused} refused, the others written")


def _attempt(writer: Writer, version: str) -> str | None:
    """Why nothing was written, or ``None`` if it was."""
    try:
        writer.write(version)
    except (OSError, LiluxError, RyeError) as error:
        return str(error)
    return None


def _writers(disk: Path) -> list[Writer]:
    locks, manager = disk / "a.lock.json", LockfileManager()
    keys, made, made_before = disk / "keys", disk / "made", (b"", b"")
    pairs: dict[str, tuple[bytes, bytes]] = {}
    first_pairs: dict[str, tuple[bytes, bytes]] = {}
    store = AuthStore("torture", disk / "tokens", keychain=None)
    store.set_token("service", "the first one makes the key")
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
            shutil.rmtree(made, ignore_errors=True)
            made.mkdir(mode=0o700)
            first_pairs[version] = made_before
        else:
            first_pairs[version] = ensure_keypair(made)

    def read_made() -> str:
        last = next(reversed(first_pairs))
        if not _is_old(last):
            return last if load_keypair(made) == first_pairs[last] else "another pair"
        if any(made.iterdir()):
            # There was room for one of the two: it is whole, and the next use completes the pair.
            ensure_keypair(made)
            make_keys(last)
        return last

    def sign(version: str) -> None:
        # The text is written by its author, in place, before the disk was full.
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
        Writer(name="a first key pair", write=make_keys, read=read_made),
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
    """An unsigned text counts as its own version, a signed one as the next."""
    lines = tool.read_text().splitlines()
    signed = "rye:signed:" in lines[0]
    number = int(lines[1 if signed else 0].split()[-1])
    whole = lines[-1] == f"# {'x' * 3 * PAGE}"
    return f"version {number + signed}" if whole else "a part"


def _names(disk: Path) -> set[str]:
    return {str(path.relative_to(disk)) for path in disk.rglob("*")}


@contextlib.contextmanager
def _filled(disk: Path, free_pages: int) -> Iterator[None]:
    """Leaves so many pages free; -1 leaves space, but no inode for another file."""
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
    children.tell(_on_a_small_disk(Path(sys.argv[1]), int(sys.argv[2])))
