"""Calls of an executor that last announce themselves, so that a page can look at them.

A short call pays for an entry in a set: one timer looks at all calls, and only one that it finds
there twice is announced.
"""

from __future__ import annotations

from asyncio import current_task, get_running_loop

from rye.executor.run.live_run import AFTER_SECONDS, LiveRun
from rye.recording.record import BATCH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, TimerHandle
    from pathlib import Path

    from rye.executor.run.live_run import Questions
    from rye.executor.run.recorded import Recording
    from rye.live.post import LiveCall, Post

_EVERY_SECONDS = AFTER_SECONDS / 2


class Announcer:
    """The calls of one executor, in one event loop at a time."""

    def __init__(self, user_space: Path) -> None:
        self._user_space = user_space
        self.calls: set[LiveRun] = set()
        """The calls under way, also those that are not announced."""
        self._old: set[LiveRun] = set()
        self._loop: AbstractEventLoop | None = None
        self._timer: TimerHandle | None = None
        self._post: Post | None = None
        self._read: set[int] = set()

    def begin(self, recording: Recording, questions: Questions | None) -> LiveRun | None:
        """Note a call; ``None`` for one of a batch, which is announced as a whole."""
        if recording.caller.kind == BATCH:
            return None
        run = LiveRun(recording, questions, current_task())
        self.calls.add(run)
        if self._timer is None or self._loop is not get_running_loop():
            self._wait()
        return run

    def end(self, run: LiveRun | None, error: str) -> None:
        """Forget what :meth:`begin` returned for a call, which was recorded."""
        if run is None:
            return
        self.calls.discard(run)
        run.takes_cancellation()
        if run.is_announced:
            self._withdraw(run, run.recording.outcome, error, run.output())

    def announce(self, call: LiveCall) -> None:
        """Announce something that lasts, such as a batch, until :meth:`withdraw`."""
        self._add(call)
        self._serve()

    def withdraw(self, call: LiveCall, outcome: str) -> None:
        """The end of what was announced."""
        self._withdraw(call, outcome, "", None)

    def close(self) -> None:
        """Withdraw all announcements. The announcer may be used again."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        self._close_post()

    def _wait(self) -> None:
        loop = get_running_loop()
        if loop is not self._loop:
            # The other one has ended.
            self._close_post()
            self._loop = loop
        self._timer = loop.call_later(_EVERY_SECONDS, self._tick)

    def _tick(self) -> None:
        self._timer = None
        for run in self._old & self.calls:
            # Before it is prepared, nobody knows which parameters are secret.
            if run.recording.call is not None:
                run.is_announced = True  # or cannot be
                self._add(run)
        self._old = {run for run in self.calls if not run.is_announced}
        self._serve()

    def _add(self, call: LiveCall) -> None:
        """Announce a call, if that is possible here."""
        if self._post is None:
            from rye.live.post import Post

            try:
                self._post = Post(self._user_space)
            except OSError:
                return
        self._post.add(call)

    def _withdraw(
        self, call: LiveCall, outcome: str, error: str, output: dict[str, bytes] | None
    ) -> None:
        if self._post is not None:
            self._post.remove(call, outcome, error, output)
            if self._post.is_done:
                self._close_post()

    def _serve(self) -> None:
        """Serve the pages, and wait for them as long as there are calls."""
        post = self._post
        if post is not None:
            loop = self._loop = get_running_loop()
            post.serve()
            if post.is_done:
                self._close_post()
                return
            wanted = set(post.descriptors())
            for number in self._read - wanted:
                loop.remove_reader(number)
            for number in wanted - self._read:
                loop.add_reader(number, self._serve)
            self._read = wanted
        watched = post is not None and post.is_watched
        if self._timer is None and (self._old or watched):
            self._wait()

    def _close_post(self) -> None:
        if self._post is None:
            return
        if self._loop is not None and not self._loop.is_closed():
            for number in self._read:
                self._loop.remove_reader(number)
        self._read = set()
        self._post.close()
        self._post = None
