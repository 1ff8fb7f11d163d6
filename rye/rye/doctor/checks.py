"""Findings, and the checks of the machine, the trust store and the items."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from lilux.primitives.errors import ConfigurationError, KeyFileError

from rye.context import Context
from rye.spaces.resolver import Resolver

if TYPE_CHECKING:
    from rye.catalogue.entry import CatalogueEntry

State = Literal["ok", "fixed", "warning", "problem"]

_SECONDS = 10


class Finding(NamedTuple):
    """The result of one check."""

    state: State
    subject: str
    message: str
    hint: str = ""
    """What to do; empty if there is nothing to do, or if the message says it."""


def ok(subject: str, message: str) -> Finding:
    """The subject works."""
    return Finding("ok", subject, message)


def warning(subject: str, message: str, hint: str = "") -> Finding:
    """Something does not work, but no tool uses it."""
    return Finding("warning", subject, message, hint)


def problem(subject: str, message: str, hint: str = "") -> Finding:
    """Something does not work."""
    return Finding("problem", subject, message, hint)


# The machine


def check_machine(context: Context) -> Iterator[Finding]:
    """Check the helper, the MCP extra, and the directories of the user and the project."""
    helper = _helper()
    yield helper
    if helper.state == "ok":
        yield _confinement()
    yield _mcp_extra()
    yield _user_space(context)
    yield from _owners(context)


def _helper() -> Finding:
    from lilux.primitives.subprocess.binary import find_helper

    try:
        path = find_helper()
        done = subprocess.run(
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except ConfigurationError as error:
        return problem("lilux-proc", str(error))
    except (OSError, subprocess.TimeoutExpired) as error:
        return problem("lilux-proc", f"{path} does not run ({error})", "reinstall lilux-proc")
    if done.returncode != 0:
        return problem(
            "lilux-proc", f"{path} fails with exit code {done.returncode}", "reinstall lilux-proc"
        )
    version = done.stdout.decode(errors="replace").removeprefix("lilux-proc").strip()
    return ok("lilux-proc", f"{path} ({version[:40]})")


def _confinement() -> Finding:
    from rye.executor.permitted import probe

    report = probe()
    if report.missing:
        reasons = dict.fromkeys([one.reason for one in report.missing])
        parts = ", ".join([one.part for one in report.missing])
        return warning(
            "permissions",
            f"this machine cannot enforce {parts} ({'; '.join(reasons)})",
            "see what that means for a tool with: rye permissions check TOOL",
        )
    mechanisms = dict.fromkeys(report.enforced.values())
    return ok("permissions", f"all can be enforced ({', '.join(mechanisms)})")


def _mcp_extra() -> Finding:
    missing = [name for name in ("mcp", "watchfiles") if find_spec(name) is None]
    if missing:
        return warning(
            "MCP server",
            f"not installed: {', '.join(missing)}",
            "to use rye mcp, run: pip install 'rye[mcp]'",
        )
    return ok("MCP server", "installed")


def _user_space(context: Context) -> Finding:
    space = context.user_space / ".ai"
    existing = next(folder for folder in (space, *space.parents) if folder.exists())
    if not os.access(existing, os.W_OK | os.X_OK):
        return problem(
            "user space",
            f"{space} is not writable",
            "set USER_SPACE to a directory that you can write to",
        )
    return ok("user space", str(space) if existing == space else f"{space} (not created yet)")


def _owners(context: Context) -> Iterator[Finding]:
    folders = {"user space": context.user_space / ".ai", "project": context.project_path / ".ai"}
    for subject, folder in folders.items():
        fault = _foreign_owner(folder)
        if fault:
            yield problem(subject, fault, "change the owner, or use your own copy")


def _foreign_owner(folder: Path) -> str:
    for path in (folder, folder / "tools"):
        try:
            owner = path.stat().st_uid
        except FileNotFoundError:
            continue
        except OSError as error:
            return f"{path} is not accessible ({(error.strerror or '').lower()})"
        if owner not in (os.geteuid(), 0):
            return f"{path} belongs to another user (uid {owner}), who can change what runs"
    return ""


# Trust


def check_trust(context: Context) -> Iterator[Finding]:
    """Check the user's key, every entry of the trust store, and the approval of the project."""
    yield _key(context)
    yield from _trust_store(context)
    yield from _approval(context)


