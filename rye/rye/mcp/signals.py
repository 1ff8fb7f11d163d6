"""Signals that ask the server to end."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

_ASKING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ending:
    """While it is entered, a signal calls ``stop`` in the event loop and is remembered."""

    def __init__(self, stop: Callable[[], object]) -> None:
        self._stop = stop
        # What `nohup` or a shell made the server deaf to stays unheard.
        self._heard = [one for one in _ASKING if signal.getsignal(one) is not signal.SIG_IGN]
        self.by: signal.Signals | None = None

    def __enter__(self) -> Self:
        loop = asyncio.get_running_loop()
        for number in self._heard:
            loop.add_signal_handler(number, self._on_signal, number)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        loop = asyncio.get_running_loop()
        for number in self._heard:
            loop.remove_signal_handler(number)

    def _on_signal(self, number: signal.Signals) -> None:
        self.by = self.by or number
        self._stop()
