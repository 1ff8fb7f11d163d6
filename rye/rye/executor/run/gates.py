"""What a call passes before its parameters are looked at, for those who only want to know."""

from __future__ import annotations

from collections.abc import Container

from rye.context import Context
from rye.executor.chain.anchor import resolve_anchor
from rye.executor.chain.build import Chain, build_chain
from rye.executor.chain.dependencies import verify_dependencies
from rye.executor.chain.snapshot import Snapshot
from rye.executor.chain.validate import ChainValidator
from rye.executor.locks.file import StoredLock
from rye.executor.locks.guard import LockGuard


def pass_gates(
    item_id: str,
    snapshot: Snapshot,
    context: Context,
    primitives: Container[str],
    *,
    guard: LockGuard,
    use_lock: bool = True,
) -> tuple[StoredLock | None, Chain, dict[str, str]]:
    """The lock if there is one, the verified chain, and the hashes of its dependencies.

    Raises what a call would. Without ``use_lock`` the lockfile is not looked at.
    """
    lock = guard.verify(snapshot.resolve(item_id), snapshot, frozen=False) if use_lock else None
    chain = build_chain(item_id, snapshot, primitives)
    if lock is not None:
        guard.confirm_chain(lock, chain)
    ChainValidator().require_valid(chain)
    dependencies = _to_the_end(chain, context, snapshot)
    if lock is not None:
        guard.confirm_dependencies(lock, dependencies)
    return lock, chain, dependencies


def _to_the_end(chain: Chain, context: Context, snapshot: Snapshot) -> dict[str, str]:
    steps = verify_dependencies(chain, resolve_anchor(chain, context), snapshot.vouch)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: dict[str, str] = end.value
            return found
