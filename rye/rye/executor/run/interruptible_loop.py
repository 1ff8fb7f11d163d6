"""An event loop that a signal ends in good order.

A signal handler that raises does so between any two instructions, also amid the loop's own. Here
the task is cancelled first, so that it can take leave of what it holds, and the handler is called
when the loop is gone.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any, TypeVar

Result = TypeVar("Result")
_Handler = Callable[[int, FrameType | None], object]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_interruptibly(work: Coroutine[Any, Any, Result]) -> Result:
    """Like ``asyncio.run``. What a handler in Python raises is raised after the task has ended."""
    handlers = _handlers()
    received: list[int] = []
    try:
        with asyncio.Runner() as runner:
            loop = runner.get_loop()
            task = loop.create_task(work)

            def end(number: int, _: FrameType | None) -> None:
                received.append(number)
                task.cancel()
                loop.call_soon_threadsafe(lambda: None)  # it may be asleep

            try:
                for number in handlers:
                    signal.signal(number, end)
                return loop.run_until_complete(task)
            finally:
                for number, handler in handlers.items():
                    signal.signal(number, handler)
    finally:
        for number in received:
            handlers[number](number, None)


def _handlers() -> dict[int, _Handler]:
    """Those in Python; signals reach the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    found = {number: signal.getsignal(number) for number in _SIGNALS}
    return {number: handler for number, handler in found.items() if callable(handler)}
