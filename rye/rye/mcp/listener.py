"""What a tool reports and asks during a call of an MCP client."""

from __future__ import annotations

from collections.abc import Awaitable

from rye.executor.run.channel import UNAVAILABLE, Progress, Question, Reply
from rye.mcp.notifications import CallNotifier
from rye.mcp.open_calls import OpenCall


class ClientListener:
    """Passes progress on to the client, and questions to its user."""

    def __init__(self, call: OpenCall, notifier: CallNotifier) -> None:
        self._call = call
        self._notifier = notifier

    @property
    def can_ask(self) -> bool:
        """True if the user can be asked."""
        return self._call.can_ask

    @property
    def session(self) -> str:
        """The session of the client; its token, if it has no session."""
        session = self._call.session
        return f"token {self._call.token_name}" if session is None else session

    def progress(self, progress: Progress) -> None:
        """Send it, if the client asked for progress."""
        self._notifier.on_progress(progress)

    def ask(self, question: Question) -> Reply | Awaitable[Reply]:
        """Ask through the client or a page, if one can ask."""
        if not self.can_ask:
            return UNAVAILABLE
        from rye.mcp.elicitation import ask_user

        return ask_user(self._call, question)
