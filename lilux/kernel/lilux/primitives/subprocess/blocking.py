"""Running a process from a program that has no event loop and waits for nothing else.

For a program that is started, runs one job and ends: an event loop takes several times as long to
import as such a job takes to run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lilux.primitives.errors import ConfigurationError
from lilux.primitives.subprocess.binary import find_helper
from lilux.primitives.subprocess.blocking_helper import BlockingHelper
from lilux.primitives.subprocess.request import exec_request
from lilux.primitives.subprocess.result import SubprocessResult, exec_result, not_started
from lilux.primitives.subprocess.text import STREAMS, OutputText, callback_failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Self


class BlockingSubprocess:
    """``SubprocessPrimitive.execute`` for one job at a time, in one thread.

    Use it as a context manager, or call :meth:`close`: then the helper is gone. It is gone, too,
    with the job and all that this started, when this process dies.
    """

    def __init__(self) -> None:
        self._helper: BlockingHelper | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def start_early(self) -> None:
        """Start the helper, which gets ready while this program does other things.

        What keeps it from starting is raised by :meth:`execute`, if it comes to that.
        """
        try:
            self._helper = BlockingHelper(find_helper())
        except ConfigurationError:
            self._helper = None

    def execute(
        self,
        config: Mapping[str, Any],
        params: Mapping[str, Any] | None = None,
        *,
        on_output: Callable[[str, str], object] | None = None,
    ) -> SubprocessResult:
        """As ``SubprocessPrimitive.execute``, but it blocks.

        ``on_output`` must be a plain function. ``KeyboardInterrupt``, and whatever else a signal
        handler raises, ends the whole tree first.
        """
        try:
            request = exec_request(config, {} if params is None else params)
            if self._helper is None or not self._helper.alive:
                self._helper = BlockingHelper(find_helper())
            if on_output is None:
                return exec_result(self._helper.request(request.fields, request.input_data), None)
            relay = _Relay(on_output)
            fields = {**request.fields, "stream": True}
            answer = self._helper.request(fields, request.input_data, relay.take)
            relay.finish()
            return exec_result(answer, relay.error)
        except ValueError as error:
            return not_started(str(error))

    def close(self) -> None:
        """End the helper. May be called again, and so may :meth:`execute`."""
        if self._helper is not None:
            self._helper.close()


class _Relay:
    """Hands text to a callback; if that fails, the job goes on without it."""

    def __init__(self, callback: Callable[[str, str], object]) -> None:
        self.error: str | None = None
        self._callback = callback
        self._texts = OutputText()

    def take(self, stream: str, data: bytes, *, final: bool = False) -> None:
        text = self._texts.decode(stream, data, final=final)
        if not text or self.error is not None:
            return
        try:
            outcome = self._callback(stream, text)
        except Exception as error:  # noqa: BLE001 - the callback is foreign; the job must go on
            self.error = callback_failure(error)
            return
        if hasattr(outcome, "__await__"):
            close = getattr(outcome, "close", None)
            if close is not None:
                close()
            self.error = "the output callback is a coroutine function; pass a plain function here"

    def finish(self) -> None:
        """Hand over what the last pieces left incomplete."""
        for stream in STREAMS:
            self.take(stream, b"", final=True)
