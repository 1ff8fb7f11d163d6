"""All texts of an index, field by field, searched at the speed of ``in``."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import compress

from rye.catalogue.index import Index
from rye.catalogue.words import Texts

_Worths = tuple[float, float, float]

# What a whole word, the beginning of one and a part of one are worth in each field.
_WORTH: dict[str, _Worths] = {
    "stem": (12.0, 7.0, 4.0),
    "folders": (7.0, 4.0, 1.5),
    "description": (4.0, 2.5, 0.5),
    "parameters": (3.0, 2.0, 0.5),
    "details": (1.5, 1.0, 0.25),
}
_LEAST_PART = 3  # shorter parts of words stand everywhere
_LEAST_MISSPELT = 4
# `reading files` means `read file`; each also fits the other way round.
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
        """The rows of the index where the word stands, and what that is worth."""
        found: dict[int, float] = {}
        base = _base(word)
        for name, worths in _WORTH.items():
            _add(found, base, self._fields[name], worths)
        shown = self._shown
        return {row: worth for row, worth in found.items() if shown[row]}

    def named(self, words: str) -> list[int]:
        """The rows whose id ends in just these words."""
        return [row for row, text in enumerate(self._fields["stem"]) if text == words]

    def nearest(self, word: str, *, thorough: bool) -> str | None:
        """The word that ``word`` may be a misspelling of.

        Looked for among the names of items and parameters, and if ``thorough`` in descriptions.
        """
        if len(word) < _LEAST_MISSPELT or not word.isalpha():
            return None
        places = [("stem", "folders", "parameters"), ("description", "details")]
        for names in places if thorough else places[:1]:
            # Many items share their folder and the names of their parameters.
            texts = set().union(*[compress(self._fields[name], self._shown) for name in names])
            meant = _nearest(word, set("".join(texts).split()))
            if meant is not None:
                return meant
        return None


def _add(found: dict[int, float], base: str, texts: list[str], worths: _Worths) -> None:
    """Add what the word is worth to each row in whose text it stands."""
    start = f" {base}"
    whole = f"{start} "
    also_whole = [f"{start}{ending} " for ending in _ALSO_WHOLE]
    wanted = base if len(base) >= _LEAST_PART else start
    as_whole, as_beginning, as_part = worths
    for row in [row for row, text in enumerate(texts) if wanted in text]:
        text = texts[row]
        if whole in text:
            worth = as_whole
        elif start not in text:
            worth = as_part
        else:
            worth = as_whole if any(each in text for each in also_whole) else as_beginning
        found[row] = found.get(row, 0.0) + worth


def _base(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _LEAST_PART:
            return word.removesuffix(ending)
    return word


def _nearest(word: str, known: Iterable[str]) -> str | None:
    from rye.suggestions import closest, one_typo_away

    size = len(word)
    near = sorted([each for each in known if -2 <= len(each) - size <= 2 and each.isalpha()])
    likely = [each for each in near if each[0] == word[0] or each[-1] == word[-1]]
    return one_typo_away(word, likely) or next(iter(closest(word, near, cutoff=0.75)), None)
