"""An event loop that a signal shuts down cleanly.

A signal handler that raises would interrupt the loop's code at any instruction. Here the signal
cancels the task, which can clean up, and the handler is called after the loop has closed.
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
    """Like ``asyncio.run``. An exception of a Python signal handler is raised after the task."""
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
    """The handlers written in Python; only the main thread receives signals."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    found = {number: signal.getsignal(number) for number in _SIGNALS}
    return {number: handler for number, handler in found.items() if callable(handler)}
