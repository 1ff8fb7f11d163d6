"""What ends a call from outside: Ctrl-C, termination, a terminal or a reader that is gone.

The first one ends the call. Those that follow while the tool's processes are being ended are
ignored, so that an impatient second Ctrl-C leaves nobody behind.
"""

from __future__ import annotations

import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

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

    They are raised as :class:`Interrupted`, wherever the program is. What was ignored before the
    start, as by ``nohup``, still is.
    """

    def __init__(self) -> None:
        self.tool_began = False
        """Whether there was something to end."""
        self._received: int | None = None
        self._before: dict[int, Callable[[int, FrameType | None], object] | int | None] = {}

    def __enter__(self) -> Interruption:
        for number in _SIGNALS:
            before = signal.getsignal(number)
            if before is not signal.SIG_IGN:
                self._before[number] = before
                signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def end(self, number: int) -> None:
        """End the call as if that signal had come."""
        if self._received is None:
            self._received = number
            raise Interrupted(number)

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        self.end(number)
