"""Guess which known name was meant by an unknown one, for "did you mean" messages."""

from __future__ import annotations

from collections.abc import Iterable

# The similarity of two names takes quadratic time, so only the most promising ones are compared.
_MAX_COMPARED = 200


def fold(name: str) -> str:
    """The name without differences of style: case, underscores and hyphens."""
    return name.replace("_", "").replace("-", "").casefold()


def one_typo_away(name: str, known: Iterable[str]) -> str | None:
    """The known name that ``name`` spells with one wrong letter, or in another style."""
    folded = fold(name)
    for candidate in known:
        other = fold(candidate)
        if abs(len(other) - len(folded)) <= 1 and _one_typo(folded, other):
            return candidate
    return None


def closest(name: str, known: Iterable[str], *, limit: int = 1, cutoff: float = 0.6) -> list[str]:
    """At most ``limit`` known names that are similar to ``name``, the most similar first.

    ``cutoff`` is the least similarity, between 0 and 1.
    """
    from difflib import get_close_matches

    pairs = _pairs(name)
    candidates = sorted(set(known), key=lambda each: (-len(pairs & _pairs(each)), each))
    return get_close_matches(name, candidates[:_MAX_COMPARED], n=limit, cutoff=cutoff)


def closest_ids(item_id: str, known: Iterable[str], *, limit: int = 3) -> list[str]:
    """Like :func:`closest`, for ids: those with the same or a similar last part are close too."""
    stem = _stem(item_id)
    ids = sorted(set(known))
    same_stem = [each for each in ids if _stem(each) == stem]
    similar_stems = set(closest(stem, map(_stem, ids), limit=limit, cutoff=0.75))
    found = [
        *same_stem,
        *closest(item_id, ids, limit=limit),
        *[each for each in ids if _stem(each) in similar_stems],
    ]
    return list(dict.fromkeys(found))[:limit]


def _one_typo(left: str, right: str) -> bool:
    """True if equal, or if one letter is extra, missing or wrong, or two neighbours are swapped."""
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


def _stem(item_id: str) -> str:
    return item_id.rpartition("/")[2]


def _pairs(text: str) -> set[str]:
    return {text[index : index + 2] for index in range(len(text) - 1)}
