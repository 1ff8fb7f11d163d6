"""Names that are almost one that is known: a misspelt schema would be no schema at all."""

from __future__ import annotations

from collections.abc import Iterable


def bare(name: str) -> str:
    """The name without what spellings differ in: case, underscores and hyphens."""
    return name.replace("_", "").replace("-", "").casefold()


def meant(name: str, known: Iterable[str]) -> str | None:
    """The known name that ``name`` misspells by one letter, or spells in another style."""
    plain = bare(name)
    for candidate in known:
        other = bare(candidate)
        if abs(len(other) - len(plain)) <= 1 and _one_slip(plain, other):
            return candidate
    return None


def _one_slip(left: str, right: str) -> bool:
    """Equal, or one letter too many, too few, wrong, or two neighbours swapped."""
    if left == right:
        return True
    if len(left) > len(right):
        left, right = right, left
    start = 0
    while start < len(left) and left[start] == right[start]:
        start += 1
    if len(left) < len(right):
        return left[start:] == right[start + 1 :]
    rest_left, rest_right = left[start:], right[start:]
    swapped = rest_left[:2] == rest_right[1::-1] and rest_left[2:] == rest_right[2:]
    return swapped or rest_left[1:] == rest_right[1:]
