"""Verifying receipts: the signature, whose it is, the closure, and the order of a log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lilux.primitives.signing import compute_key_fingerprint

from rye.context import Context
from rye.errors import ReceiptError, RyeError
from rye.history.envelope import MAX_BYTES, USE_AS_PRINTED, Envelope, opened
from rye.trust.store import TrustStore

LOCK = "lock"
"""``--closure lock`` asks for the closure that the lockfile of this project pins."""


class Keys:
    """The keys that may have signed: one that the user names, or those that the user trusts."""

    def __init__(self, context: Context, named: bytes | None = None) -> None:
        self._store = TrustStore(context)
        self._named = named
        self._named_fingerprint = "" if named is None else compute_key_fingerprint(named)

    def check(self, receipt: Envelope) -> str:
        """Return whose key signed the receipt. Raises :class:`ReceiptError`."""
        fingerprint = receipt.fingerprint
        revocation = self._store.revocation_of(fingerprint)
        if revocation is not None:
            raise ReceiptError(
                f"the key {fingerprint} was revoked{revocation.words}",
                hint=f"see {revocation.path}",
            )
        if self._named is not None:
            if fingerprint != self._named_fingerprint:
                raise ReceiptError(
                    f"the receipt names the key {fingerprint}, not {self._named_fingerprint}",
                    hint="verify it with the key of whoever made it",
                )
            key, owner = self._named, "the key that you gave"
        else:
            entry = self._store.find(fingerprint)
            if entry is None or not entry.is_trusted_in(()):
                raise ReceiptError(
                    f"the receipt is signed by key {fingerprint}, which you do not trust",
                    hint="get the key from its owner, and pass it with --key, or: rye trust add",
                )
            key = entry.public_key
            owner = "your own key" if entry.own else f"{entry.owner or 'no name'}, trusted by you"
        if not receipt.is_signed_by(key):
            raise ReceiptError(
                f"the signature was not made by key {fingerprint}",
                hint="the receipt was changed or forged; ask for it again",
            )
        return owner


class Verified(NamedTuple):
    """One receipt that is valid."""

    receipt: Envelope
    owner: str
    remark: str
    """How its closure relates to the lockfile of this project."""


def verify_receipt(line: str, keys: Keys, context: Context, closure: str = "") -> Verified:
    """Verify one receipt; ``closure`` is the digest that it must have, or :data:`LOCK`.

    Raises :class:`ReceiptError`.
    """
    if len(line) > MAX_BYTES:
        raise ReceiptError(f"a receipt has at most {MAX_BYTES} bytes", hint=USE_AS_PRINTED)
    receipt = opened(line)
    owner = keys.check(receipt)
    return Verified(receipt, owner, _check_closure(receipt, context, closure))


def _check_closure(receipt: Envelope, context: Context, wanted: str) -> str:
    predicate = receipt.predicate
    item, ran = predicate["item"], predicate.get("closure")
    pinned = _pinned(item, context)
    if wanted == LOCK:
        if not pinned:
            raise ReceiptError(f"this project does not pin {item!r}", hint="pin it with: rye lock")
        wanted = pinned
    if wanted and ran != wanted:
        raise ReceiptError(
            f"the receipt is about closure {ran or 'none'}, not {wanted}",
            hint="ask for the receipt of another run",
        )
    if not ran:
        return "nothing ran"
    if not pinned:
        return "this project does not pin the tool"
    if pinned == ran:
        return "the one that this project pins"
    return f"this project has pinned another one since, {pinned}"


def _pinned(item: str, context: Context) -> str:
    from rye.executor.locks.file import LockfileResolver

    try:
        stored = LockfileResolver(context).find(item)
    except RyeError:
        return ""
    return "" if stored is None else str(stored.lockfile.extra.get("closure") or "")


# Logs


class LogFault(NamedTuple):
    """What is wrong with a log, and where."""

    line: int
    reason: str


class LogReport(NamedTuple):
    """The result of verifying a log."""

    entries: int
    valid: int
    faults: tuple[LogFault, ...]
    first: int
    """The position of the first entry; entries before it are not in the file."""
    keys: tuple[str, ...]


def verify_log(lines: Sequence[str], keys: Keys, context: Context, closure: str = "") -> LogReport:
    """Verify every entry, and that none is missing, altered or out of order.

    With ``closure``, every entry must be about that one, as in :func:`verify_receipt`.
    """
    faults: list[LogFault] = []
    entries: list[tuple[int, Envelope]] = []
    signers: dict[str, None] = {}
    for number, line in enumerate(lines, start=1):
        try:
            receipt = opened(line)
            keys.check(receipt)
        except ReceiptError as error:
            faults.append(LogFault(number, f"altered or not valid: {error.reason}"))
            continue
        signers[receipt.fingerprint] = None
        entries.append((number, receipt))
    broken = {fault.line for fault in faults}
    if closure:
        faults += _closure_faults(entries, context, closure)
    faults += _order_faults(entries, broken)
    first = min([_position(one) for _, one in entries], default=1)
    return LogReport(
        entries=len(lines),
        valid=len(entries),
        faults=tuple(sorted(faults)),
        first=first,
        keys=tuple(signers),
    )


def _closure_faults(
    entries: Sequence[tuple[int, Envelope]], context: Context, closure: str
) -> Iterator[LogFault]:
    for number, receipt in entries:
        try:
            _check_closure(receipt, context, closure)
        except ReceiptError as error:
            yield LogFault(number, error.reason)


def _order_faults(entries: Sequence[tuple[int, Envelope]], broken: set[int]) -> Iterator[LogFault]:
    seen: set[int] = set()
    highest, before = 0, None
    for number, receipt in entries:
        position = _position(receipt)
        if position in seen:
            yield LogFault(number, f"entry {position} is there twice")
        elif highest and position < highest:
            yield LogFault(number, f"reordered: entry {position} comes after entry {highest}")
        elif before is not None:
            missing = position - highest - 1 - _between(broken, before[0], number)
            if missing > 0:
                yield LogFault(number, f"missing: {_entries(highest + 1, position - 1)}")
            elif position == highest + 1 and _previous(receipt) != before[1].digest:
                yield LogFault(number, f"entry {position} does not follow entry {highest}")
        seen.add(position)
        if position >= highest:
            highest, before = position, (number, receipt)


def _between(lines: set[int], start: int, end: int) -> int:
    return len([line for line in lines if start < line < end])


def _entries(first: int, last: int) -> str:
    return f"entry {first}" if first == last else f"entries {first} to {last}"


def _position(receipt: Envelope) -> int:
    position: int = receipt.predicate["log"]["position"]
    return position


def _previous(receipt: Envelope) -> str | None:
    previous: str | None = receipt.predicate["log"]["previous"]
    return previous