def _key(context: Context) -> Finding:
    from lilux.primitives.signing import (
        PRIVATE_KEY_FILE,
        PUBLIC_KEY_FILE,
        compute_key_fingerprint,
        load_keypair,
    )

    from rye.trust.store import TrustStore

    folder = TrustStore(context, spaces=()).key_folder
    try:
        if not any((folder / name).exists() for name in (PRIVATE_KEY_FILE, PUBLIC_KEY_FILE)):
            return warning("your key", f"none in {folder}", "create one with: rye init")
        _, public = load_keypair(folder)
    except KeyFileError as error:
        return problem("your key", str(error))
    except OSError as error:
        return problem(
            "your key", f"{folder}: {(error.strerror or '').lower()}", "make it readable"
        )
    return ok("your key", f"{compute_key_fingerprint(public)} in {folder}")


def _trust_store(context: Context) -> Iterator[Finding]:
    from rye.trust.store import TrustStore

    store = TrustStore(context)
    entries = store.entries()
    faults = [*store.problems(), *(entry.problem for entry in entries if entry.problem)]
    for fault in dict.fromkeys(faults):
        yield problem("trust store", fault)
    revoked = next((one for one in entries if one.own and one.revoked is not None), None)
    if revoked is not None:
        yield problem(
            "your key",
            f"{revoked.fingerprint} is revoked by {revoked.revoked}",
            "replace it with: rye key rotate",
        )
    for entry in entries:
        decided = entry.revoked is not None or store.removed_on(entry.fingerprint)
        if not entry.problem and not entry.trusted and not decided:
            yield warning(
                "trust store",
                f"this project lists key {entry.fingerprint} as {entry.owner!r}; "
                "you have not approved it",
                f"if you know that the key is theirs, run: rye trust add {entry.fingerprint}",
            )
    if not faults:
        count = len({entry.fingerprint for entry in entries if entry.trusted})
        yield ok("trust store", f"{count} trusted {'key' if count == 1 else 'keys'}")


def _approval(context: Context) -> Iterator[Finding]:
    from rye.trust.project_approval import ProjectApproval, hint_for, unsigned_parts

    parts = unsigned_parts(context)
    if parts.is_empty:
        return
    if reason := ProjectApproval(context).why_not(parts):
        yield warning("project", reason, hint_for(reason))
    else:
        yield ok("project", "you have approved its unsigned parts")


# Items


def check_items(context: Context) -> Iterator[Finding]:
    """Check bundles, ids, metadata, and names that collide over MCP."""
    from rye.catalogue.catalogue import Catalogue

    resolver = Resolver(context)
    found = [
        problem("bundle", str(fault), "uninstall the package, or install a working version")
        for fault in resolver.bundle_faults
    ]
    found += [problem("item id", str(error)) for error in resolver.conflicts()]
    entries = Catalogue(context).entries()
    found += [problem(f"item {entry.item_id}", entry.fault) for entry in entries if entry.fault]
    found += _mcp_name_collisions(entries)
    yield from found
    if not found:
        yield ok("items", f"all {len(entries)} are readable")


def _mcp_name_collisions(entries: Sequence[CatalogueEntry]) -> list[Finding]:
    from rye.catalogue.definitions import collisions, mcp_name

    return [
        problem(
            "MCP name",
            f"{' and '.join(ids)} have the same MCP name {mcp_name(ids[0])!r}",
            "rename all but one of them",
        )
        for ids in collisions(entries)
    ]
