"""Output of a running job on its way to a callback."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping

from lilux.primitives.subprocess.session import STREAMS

OnOutput = Callable[[str, str], object]
OnAutopsy = Callable[[Mapping[str, object]], None]


class OutputCallback:
    """Decodes the output of one job and calls ``callback(stream, text)``.

    A character that is split between two pieces is passed on whole. Bytes that are not UTF-8 become
    lone surrogates, so that :func:`output_bytes` can restore them. A callback that raises is not
    called again, and ``error`` gives the reason.
    """

    def __init__(self, callback: OnOutput) -> None:
        self.error: str | None = None
        self._callback = callback
        decoder = codecs.getincrementaldecoder("utf-8")
        self._decoders = {stream: decoder("surrogateescape") for stream in STREAMS}

    def deliver(self, stream: str, data: bytes, *, final: bool = False) -> object:
        """Pass on the text that ``data`` completes, and return what the callback returns.

        ``final`` also passes on an incomplete character.
        """
        text = self._decoders[stream].decode(data, final)
        if not text or self.error is not None:
            return None
        try:
            return self._callback(stream, text)
        except Exception as error:  # noqa: BLE001 - the callback is foreign; the job must go on
            self.fail(error)
            return None

    def fail(self, error: BaseException) -> None:
        """Record that the callback raised ``error``."""
        # Not its message, which may contain a secret.
        self.error = f"the output callback failed: {type(error).__name__}"


def output_bytes(text: str) -> bytes:
    """Return the bytes of a text that a callback received.

    Other lone surrogates, which no output contains, are escaped with a backslash.
    """
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")


def readable_output(text: str) -> str:
    """Return the text with U+FFFD in place of bytes that are not UTF-8."""
    return text if text.isascii() else output_bytes(text).decode("utf-8", "replace")
