"""Output of a job in pieces, as text: a character may be cut in two by the pieces."""

from __future__ import annotations

import codecs

STREAMS = ("stdout", "stderr")


class OutputText:
    """Decodes the two streams of one job; bytes that are not UTF-8 become U+FFFD."""

    def __init__(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")
        self._decoders = {stream: decoder("replace") for stream in STREAMS}

    def decode(self, stream: str, data: bytes, *, final: bool = False) -> str:
        """The text that ``data`` completes; with ``final`` also what was left incomplete."""
        return self._decoders[stream].decode(data, final)


def callback_failure(error: BaseException) -> str:
    """What the result says of a callback that raised."""
    return f"the output callback failed: {type(error).__name__}"
