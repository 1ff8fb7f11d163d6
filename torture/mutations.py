"""Generated inputs that are almost valid: a valid text with a few bytes or pieces changed."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

_MANY = (1, 2, 31, 33, 200, 3000)


@st.composite
def mutated(draw: DrawFn, originals: Sequence[bytes], pieces: Sequence[bytes] = ()) -> bytes:
    """Return one of the originals after up to four cuts, flips, repetitions and insertions."""
    data = bytearray(draw(st.sampled_from(originals)))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 12)))
        change = draw(st.sampled_from(("cut", "flip", "repeat", "insert", "piece")))
        if change == "cut":
            del data[start:end]
        elif change == "flip" and start < len(data):
            data[start] ^= 1 << draw(st.integers(0, 7))
        elif change == "repeat":
            data[start:start] = bytes(data[start:end]) * draw(st.sampled_from(_MANY))
        elif change == "piece" and pieces:
            data[start:start] = draw(st.sampled_from(pieces))
        else:
            data[start:start] = draw(st.binary(max_size=4))
    return bytes(data)


def mixture(pieces: Sequence[bytes]) -> SearchStrategy[bytes]:
    """Return pieces of syntax in any order, some of them repeated many times."""
    often = st.tuples(st.sampled_from(pieces), st.sampled_from((1, 1, 1, *_MANY)))
    return st.lists(often.map(lambda pair: pair[0] * pair[1]), max_size=20).map(b"".join)


@st.composite
def cut_up(draw: DrawFn, streams: SearchStrategy[bytes]) -> tuple[bytes, ...]:
    """Return a stream in pieces, as a connection might deliver it."""
    stream = draw(streams)
    edges = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    return tuple(
        stream[start:end] for start, end in zip([0, *edges], [*edges, len(stream)], strict=True)
    )
