"""What ends a call from outside: Ctrl-C, termination, a terminal or a reader that is gone.

The first one ends the call. Those that follow while the tool's processes are being ended are
ignored, so that an impatient second Ctrl-C leaves nobody behind.
"""

from __future__ import annotations

import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

_AGAIN_AFTER = 0.01
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(KeyboardInterrupt):
    """The call was ended by a signal, or as if by one."""

    def __init__(self, number: int) -> None:
        super().__init__(f"signal {number}")
        self.number = number

    @property
    def exit_code(self) -> int:
        """As a shell knows it."""
        return 128 + self.number


class Interruption:
    """Listens for the signals, in the main thread, while it is used as a context.

    They are raised as :class:`Interrupted`, wherever the program is. Where Python lets nothing be
    raised, as when a module was just imported, they are raised again a moment later. What was
    ignored before the start, as by ``nohup``, still is.
    """

    def __init__(self) -> None:
        self.tool_began = False
        """Whether there was something to end."""
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

    def __exit__(self, *_: object) -> None:
        if signal.SIGALRM in self._before:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, before in self._before.items():
            signal.signal(number, before)
        sys.unraisablehook = self._hook

    def end(self, number: int) -> None:
        """End the call as if that signal had come."""
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

        def again(_: int, __: FrameType | None) -> None:
            raise Interrupted(number)

        self._before.setdefault(signal.SIGALRM, signal.signal(signal.SIGALRM, again))
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_AFTER)
