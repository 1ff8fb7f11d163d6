"""A call under way: what a page shows of it, and what a page may do to it."""

from __future__ import annotations

from collections.abc import Mapping

from rye.errors import CancelledOnPageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Task
    from typing import Any, Protocol

    from rye.executor.run.channel import Conversation
    from rye.executor.run.recorded import Recording

    class Questions(Protocol):
        """What waits for the user during a call."""

        def waiting(self) -> list[dict[str, Any]]:
            """Each has ``id``, ``message`` and ``schema``."""

        def answer(self, question: str, answer: Mapping[str, Any]) -> str:
            """Answer one; return why not, or an empty text."""


AFTER_SECONDS = 0.2
"""Calls that last longer than this are announced."""


def cancelled_on_page(item_id: str) -> CancelledOnPageError:
    """The error of a call that the user has cancelled."""
    return CancelledOnPageError(
        f"{item_id!r} was cancelled on the page of `rye ui`",
        hint="call it again only if that is wanted",
    )


class LiveRun:
    """One call, from its beginning to its end. Making one costs a call next to nothing."""

    __slots__ = (
        "_cancelling",
        "_questions",
        "conversation",
        "is_announced",
        "is_cancelled",
        "recording",
        "result",
        "task",
    )

    def __init__(
        self,
        recording: Recording,
        questions: Questions | None = None,
        task: Task[Any] | None = None,
    ) -> None:
        """``task`` runs the call, if it runs in an event loop."""
        self.recording = recording
        self._questions = questions
        self.task = task
        self.conversation: Conversation | None = None
        """The channel of the tool, once it runs."""
        self.result: Any = None
        """What the primitive returned, as the tool wrote it."""
        self.is_announced = False
        self.is_cancelled = False
        self._cancelling: int | None = None

    @property
    def run_id(self) -> str:
        """The id in the history."""
        return self.recording.run_id

    def described(self) -> dict[str, Any]:
        """What does not change."""
        return self.recording.described()

    def state(self) -> dict[str, Any]:
        """What changes while the call runs."""
        part = None if self.conversation is None else self.conversation.latest
        return {
            "part": None if part is None else [part.progress, part.total, part.message],
            "questions": [] if self._questions is None else self._questions.waiting(),
        }

    def look(self, on_sight: Any, stdout_from: int, stderr_from: int, limit: int) -> bool:
        """Look at the output of the tool; see ``Dialogue.look``."""
        if self.conversation is None:
            return False
        return self.conversation.dialogue.look(
            on_sight, stdout_from=stdout_from, stderr_from=stderr_from, limit=limit
        )

    def answer(self, question: str, answer: Mapping[str, Any]) -> str:
        """Answer a question; return why not, or an empty text."""
        if self._questions is None:
            return "the call asks nothing"
        return self._questions.answer(question, answer)

    def cancel(self) -> str:
        """End the call, in its task or when it next looks at :attr:`is_cancelled`."""
        if not self.is_cancelled:
            self.is_cancelled = True
            if self.task is not None:
                self._cancelling = self.task.cancelling()
                self.task.cancel()
        return ""

    def takes_cancellation(self) -> bool:
        """Take the cancellation of the task back, as it must not end the caller as well.

        True if only the page has cancelled the task, and not its caller.
        """
        if self._cancelling is None or self.task is None:
            return False
        before, self._cancelling = self._cancelling, None
        return self.task.uncancel() <= before

    def output(self) -> dict[str, bytes] | None:
        """All output of a process that has ended; ``None`` if there is none, or not all of it."""
        result = self.result
        if getattr(result, "truncated_stdout", True) or result.truncated_stderr:
            return None
        return {
            "stdout": result.raw_stdout or result.stdout.encode("utf-8", "surrogatepass"),
            "stderr": result.raw_stderr or result.stderr.encode("utf-8", "surrogatepass"),
        }
