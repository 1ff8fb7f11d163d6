"""A reader meets a file at every possible cut: an error, never an accepted half."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lilux.primitives.errors import AuthError, KeyFileError
from lilux.primitives.signing import generate_keypair, load_keypair, save_keypair
from lilux.runtime.auth import AuthStore
from rye_project import Project

from torture.scenario import Outcome

Reading = Callable[[], str | None]
"""Reads the cut file: ``None`` if it was refused as it should be, else what came instead."""


def lockfile(times: int, folder: Path) -> Outcome:
    """A tool is run with the head of its lockfile."""
    project = Project(folder)
    project.command("hello", "/bin/echo", "hi")
    project.run("hello")
    path = project.lockfile("hello")

    async def main() -> Outcome:
        async with project.executor() as executor:
            lost, tried = [], 0
            for length in _cut(path, times):
                result = await executor.execute("hello")
                tried += 1
                if result.metadata.get("error_type") != "LockCorruptError":
                    lost.append(f"{length} bytes of a lockfile: {result.error or 'accepted'}")
            if not (await executor.execute("hello", frozen=True)).success:
                lost.append("the whole lockfile is not accepted")
            return Outcome(tried=tried, lost=tuple(lost))

    return asyncio.run(main())


def signed_tool(times: int, folder: Path) -> Outcome:
    """A tool is run of which only the head is there."""
    project = Project(folder)
    project.command("hello", "/bin/echo", "hi")
    path = project.folder("project") / "tools" / "hello.yaml"
    refused = {"UnsignedError", "ChangedError", "ForgedError", "ItemFormatError"}

    async def main() -> Outcome:
        async with project.executor() as executor:
            lost, tried = [], 0
            for length in _cut(path, times):
                result = await executor.execute("hello", use_lockfile=False)
                tried += 1
                if result.metadata.get("error_type") not in refused:
                    lost.append(f"{length} bytes of a tool: {result.error or 'it ran'}")
            return Outcome(tried=tried, lost=tuple(lost))

    return asyncio.run(main())


def secrets(times: int, folder: Path) -> Outcome:
    """A private key, a public key and a token are loaded from their heads."""
    keys, tokens = folder / "keys", folder / "tokens"
    save_keypair(*generate_keypair(), keys)
    store = AuthStore("torture", tokens, keychain=None)
    store.set_token("service", "a token that is to be kept")

    def load_keys() -> str | None:
        try:
            load_keypair(keys)
        except KeyFileError:
            return None
        return "accepted"

    def load_token() -> str | None:
        try:
            return asyncio.run(store.get_token("service"))
        except (AuthError, KeyFileError):
            return None

    readings: list[tuple[Path, Reading]] = [(path, load_keys) for path in sorted(keys.iterdir())]
    readings += [(path, load_token) for path in sorted(tokens.iterdir()) if path.is_file()]
    lost, tried = [], 0
    for path, read in readings:
        for length in _cut(path, times):
            tried += 1
            if (came := read()) is not None:
                lost.append(f"{length} bytes of {path.name}: {came}")
    return Outcome(tried=tried, lost=tuple(lost))


def _cut(path: Path, at_most: int) -> Iterator[int]:
    """Cuts the file to each length, or to ``at_most`` lengths; it is whole again afterwards.

    A last line break does not count: without it, the document is still all there.
    """
    whole = path.read_bytes()
    size = len(whole.rstrip(b"\n"))
    with _restored(path, whole):
        for length in range(0, size, max(1, -(-size // at_most))):
            path.write_bytes(whole[:length])
            yield length


@contextmanager
def _restored(path: Path, whole: bytes) -> Iterator[None]:
    try:
        yield
    finally:
        path.write_bytes(whole)
