"""The search texts of an index by field, searched with plain substring tests for speed."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import compress

from rye.catalogue.index import Index
from rye.catalogue.words import Texts

_Weights = tuple[float, float, float]

# The weights of a whole word, the beginning of a word and a part of a word in each field.
_WEIGHTS: dict[str, _Weights] = {
    "stem": (12.0, 7.0, 4.0),
    "folders": (7.0, 4.0, 1.5),
    "description": (4.0, 2.5, 0.5),
    "parameters": (3.0, 2.0, 0.5),
    "details": (1.5, 1.0, 0.25),
}
_MIN_PART = 3  # shorter parts of words are found everywhere
_MIN_MISSPELT = 4
# `reading files` matches `read file`, and the other way round.
_ENDINGS = ("ing", "es", "ed", "s")
_ALSO_WHOLE = ("s", "ing", "ed", "es", "er", "e", "d")


class Corpus:
    """The texts of all tools, or of all items that are not hidden."""

    def __init__(self, index: Index, *, everything: bool) -> None:
        self._fields = dict(zip(Texts._fields, index.columns(), strict=True))
        self._shown = [
            not hidden and (everything or summary.is_tool) for summary, hidden, _ in index.rows
        ]
        self.size = sum(self._shown)

    def find(self, word: str) -> dict[int, float]:
        """Return the rows of the index that contain the word, with their weights."""
        found: dict[int, float] = {}
        base = _base(word)
        for name, weights in _WEIGHTS.items():
            _add(found, base, self._fields[name], weights)
        shown = self._shown
        return {row: weight for row, weight in found.items() if shown[row]}

    def named(self, words: str) -> list[int]:
        """Return the rows whose last part of the id consists of exactly these words."""
        return [row for row, text in enumerate(self._fields["stem"]) if text == words]

    def nearest(self, word: str, *, thorough: bool) -> str | None:
        """Return the known word that ``word`` is probably a misspelling of.

        Looks in the names of items and parameters; if ``thorough``, then also in descriptions.
        """
        if len(word) < _MIN_MISSPELT or not word.isalpha():
            return None
        groups = [("stem", "folders", "parameters"), ("description", "details")]
        for names in groups if thorough else groups[:1]:
            # A set, since many items share folders and parameter names.
            texts = set().union(*[compress(self._fields[name], self._shown) for name in names])
            meant = _nearest(word, set("".join(texts).split()))
            if meant is not None:
                return meant
        return None


def _add(found: dict[int, float], base: str, texts: list[str], weights: _Weights) -> None:
    """Add the weight of the word to each row whose text contains it."""
    start = f" {base}"
    whole = f"{start} "
    also_whole = [f"{start}{ending} " for ending in _ALSO_WHOLE]
    wanted = base if len(base) >= _MIN_PART else start
    whole_weight, beginning_weight, part_weight = weights
    for row in [row for row, text in enumerate(texts) if wanted in text]:
        text = texts[row]
        if whole in text:
            weight = whole_weight
        elif start not in text:
            weight = part_weight
        else:
            weight = whole_weight if any(each in text for each in also_whole) else beginning_weight
        found[row] = found.get(row, 0.0) + weight


def _base(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_PART:
            return word.removesuffix(ending)
    return word


def _nearest(word: str, known: Iterable[str]) -> str | None:
    from rye.suggestions import closest, one_typo_away

    size = len(word)
    near = sorted([each for each in known if -2 <= len(each) - size <= 2 and each.isalpha()])
    likely = [each for each in near if each[0] == word[0] or each[-1] == word[-1]]
    return one_typo_away(word, likely) or next(iter(closest(word, near, cutoff=0.75)), None)
