"""Files truncated at every length: reading one is an error; a part is never accepted."""

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

Reader = Callable[[], str | None]
"""Reads the truncated file; returns ``None`` if it was refused, else what was accepted."""


def lockfile(times: int, folder: Path) -> Outcome:
    """Run a tool with a truncated lockfile."""
    project = Project(folder)
    project.command("hello", "/bin/echo", "hi")
    project.run("hello")
    path = project.lockfile("hello")

    async def main() -> Outcome:
        async with project.executor() as executor:
            failures, tried = [], 0
            for length in _truncated(path, times):
                result = await executor.execute("hello")
                tried += 1
                if result.metadata.get("error_type") != "LockCorruptError":
                    failures.append(f"{length} bytes of a lockfile: {result.error or 'accepted'}")
            if not (await executor.execute("hello", frozen=True)).success:
                failures.append("the complete lockfile is not accepted")
            return Outcome(tried=tried, failures=tuple(failures))

    return asyncio.run(main())


def signed_tool(times: int, folder: Path) -> Outcome:
    """Run a tool whose file is truncated."""
    project = Project(folder)
    project.command("hello", "/bin/echo", "hi")
    path = project.folder("project") / "tools" / "hello.yaml"
    refused = {"UnsignedError", "ChangedError", "ForgedError", "ItemFormatError"}

    async def main() -> Outcome:
        async with project.executor() as executor:
            failures, tried = [], 0
            for length in _truncated(path, times):
                result = await executor.execute("hello", use_lockfile=False)
                tried += 1
                if result.metadata.get("error_type") not in refused:
                    failures.append(f"{length} bytes of a tool: {result.error or 'it ran'}")
            return Outcome(tried=tried, failures=tuple(failures))

    return asyncio.run(main())


def secrets(times: int, folder: Path) -> Outcome:
    """Load a truncated private key, public key and token."""
    keys, tokens = folder / "keys", folder / "tokens"
    save_keypair(*generate_keypair(), keys)
    store = AuthStore("torture", tokens, keychain=None)
    store.set_token("service", "a stored token")

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

    readings: list[tuple[Path, Reader]] = [(path, load_keys) for path in sorted(keys.iterdir())]
    readings += [(path, load_token) for path in sorted(tokens.iterdir()) if path.is_file()]
    failures, tried = [], 0
    for path, read in readings:
        for length in _truncated(path, times):
            tried += 1
            if (result := read()) is not None:
                failures.append(f"{length} bytes of {path.name}: {result}")
    return Outcome(tried=tried, failures=tuple(failures))


def _truncated(path: Path, at_most: int) -> Iterator[int]:
    """Truncate the file to each length, or to ``at_most`` lengths; restore it afterwards.

    A file without its last line break is not tried: it is still complete.
    """
    content = path.read_bytes()
    size = len(content.rstrip(b"\n"))
    with _restored(path, content):
        for length in range(0, size, max(1, -(-size // at_most))):
            path.write_bytes(content[:length])
            yield length


@contextmanager
def _restored(path: Path, content: bytes) -> Iterator[None]:
    try:
        yield
    finally:
        path.write_bytes(content)
