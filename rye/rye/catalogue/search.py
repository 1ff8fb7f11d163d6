"""Ranking: which items fit some words best.

Each word counts by where it stands (the id before the description before the parameters), by how
much of it fits (a whole word before its beginning before a part), and by how rare it is. Items that
have all the words come before those that lack one, and so on. A word that stands nowhere is taken
for the nearest that does. The same items and words always give the same order.
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
_WHOLE_STEM = 30.0
_WHOLE_ID = 1000.0
_GUESSED = 0.5


class Hit(NamedTuple):
    """An item that was found, and how well it fits."""

    entry: CatalogueEntry
    score: float


def search(index: Index, words: str, limit: int, *, everything: bool = False) -> tuple[Hit, ...]:
    """At most ``limit`` items, the best first; none for a text without words.

    Only tools are looked at, unless ``everything`` asks for runtimes and primitives too.
    """
    asked = _asked(words)
    corpus = Corpus(index, everything=everything)
    matched: dict[int, int] = {}
    scores: dict[int, float] = {}
    for found in _found(asked, corpus):
        for row, worth in found.items():
            matched[row] = matched.get(row, 0) + 1
            scores[row] = scores.get(row, 0) + worth
    for row in corpus.named(spaced(words_in(words))):
        if row in scores:
            scores[row] += _WHOLE_STEM
    for row in [row for row in scores if index.rows[row][0].item_id == words.strip()]:
        scores[row] += _WHOLE_ID
    best = nsmallest(limit, scores, key=lambda row: (-matched[row], -scores[row], row))
    return tuple([Hit(index.entry(row), round(scores[row], 3)) for row in best])


def _asked(words: str) -> list[str]:
    """The words that matter, each once; fillers only if there is nothing else."""
    every = list(dict.fromkeys(words_in(words[:1024])))
    return ([word for word in every if word not in _FILLERS] or every)[:_MAX_WORDS]


def _found(asked: list[str], corpus: Corpus) -> Iterator[dict[int, float]]:
    """Of each word, the rows that it stands in, and what it is worth there."""
    exact = [(corpus.find(word), word) for word in asked]
    lost = not any(found for found, _ in exact)
    for found, word in exact:
        if found:
            yield _weighted(found, corpus.size)
        elif (meant := corpus.nearest(word, thorough=lost)) and (guessed := corpus.find(meant)):
            yield _weighted(guessed, corpus.size, share=_GUESSED)


def _weighted(found: dict[int, float], size: int, share: float = 1.0) -> dict[int, float]:
    # A word that every item has says little, but it is not worth nothing either.
    rarity = share * (1 + math.log(size / len(found)))
    return {row: worth * rarity for row, worth in found.items()}
