"""Writes copies of closures, and removes them. Loaded only when one is missing or damaged."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from rye.closure.check import MANIFEST, MAX_FILE_BYTES, Plan, content_hash
from rye.closure.manifest import Closure
from rye.errors import ClosureError
from rye.ownership import is_private

_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
PATIENCE = 2.0
"""Seconds to wait for another process; writing a copy takes milliseconds."""
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


def put_copy(root: str, closure: Closure, plan: Plan) -> None:
    """Write a copy to ``root``; one that is there is replaced.

    Nothing is synced to the disk: what a power failure leaves is noticed and made again. Raises
    ``OSError``, and :class:`ClosureError` for a file that is no longer the one that was verified.
    """
    folder = os.path.dirname(root)  # noqa: PTH120 - texts here
    contents = _verified_bytes(closure)
    new = f"{folder}/.{os.urandom(8).hex()}.tmp"
    try:
        _write_copy(new, closure, plan, contents)
        move_copy(new, root)
    except BaseException:
        remove_copy(new)
        raise


def move_copy(new: str, root: str) -> None:
    """Give a folder its final name; one that has it is removed."""
    old = f"{os.path.dirname(root)}/.{os.urandom(8).hex()}.tmp"  # noqa: PTH120 - texts
    try:
        # A folder cannot replace another one that is not empty.
        os.rename(root, old)  # noqa: PTH104 - texts
    except FileNotFoundError:
        old = ""
    os.rename(new, root)  # noqa: PTH104 - texts
    if old:
        remove_copy(old)


def _verified_bytes(closure: Closure) -> dict[str, bytes]:
    """Read the files of a closure again, by their places in the copy."""
    found: dict[str, bytes] = {}
    for one, (path, _) in zip(closure.manifest.files, closure.sources, strict=True):
        if one.place is None:
            continue
        data = _read(path)
        if data is None or content_hash(data, one) != one.sha256:
            raise ClosureError(
                f"{path} changed after it was verified and was not run", hint="run it again"
            )
        found[one.place] = data
    return found


def _write_copy(root: str, closure: Closure, plan: Plan, contents: Mapping[str, bytes]) -> None:
    for name in plan.folders:
        os.mkdir(f"{root}/{name}", 0o700)  # noqa: PTH102 - texts here
    _write(f"{root}/{MANIFEST}", closure.encoded, 0o400)
    for one in closure.manifest.files:
        if one.place is not None:
            _write(f"{root}/{one.place}", contents[one.place], 0o500 if one.executable else 0o400)
    for name in plan.folders:
        os.chmod(f"{root}/{name}", 0o500)  # noqa: PTH101 - as above


def remove_copy(root: str) -> None:
    """Remove a folder with everything in it, which need not exist or be writable."""
    for folder, _, _ in os.walk(root):
        try:
            os.chmod(folder, 0o700)  # noqa: PTH101 - texts
        except OSError:
            continue
    for folder, folders, files in os.walk(root, topdown=False):
        for name in files:
            _quietly(os.unlink, f"{folder}/{name}")
        for name in folders:
            path = f"{folder}/{name}"
            _quietly(os.unlink if os.path.islink(path) else os.rmdir, path)  # noqa: PTH114 - texts
    _quietly(os.rmdir, root)


def prepare_folder(folder: str) -> None:
    """Create the folder of the store. Raises ``OSError`` if it is not private to this user."""
    path = Path(folder)
    if not is_private(folder):
        above = next((one for one in path.parents if one.exists()), path)
        # Under sudo, root must not leave files in the home of another user.
        if above.stat().st_uid != os.geteuid():
            raise PermissionError(1, f"{above} belongs to another user")
        for one in (*reversed(path.parents), path):
            one.mkdir(mode=0o700, exist_ok=True)
        if not is_private(folder):
            raise PermissionError(1, "it is not private to its owner")


def _quietly(act: Callable[[str], object], path: str) -> None:
    try:
        act(path)
    except OSError:
        return


def _read(path: str) -> bytes | None:
    try:
        descriptor = os.open(path, _READ)
    except OSError:
        return None
    try:
        chunks = []
        rest = MAX_FILE_BYTES + 1
        while rest > 0 and (chunk := os.read(descriptor, rest)):
            chunks.append(chunk)
            rest -= len(chunk)
        return b"".join(chunks) if rest > 0 else None
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _write(path: str, data: bytes, mode: int) -> None:
    descriptor = os.open(path, _WRITE, mode)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
    finally:
        os.close(descriptor)
