"""Ranking items for a query.

The weight of a word depends on where it is found (id over description over parameters), on how
much of it matches (a whole word over the beginning over a part) and on how rare it is. Items that
contain all words come first, then those that lack one, and so on. A word that is not found is
replaced with the most similar known word. The order is deterministic.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from heapq import nsmallest
from typing import NamedTuple

from rye.catalogue.corpus import Corpus
from rye.catalogue.entry import CatalogueEntry
from rye.catalogue.index import Index
from rye.catalogue.words import spaced, words_in

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


class Hit(NamedTuple):
    """An item that matches, and its score."""

    entry: CatalogueEntry
    score: float


def search(index: Index, words: str, limit: int, *, everything: bool = False) -> tuple[Hit, ...]:
    """Return at most ``limit`` items, best first; none for a query without words.

    Searches tools only; with ``everything``, runtimes and primitives as well.
    """
    query = _query_words(words)
    corpus = Corpus(index, everything=everything)
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


def _matches(query: list[str], corpus: Corpus) -> Iterator[dict[int, float]]:
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
