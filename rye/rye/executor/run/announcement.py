"""The call of a program without an event loop announces itself, if it lasts."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from rye.executor.run.channel import Conversation
    from rye.executor.run.live_run import LiveRun
    from rye.executor.run.recorded import Recording
    from rye.live.post import Post

# As for calls in an event loop; a short call does not import that module.
_AFTER_SECONDS = 0.2
_EVERY_SECONDS = 0.1
_PATIENCE_SECONDS = 0.2


class Announcement:
    """Shows one call to pages. The subprocess primitive serves it while it waits for the tool."""

    def __init__(self, recording: Recording, conversation: Conversation, user_space: Path) -> None:
        self.result: Any = None
        """What the primitive returned."""
        self._recording = recording
        self._conversation = conversation
        self._user_space = user_space
        self._run: LiveRun | None = None
        self._post: Post | None = None
        self.due: float | None = time.monotonic() + _AFTER_SECONDS
        conversation.dialogue.beside = self

    def wanted(self) -> list[tuple[int, int]]:
        """Descriptors to wait for."""
        if self._post is None:
            return []
        import select

        return [(number, select.POLLIN) for number in self._post.descriptors()]

    def serve(self) -> None:
        """Announce the call when it is time, and serve the pages. Raises if one cancels it."""
        now = time.monotonic()
        if self._post is None:
            if self.due is None or now < self.due:
                return
            self._open()
        if self._post is None or self._run is None:
            return
        self._post.serve()
        self.due = now + _EVERY_SECONDS if self._post.is_watched else None
        if self._run.is_cancelled:
            from rye.executor.run.live_run import cancelled_on_page

            raise cancelled_on_page(self._recording.item_id)

    def end(self, error: str) -> None:
        """Withdraw it. The call was recorded."""
        if self._post is not None and self._run is not None:
            self._run.result = self.result
            self._post.remove(self._run, self._recording.outcome, error, self._run.output())
            self._post.close(patience=_PATIENCE_SECONDS)

    def _open(self) -> None:
        from rye.executor.run.live_run import LiveRun
        from rye.live.post import Post

        self.due = None
        try:
            self._post = Post(self._user_space)
        except OSError:
            return
        self._run = LiveRun(self._recording)
        self._run.conversation = self._conversation
        self._post.add(self._run)
