"""Ending a call from outside: Ctrl-C, SIGTERM, a closed terminal or a broken pipe.

The first signal ends the call. Further ones are ignored while the tool's processes are being ended,
so that a second Ctrl-C does not leave processes behind.
"""

from __future__ import annotations

import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

_RETRY_SECONDS = 0.01
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(KeyboardInterrupt):
    """A signal ended the call."""

    def __init__(self, number: int) -> None:
        super().__init__(f"signal {number}")
        self.number = number

    @property
    def exit_code(self) -> int:
        """The exit code that a shell reports for the signal."""
        return 128 + self.number


class Interruption:
    """A context in the main thread that raises signals as :class:`Interrupted`.

    Where Python cannot raise, as in a weak reference callback, the exception is raised again a
    moment later. An extension module may turn it into another exception; that one is replaced at
    the end. Signals that were ignored at the start, as by ``nohup``, stay ignored.
    """

    def __init__(self) -> None:
        self.tool_began = False
        """True if there may be processes to end."""
        self._received: int | None = None
        self._before: dict[int, Callable[[int, FrameType | None], object] | int | None] = {}
        self._hook = sys.unraisablehook

    def __enter__(self) -> Interruption:
        sys.unraisablehook = self._on_unraisable
        for number in _SIGNALS:
            before = signal.getsignal(number)
            if before is not signal.SIG_IGN:
                self._before[number] = before
                signal.signal(number, self._on_signal)
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if signal.SIGALRM in self._before:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, before in self._before.items():
            signal.signal(number, before)
        sys.unraisablehook = self._hook
        if self._received is not None and error and not isinstance(error, Interrupted):
            raise Interrupted(self._received) from error

    def end(self, number: int) -> None:
        """End the call as if that signal had arrived."""
        if self._received is None:
            self._received = number
            raise Interrupted(number)

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        self.end(number)

    def _on_unraisable(self, lost: Any) -> None:
        if not isinstance(lost.exc_value, Interrupted):
            self._hook(lost)
            return
        number = lost.exc_value.number

        def raise_again(_: int, __: FrameType | None) -> None:
            raise Interrupted(number)

        self._before.setdefault(signal.SIGALRM, signal.signal(signal.SIGALRM, raise_again))
        signal.setitimer(signal.ITIMER_REAL, _RETRY_SECONDS)
