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
from rye.executor.caches import BoundedDict
from rye.executor.chain.snapshot import CacheEntry, Snapshot
from rye.items.element import ChainElement
from rye.spaces.model import Resolution

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_CHAIN_DEPTH = 10

Chain = tuple[ChainElement, ...]


class ChainBuilder:
    """Builds chains, and returns the same chain again while building it would not change it."""

    def __init__(self, primitives: Container[str]) -> None:
        self.cache: dict[str, CacheEntry[Chain]] = BoundedDict()
        self._primitives = primitives

    def build(self, item_id: str, snapshot: Snapshot) -> Chain:
        """Like :func:`build_chain`, from the cache if it is current."""
        known = self.known(item_id, snapshot)
        if known is not None:
            return known
        chain = build_chain(item_id, snapshot, self._primitives)
        self.cache[item_id] = _cache_entry(chain, snapshot)
        return chain

    def known(self, item_id: str, snapshot: Snapshot) -> Chain | None:
        """The chain of the cache, if it is current; an outdated one is dropped."""
        entry = self.cache.get(item_id) if type(item_id) is str else None
        if entry is None:
            return None
        if not _is_current(entry, item_id, snapshot):
            del self.cache[item_id]
            return None
        if entry.watch is None:
            self.cache[item_id] = _cache_entry(entry.data, snapshot)
        return entry.data


def build_chain(item_id: str, snapshot: Snapshot, primitives: Container[str]) -> Chain:
    """Follow the executor ids from ``item_id`` to a primitive.

    Every element's signature is verified before its metadata is read. Raises
    ``ItemNotFoundError`` for ``item_id`` itself, a ``ChainError`` (a ``ValueError``) for a missing
    or unusable executor, and the errors of reading and verifying a file.
    """
    chain: list[ChainElement] = []
    current: str | None = item_id
    while current is not None:
        resolution = _resolve_next(current, chain, snapshot)
        _refuse_cycle(resolution, chain)
        if len(chain) == MAX_CHAIN_DEPTH:
            raise ChainDepthError(
                f"the chain of {_name(chain[0])} has more than {MAX_CHAIN_DEPTH} elements "
                f"({_arrows(element.item_id for element in chain)} → {resolution.item_id})",
                hint="let one of them name an executor that is nearer to a primitive",
            )
        element = snapshot.element(resolution)
        if chain and "/" not in current:
            _refuse_other_than_executor(current, element, chain[-1])
        chain.append(element)
        current = element.executor_id
    _refuse_unknown_primitive(chain[-1], primitives)
    return tuple(chain)


def describe_chain(chain: Iterable[ChainElement]) -> tuple[dict[str, Any], ...]:
    """The elements as an ``ExecutionResult`` lists them."""
    return tuple(
        {
            "item_id": element.item_id,
            "space": element.space,
            "path": None if element.path is None else str(element.path),
            "version": element.version,
            "executor_id": element.executor_id,
            "integrity": element.integrity,
            "signer": element.signer,
        }
        for element in chain
    )


def _cache_entry(chain: Chain, snapshot: Snapshot) -> CacheEntry[Chain]:
    resolutions = [element.resolution for element in chain]
    files = snapshot.files(resolutions)
    return CacheEntry(
        data=chain,
        content_hash=sha256("\n".join(file.digest for file in files).encode()).hexdigest(),
        trust_stamp=snapshot.trust_stamp,
        files=files,
        watch=snapshot.resolver.watch(resolutions),
    )


def _is_current(entry: CacheEntry[Chain], item_id: str, snapshot: Snapshot) -> bool:
    """True if building the chain again would give the same chain.

    That takes the same trust store, ids that still resolve to the same files (a file that appeared
    in a higher space would shadow an element), and the same hash of every file, read again.
    """
    return (
        entry.trust_stamp == snapshot.trust_stamp
        and _resolves_to_the_same(entry, item_id, snapshot)
        and snapshot.reads_again(entry.files)
    )


def _resolves_to_the_same(entry: CacheEntry[Chain], item_id: str, snapshot: Snapshot) -> bool:
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
        asked, from_space = element.executor_id or "", element.resolution.space
    return True


def _resolve_next(item_id: str, chain: list[ChainElement], snapshot: Snapshot) -> Resolution:
    if not chain:
        return snapshot.resolve(item_id)
    child = chain[-1]
    try:
        return snapshot.resolve(item_id, child.resolution.space)
    except AmbiguousIdError as error:
        raise AmbiguousIdError(f"{_name(child)}: {error.reason}", hint=error.hint) from error
    except ItemNotFoundError as error:
        raise _missing_executor(item_id, child, snapshot, error) from error


def _missing_executor(
    item_id: str, child: ChainElement, snapshot: Snapshot, error: ItemNotFoundError
) -> MissingExecutorError:
    message = f"executor {item_id!r} not found in accessible spaces for {_name(child)}"
    try:
        elsewhere = snapshot.resolve(item_id)
    except RyeError:
        near = f"did you mean {error.nearest[0]!r}? " if error.nearest else ""
        return MissingExecutorError(message, hint=f"{near}create it, or correct the executor id")
    return MissingExecutorError(
        f"{message}; {elsewhere.path} has that id, but the {child.space} space cannot depend "
        f"on the {elsewhere.space.name} space",
        hint=f"copy it to the {child.space} space, or move the tool to the "
        f"{elsewhere.space.name} space",
    )


def _refuse_cycle(resolution: Resolution, chain: list[ChainElement]) -> None:
    ids = [element.item_id for element in chain]
    if resolution.item_id not in ids:
        return
    loop = [*ids[ids.index(resolution.item_id) :], resolution.item_id]
    raise ChainCycleError(
        f"the chain of {ids[0]!r} is circular ({_arrows(loop)})",
        hint=f"correct the executor id of {_name(chain[-1])}",
    )


def _refuse_other_than_executor(short_id: str, element: ChainElement, child: ChainElement) -> None:
    """A file with the right name anywhere in a space must not become an executor by accident."""
    kind = element.metadata.tool_type
    if kind not in ("runtime", "primitive"):
        raise MissingExecutorError(
            f"the short executor id {short_id!r} of {_name(child)} leads to {_name(element)}, "
            f"which is not a runtime or a primitive (its tool_type is {kind!r})",
            hint="write the full id of the executor, or declare tool_type: runtime in that file",
        )


def _refuse_unknown_primitive(last: ChainElement, primitives: Container[str]) -> None:
    if last.item_id not in primitives:
        raise UnknownPrimitiveError(
            f"{_name(last)} has no executor, and no primitive with that id is installed",
            hint="set its executor id to a runtime or a primitive",
        )


def _name(element: ChainElement) -> str:
    return f"{element.item_id!r} ({element.path})" if element.path else repr(element.item_id)


def _arrows(ids: Iterable[str]) -> str:
    return " → ".join(ids)
