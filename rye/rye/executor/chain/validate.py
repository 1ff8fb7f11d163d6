"""Check that the elements of a chain fit together: spaces, I/O types, version constraints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from lilux.record import Record

from rye.errors import ChainValidationError
from rye.executor.caches import BoundedDict
from rye.items.element import ANY_CHILD, ChainElement
from rye.spaces.model import PRECEDENCE


class ChainValidationResult(Record, frozen=True, kw_only=True):
    """Every issue that was found, in the order of the chain."""

    issues: tuple[str, ...] = ()

    @property
    def valid(self) -> bool:
        """True if there is no issue."""
        return not self.issues


class ChainValidator:
    """Checks every adjacent pair; the child is the element that names the parent as executor."""

    def __init__(self) -> None:
        self._valid: dict[str, Sequence[ChainElement]] = BoundedDict()

    def validate_chain(self, chain: Sequence[ChainElement]) -> ChainValidationResult:
        """Return all issues at once: spaces, I/O types and version constraints."""
        found = [issue for pair in pairwise(chain) for issue in _issues(*pair)]
        return ChainValidationResult(issues=tuple(found))

    def require_valid(self, chain: Sequence[ChainElement]) -> None:
        """Raise ``ChainValidationError`` with every issue, if there is any.

        The same chain object is checked only once.
        """
        if self._valid.get(chain[0].item_id) is chain:
            return
        result = self.validate_chain(chain)
        if not result.valid:
            raise ChainValidationError(
                f"the chain of {chain[0].item_id!r} does not fit together",
                result.issues,
                hint=f"correct {' or '.join(_offending_files(chain)) or 'the elements'}",
            )
        self._valid[chain[0].item_id] = chain


def _issues(child: ChainElement, parent: ChainElement) -> Iterator[str]:
    yield from _space_issues(child, parent)
    yield from _io_issues(child, parent)
    yield from _version_issues(child, parent)


def _offending_files(chain: Sequence[ChainElement]) -> list[str]:
    pairs = [pair for pair in pairwise(chain) if any(_issues(*pair))]
    return list(dict.fromkeys(str(one.path) for pair in pairs for one in pair if one.path))


def _space_issues(child: ChainElement, parent: ChainElement) -> Iterator[str]:
    if PRECEDENCE[child.space] >= PRECEDENCE[parent.space]:
        return
    if child.space == "system":
        yield (
            f"{child.item_id!r} of the system space delegates to {parent.item_id!r} of the "
            f"{parent.space} space, which can be changed"
        )
    else:
        yield (
            f"{child.item_id!r} of the {child.space} space depends on {parent.item_id!r} of "
            f"the {parent.space} space, which other projects do not have"
        )


def _io_issues(child: ChainElement, parent: ChainElement) -> Iterator[str]:
    outputs, inputs = child.metadata.outputs, parent.metadata.inputs
    if outputs is None or inputs is None:
        return
    missing = sorted(set(inputs) - set(outputs))
    if missing:
        yield (
            f"{parent.item_id!r} requires the inputs {', '.join(missing)}, which "
            f"{child.item_id!r} does not output"
        )


def _version_issues(child: ChainElement, parent: ChainElement) -> Iterator[str]:
    names = (ANY_CHILD, child.item_id, child.item_id.rpartition("/")[2])
    for item_id, limits in parent.metadata.child_constraints.items():
        if item_id in names:
            yield from _limit_issues(child, parent, limits)


def _limit_issues(
    child: ChainElement, parent: ChainElement, limits: Mapping[str, str]
) -> Iterator[str]:
    from packaging.version import InvalidVersion, Version

    try:
        version = Version(child.version)
    except InvalidVersion:
        yield (
            f"{child.item_id!r} has the version {child.version!r}, which cannot be compared with "
            f"the constraints of {parent.item_id!r}"
        )
        return
    for name, limit in limits.items():
        try:
            bound = Version(limit)
        except InvalidVersion:
            yield f"{name} {limit!r} in the constraints of {parent.item_id!r} is not a version"
            continue
        if name == "min_version" and version < bound:
            yield f"{parent.item_id!r} requires {child.item_id!r} {limit} or later, not {version}"
        elif name == "max_version" and version > bound:
            yield f"{parent.item_id!r} requires {child.item_id!r} {limit} or earlier, not {version}"
