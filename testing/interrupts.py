"""Send Ctrl-C to the process that runs the tests."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator

from processes import wait_until


@contextlib.contextmanager
def interrupt_when(*conditions: Callable[[], object]) -> Iterator[None]:
    """Send SIGINT as soon as the first condition is true, and again for each further one.

    Inside the ``with`` block, SIGINT raises ``KeyboardInterrupt``, even if the parent of the test
    process ignores the signal.
    """

    def act() -> None:
        for condition in conditions:
            wait_until(condition, "time to interrupt")
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(target=act)
    thread.start()
    try:
        yield
    finally:
        thread.join()
        signal.signal(signal.SIGINT, before)
