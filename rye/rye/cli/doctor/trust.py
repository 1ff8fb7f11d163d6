"""The user's key and the trust store."""

from __future__ import annotations

from collections.abc import Iterator

from lilux.primitives.errors import KeyFileError

from rye.cli.doctor.finding import Finding, ok, problem, warning
from rye.cli.new.tool import key_folder
from rye.context import Context


def trust_findings(context: Context) -> Iterator[Finding]:
    """Whether one can sign, and every entry that cannot be used."""
    yield _key(context)
    yield from _store(context)


def _key(context: Context) -> Finding:
    from lilux.primitives.signing import (
        PRIVATE_KEY_FILE,
        PUBLIC_KEY_FILE,
        compute_key_fingerprint,
        load_keypair,
    )

    folder = key_folder(context)
    try:
        if not any((folder / name).exists() for name in (PRIVATE_KEY_FILE, PUBLIC_KEY_FILE)):
            return warning("your key", f"none in {folder}", "make one with: rye init")
        _, public = load_keypair(folder)
    except KeyFileError as error:
        return problem("your key", str(error))
    except OSError as error:
        return problem(
            "your key", f"{folder}: {(error.strerror or '').lower()}", "make it readable"
        )
    return ok("your key", f"{compute_key_fingerprint(public)} in {folder}")


def _store(context: Context) -> Iterator[Finding]:
    from rye.trust.store import TrustStore

    store = TrustStore(context)
    entries = store.entries()
    faults = [*store.problems(), *(entry.problem for entry in entries if entry.problem)]
    for fault in dict.fromkeys(faults):
        yield problem("trust store", fault)
    for entry in entries:
        if not entry.problem and not entry.trusted:
            yield warning(
                "trust store",
                f"the project brings key {entry.fingerprint} of {entry.owner!r}, not approved",
                f"if you know that it is theirs: rye trust add {entry.fingerprint}",
            )
    if not faults:
        count = sum(entry.trusted for entry in entries)
        yield ok("trust store", f"{count} {'key counts' if count == 1 else 'keys count'}")
