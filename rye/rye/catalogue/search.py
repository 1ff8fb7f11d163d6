"""Ranking items for a query.

The weight of a word depends on where it is found (id over description over parameters), on how
much of it matches (a whole word over the beginning over a part) and on how rare it is. Items that
contain all words come first, then those that lack one, and so on. A word that is not found is
replaced with the most similar known word. The order is deterministic.

An unrelated item is worse than none: a part of a word counts only in an id, and a word of a
description is taken for a misspelt one only if one letter differs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from heapq import nsmallest
from itertools import compress
from typing import NamedTuple

from rye.catalogue.entry import CatalogueEntry
from rye.catalogue.index import Index
from rye.catalogue.words import Texts, spaced, words_in

_FILLERS = frozenset(
    {
        "a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "for", "from", "how", "i",
        "in", "into", "is", "it", "my", "of", "on", "or", "some", "that", "the", "this", "to",
        "what", "which", "with",
    }
)  # fmt: skip
_MAX_WORDS = 16
_STEM_BONUS = 30.0
_ID_BONUS = 1000.0
_MISSPELT_SHARE = 0.5

_Weights = tuple[float, float, float]

# The weights of a whole word, the beginning of a word and a part of a word in each field.
_WEIGHTS: dict[str, _Weights] = {
    "stem": (12.0, 7.0, 4.0),
    "folders": (7.0, 4.0, 1.5),
    "description": (4.0, 2.5, 0.0),
    "parameters": (3.0, 2.0, 0.0),
    "details": (1.5, 1.0, 0.0),
}
_MIN_PART = 3  # shorter parts of words are found everywhere
_MIN_MISSPELT = 4
_SIMILAR = 0.75
# `reading files` matches `read file`, and the other way round.
_ENDINGS = ("ing", "es", "ed", "s")
_ALSO_WHOLE = ("s", "ing", "ed", "es", "er", "e", "d")


class Hit(NamedTuple):
    """An item that matches, and its score."""

    entry: CatalogueEntry
    score: float


def search(index: Index, words: str, limit: int, *, everything: bool = False) -> tuple[Hit, ...]:
    """Return at most ``limit`` items, best first; none for a query without words.

    Searches tools only; with ``everything``, runtimes and primitives as well.
    """
    query = _query_words(words)
    corpus = _Corpus(index, everything=everything)
    matched: dict[int, int] = {}
    scores: dict[int, float] = {}
    for found in _matches(query, corpus):
        for row, weight in found.items():
            matched[row] = matched.get(row, 0) + 1
            scores[row] = scores.get(row, 0) + weight
    for row in corpus.named(spaced(words_in(words))):
        if row in scores:
            scores[row] += _STEM_BONUS
    for row in [row for row in scores if index.rows[row][0].item_id == words.strip()]:
        scores[row] += _ID_BONUS
    best = nsmallest(limit, scores, key=lambda row: (-matched[row], -scores[row], row))
    return tuple([Hit(index.entry(row), round(scores[row], 3)) for row in best])


def _query_words(words: str) -> list[str]:
    """Return the distinct words without fillers; a query of fillers only keeps them."""
    every = list(dict.fromkeys(words_in(words[:1024])))
    return ([word for word in every if word not in _FILLERS] or every)[:_MAX_WORDS]


def _matches(query: list[str], corpus: _Corpus) -> Iterator[dict[int, float]]:
    """Yield, for each word that was found, the rows that contain it and their weights."""
    exact = [(corpus.find(word), word) for word in query]
    nothing_found = not any(found for found, _ in exact)
    for found, word in exact:
        if found:
            yield _weighted(found, corpus.size)
        elif (meant := corpus.nearest(word, thorough=nothing_found)) and (
            guessed := corpus.find(meant)
        ):
            yield _weighted(guessed, corpus.size, share=_MISSPELT_SHARE)


def _weighted(found: dict[int, float], size: int, share: float = 1.0) -> dict[int, float]:
    # A word that every item contains still has some weight.
    rarity = share * (1 + math.log(size / len(found)))
    return {row: weight * rarity for row, weight in found.items()}


class _Corpus:
    """The search texts by field, of all tools or of all items that are not hidden.

    Plain substring tests are the fastest way to search them.
    """

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
            least = _SIMILAR if names is groups[0] else None
            meant = _nearest(word, set("".join(texts).split()), least)
            if meant is not None:
                return meant
        return None


def _add(found: dict[int, float], base: str, texts: list[str], weights: _Weights) -> None:
    """Add the weight of the word to each row whose text contains it."""
    start = f" {base}"
    whole = f"{start} "
    also_whole = [f"{start}{ending} " for ending in _ALSO_WHOLE]
    whole_weight, beginning_weight, part_weight = weights
    wanted = base if part_weight and len(base) >= _MIN_PART else start
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


def _nearest(word: str, known: Iterable[str], least: float | None) -> str | None:
    """Return the word with one other letter, or else one that has this similarity at least."""
    from rye.suggestions import closest, one_typo_away

    size = len(word)
    near = sorted([each for each in known if -2 <= len(each) - size <= 2 and each.isalpha()])
    likely = [each for each in near if each[0] == word[0] or each[-1] == word[-1]]
    meant = one_typo_away(word, likely)
    if meant is not None or least is None:
        return meant
    return next(iter(closest(word, near, cutoff=least)), None)
