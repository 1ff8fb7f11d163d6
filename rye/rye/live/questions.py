"""The questions of one call that wait for the user, and that a page may answer."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeGuard

ACTIONS = ("accept", "decline", "cancel")
"""What a user may do with a form, as in MCP."""


def is_answer(given: object) -> TypeGuard[Mapping[str, Any]]:
    """True for what a client, or a page, may answer to a form."""
    return isinstance(given, Mapping) and given.get("action") in ACTIONS


class WaitingQuestions:
    """Questions in the form of MCP elicitation: ``message`` and ``requestedSchema``."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[Mapping[str, Any], asyncio.Future[Mapping[str, Any]]]] = {}

    @contextmanager
    def asked(self, params: Mapping[str, Any]) -> Iterator[asyncio.Future[Mapping[str, Any]]]:
        """A question that waits during the block; the future has the answer of a page."""
        question_id = os.urandom(8).hex()
        future: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[question_id] = (params, future)
        try:
            yield future
        finally:
            del self._waiting[question_id]

    def waiting(self) -> list[dict[str, Any]]:
        """The questions as a page shows them."""
        return [
            {"id": one, "message": params["message"], "schema": params["requestedSchema"]}
            for one, (params, future) in self._waiting.items()
            if not future.done()
        ]

    def answer(self, question: str, answer: Mapping[str, Any]) -> str:
        """Take the answer of a page, unless another one was first; return why not."""
        _, future = self._waiting.get(question, (None, None))
        if future is None or future.done():
            return "the question has been answered"
        if not is_answer(answer):
            return "the answer is malformed"
        future.set_result(answer)
        return ""
