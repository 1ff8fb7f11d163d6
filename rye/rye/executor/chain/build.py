"""From an id to a chain ``[tool, runtime, …, primitive]`` of verified elements."""

from __future__ import annotations

from collections.abc import Container, Iterable

from lilux.sha256 import sha256

from rye.errors import (
    AmbiguousIdError,
    ChainCycleError,
    ChainDepthError,
    ItemNotFoundError,
    MissingExecutorError,
    RyeError,
    UnknownPrimitiveError,
)
from rye.executor.caches import CacheEntry
from rye.executor.chain.snapshot import Snapshot
from rye.items.element import ChainElement
from rye.spaces.model import Resolution

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_CHAIN_DEPTH = 10

Chain = tuple[ChainElement, ...]


def build_chain(item_id: str, snapshot: Snapshot, primitives: Container[str]) -> Chain:
    """Follow the executor ids from ``item_id`` to a primitive.

    Every element's signature is verified before its metadata is read. Raises
    ``ItemNotFoundError`` for ``item_id`` itself, a ``ChainError`` (a ``ValueError``) for what is
    wrong further down, and whatever an element's file deserves.
    """
    chain: list[ChainElement] = []
    current: str | None = item_id
    while current is not None:
        resolution = _resolve_next(current, chain, snapshot)
        _refuse_cycle(resolution, chain)
        if len(chain) == MAX_CHAIN_DEPTH:
            raise ChainDepthError(
                f"the chain of {_whose(chain[0])} has more than {MAX_CHAIN_DEPTH} elements "
                f"({_arrows(element.item_id for element in chain)} → {resolution.item_id})",
                hint="let one of them name an executor that is nearer to a primitive",
            )
        element = snapshot.element(resolution)
        chain.append(element)
        current = element.executor_id
    _refuse_unknown_primitive(chain[-1], primitives)
    return tuple(chain)


def remembered(chain: Chain, snapshot: Snapshot) -> CacheEntry[Chain]:
    """The entry of the cache for a chain that this call has built; for :func:`is_current`."""
    resolutions = [element.resolution for element in chain]
    files = snapshot.files(resolutions)
    return CacheEntry(
        data=chain,
        content_hash=sha256("\n".join(file.digest for file in files).encode()).hexdigest(),
        trust_stamp=snapshot.trust_stamp,
        files=files,
        watch=snapshot.resolver.watch(resolutions),
    )


def is_current(entry: CacheEntry[Chain], item_id: str, snapshot: Snapshot) -> bool:
    """Whether building the chain anew would give the same.

    That takes the same trust store, ids that still lead to the same places (a file that appeared
    in a higher space would shadow an element), and the same hash of every file, read once more.
    """
    return (
        entry.trust_stamp == snapshot.trust_stamp
        and _leads_to_the_same(entry, item_id, snapshot)
        and snapshot.reads_again(entry.files)
    )


def _leads_to_the_same(entry: CacheEntry[Chain], item_id: str, snapshot: Snapshot) -> bool:
    if entry.watch is not None and entry.watch.is_unchanged():
        return True
    asked, from_space = item_id, None
    for element in entry.data:
        try:
            resolution = snapshot.resolve(asked, from_space)
        except RyeError:
            return False
        if resolution is not element.resolution and resolution != element.resolution:
            return False
        asked, from_space = element.executor_id or "", element.space
    return True


def describe_chain(chain: Iterable[ChainElement]) -> tuple[dict[str, Any], ...]:
    """The elements as an ``ExecutionResult`` lists them."""
    return tuple(
        {
            "item_id": element.item_id,
            "space": element.space.name,
            "path": None if element.path is None else str(element.path),
            "version": element.version,
            "executor_id": element.executor_id,
            "integrity": element.integrity,
            "signer": element.signer,
        }
        for element in chain
    )


def _resolve_next(item_id: str, chain: list[ChainElement], snapshot: Snapshot) -> Resolution:
    if not chain:
        return snapshot.resolve(item_id)
    child = chain[-1]
    try:
        return snapshot.resolve(item_id, child.space)
    except AmbiguousIdError as error:
        message = str(error).removesuffix(f"; {error.hint}")
        raise AmbiguousIdError(f"{_whose(child)}: {message}", hint=error.hint) from error
    except ItemNotFoundError as error:
        raise _missing_executor(item_id, child, snapshot, error) from error


def _missing_executor(
    item_id: str, child: ChainElement, snapshot: Snapshot, error: ItemNotFoundError
) -> MissingExecutorError:
    message = f"executor {item_id!r} not found in accessible spaces for {_whose(child)}"
    try:
        elsewhere = snapshot.resolve(item_id)
    except RyeError:
        near = f"did you mean {error.nearest[0]!r}? " if error.nearest else ""
        return MissingExecutorError(message, hint=f"{near}create it, or correct the executor id")
    return MissingExecutorError(
        f"{message}; {elsewhere.path} has that id, but the {child.space.name} space cannot depend "
        f"on the {elsewhere.space.name} space",
        hint=f"copy it to the {child.space.name} space, or move the tool to the "
        f"{elsewhere.space.name} space",
    )


def _refuse_cycle(resolution: Resolution, chain: list[ChainElement]) -> None:
    ids = [element.item_id for element in chain]
    if resolution.item_id not in ids:
        return
    loop = [*ids[ids.index(resolution.item_id) :], resolution.item_id]
    raise ChainCycleError(
        f"the chain of {ids[0]!r} goes in a circle ({_arrows(loop)})",
        hint=f"correct the executor id of {_whose(chain[-1])}",
    )


def _refuse_unknown_primitive(last: ChainElement, primitives: Container[str]) -> None:
    if last.item_id not in primitives:
        raise UnknownPrimitiveError(
            f"{_whose(last)} has no executor, but no primitive of that id is installed",
            hint="give it the id of its runtime or primitive as executor id",
        )


def _whose(element: ChainElement) -> str:
    return f"{element.item_id!r} ({element.path})" if element.path else repr(element.item_id)


def _arrows(ids: Iterable[str]) -> str:
    return " → ".join(ids)
