"""A signal cancels the task of the loop first; then the signal handler is called."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from types import FrameType

import pytest
from rye.executor.run.interruptible_loop import run_interruptibly


class EndedError(Exception):
    """Raised by the signal handler."""


@pytest.fixture
def raising() -> Iterator[None]:
    def handler(number: int, _: FrameType | None) -> None:
        raise EndedError(number)

    before = signal.signal(signal.SIGTERM, handler)
    yield
    assert signal.getsignal(signal.SIGTERM) is handler
    signal.signal(signal.SIGTERM, before)


def test_a_signal_cancels_the_task_and_its_handler_is_called_afterwards(raising: None) -> None:
    steps: list[str] = []

    async def work() -> None:
        asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGTERM)
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            steps.append("cleaned up")

    with pytest.raises(EndedError):
        run_interruptibly(work())
    assert steps == ["cleaned up"]


def test_without_a_signal_it_returns_the_result_of_the_task(raising: None) -> None:
    async def work() -> int:
        return 3

    assert run_interruptibly(work()) == 3


def test_a_handler_is_called_even_if_the_task_is_done(raising: None) -> None:
    async def work() -> int:
        signal.raise_signal(signal.SIGTERM)
        return 3

    with pytest.raises(EndedError):
        run_interruptibly(work())


def test_signals_are_not_handled_in_another_thread(raising: None) -> None:
    async def work() -> int:
        return 3

    results: list[int] = []
    thread = threading.Thread(target=lambda: results.append(run_interruptibly(work())))
    thread.start()
    thread.join()
    assert results == [3]
