"""Calls that run, and calls that wait for an answer of the user.

A client of the 2025 revisions is sent a request (``elicitation/create``) while its own request is
open. A client of 2026-07-28 cannot be sent one. It gets the question as the result of its request,
asks the user, and sends the request again with the answer and with the state that came with the
question. The tool keeps running in between: the call is *parked*, and the state is its key.

A page of the user (``rye ui --run``) may answer every question as well; the first answer is used. A
client that cannot ask is served if there is such a page.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rye.errors import BusyError, RyeError
from rye.executor.run.channel import UNNAMED
from rye.live.questions import WaitingQuestions, is_answer
from rye.mcp.protocol.errors import INVALID_PARAMS, INVALID_REQUEST, ProtocolError
from rye.mcp.protocol.types import InputRequiredResult
from rye.mcp.tasks import cancel_and_wait

if TYPE_CHECKING:
    from rye.mcp.protocol.eras import Era, RequestMeta
    from rye.mcp.protocol.messages import RequestId
    from rye.mcp.protocol.types import CallToolParams, CallToolResult, ClientCapabilities
    from rye.mcp.request import Request

    Work = Callable[["OpenCall"], Coroutine[Any, Any, CallToolResult]]

ANSWER_SECONDS: Final = 600
"""How long the user may think about a question."""

_ELICIT = "elicitation/create"
_MAX_PARKED = 100
# A page that was closed is noticed within this time.
_PAGE_SECONDS = 0.5
_STATE_BYTES = 24


class _Question(NamedTuple):
    key: str
    state: str
    params: Mapping[str, Any]
    answer: asyncio.Future[Mapping[str, Any]]


class OpenCall:
    """One call. It is the :class:`~rye.mcp.request.Request` for its notifications and questions,
    whichever request of the client is waiting for it.
    """

    def __init__(
        self,
        calls: OpenCalls,
        request: Request,
        identity: bytes,
        given: Mapping[str, Any],
        work: Work,
    ) -> None:
        self._calls = calls
        self._request = request
        # Answers that came with the first request. They are only for questions that the tool
        # named: nobody can know another question before it is asked, above all an approval.
        self._given = {key: one for key, one in given.items() if key != UNNAMED}
        self.identity = identity
        """The digest of who called what: a request with other arguments does not continue it."""
        self.tool = ""
        """The full id of the tool, once it is known."""
        self._attached = asyncio.Event()
        self._asking = asyncio.Lock()
        self._asked = asyncio.Event()
        self._question: _Question | None = None
        self.questions = WaitingQuestions()
        """What a page may answer."""
        self.task = asyncio.create_task(work(self))

    @property
    def request_id(self) -> RequestId:
        return self._request.request_id

    @property
    def era(self) -> Era:
        return self._request.era

    @property
    def version(self) -> str:
        return self._request.version

    @property
    def meta(self) -> RequestMeta:
        return self._request.meta

    @property
    def capabilities(self) -> ClientCapabilities:
        return self._request.capabilities

    @property
    def session(self) -> str | None:
        return self._request.session

    @property
    def client(self) -> str:
        return self._request.client

    @property
    def token_name(self) -> str:
        return self._request.token_name

    @property
    def disconnected(self) -> asyncio.Event | None:
        return self._request.disconnected

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification; of a parked call, when the client comes back."""
        await self._attached.wait()
        await self._request.notify(method, params)

    async def ask(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Send a request to the client and return its result; see :class:`Request`."""
        return await self._request.ask(method, params)

    @property
    def can_elicit(self) -> bool:
        """True if the client can show a form to its user."""
        modes = self.capabilities.elicitation
        return modes is not None and (not modes or "form" in modes)

    @property
    def can_ask(self) -> bool:
        """True if the user can be asked: by the client, or by a page."""
        return self.can_elicit or self._calls.page_answers()

    async def elicit(self, params: Mapping[str, Any], *, key: str = UNNAMED) -> Mapping[str, Any]:
        """Let the client, and pages, show a form; return the first answer: ``action``, ``content``.

        Clients of 2026-07-28 see the ``key`` and answer under it. One that has sent an answer
        under this key with its first request is not asked.
        Raises ``TimeoutError`` if nobody answers in time, and ``ProtocolError`` if the client
        answers with an error, or cannot ask and no page is left. A call that is parked for too
        long is cancelled instead.
        """
        async with self._asking:
            given = self._given.pop(key, None) if self.era == "stateless" else None
            if is_answer(given):
                return given
            with self.questions.asked(params) as by_page:
                asking = self._ask_client(key, params) if self.can_elicit else self._ask_page()
                by_client = asyncio.create_task(asking)
                try:
                    await asyncio.wait({by_client, by_page}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    # If the client was asked, this withdraws the question.
                    await cancel_and_wait(by_client)
                return by_page.result() if by_page.done() else by_client.result()

    async def _ask_client(self, key: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        if self.era == "stateless":
            return await self._park(key, params)
        async with asyncio.timeout(ANSWER_SECONDS):
            answer = await self._request.ask(_ELICIT, params)
        if not is_answer(answer):
            raise ProtocolError(INVALID_REQUEST, "the client's answer to a question is malformed")
        return answer

    async def _ask_page(self) -> Mapping[str, Any]:
        """Wait as long as a page could answer."""
        async with asyncio.timeout(ANSWER_SECONDS):
            while self._calls.page_answers():  # noqa: ASYNC110 - it is another process
                await asyncio.sleep(_PAGE_SECONDS)
        raise ProtocolError(INVALID_REQUEST, "the page that could ask the user was closed")

    async def _park(self, key: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        import secrets

        state = secrets.token_urlsafe(_STATE_BYTES)
        future: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        self._calls.park(state, self)
        self._question = _Question(key, state, params, future)
        self._asked.set()
        try:
            return await future
        finally:
            self._question = None
            self._asked.clear()

    def accept(self, state: str, responses: Mapping[str, Any]) -> None:
        """Take the answer from a request that continues the call; without one, ask again.

        An answer to a question that a page has answered does not answer the next one.
        """
        question = self._question
        if question is None or question.state != state:
            self._calls.forget(state)
            return
        response = responses.get(question.key)
        if is_answer(response) and not question.answer.done():
            self._calls.forget(question.state)
            self._asked.clear()
            question.answer.set_result(response)

    async def wait(self, request: Request) -> CallToolResult | InputRequiredResult:
        """Wait for the call on behalf of this request.

        On cancellation, and when the client disconnects, the call is cancelled and its processes
        have ended before this returns. Raises ``RyeError`` if the call was cancelled.
        """
        self._request = request
        self._attached.set()
        events = [request.disconnected, self._asked if self.era == "stateless" else None]
        waiting = [asyncio.create_task(one.wait()) for one in events if one is not None]
        parked: _Question | None = None
        try:
            await asyncio.wait({self.task, *waiting}, return_when=asyncio.FIRST_COMPLETED)
            if self._asked.is_set() and not _is_gone(request):
                parked = self._question
        finally:
            for task in waiting:
                task.cancel()
            if parked is None:
                await cancel_and_wait(self.task)
        if parked is not None and not self.task.done():
            self._attached.clear()
            requests = {parked.key: {"method": _ELICIT, "params": parked.params}}
            return InputRequiredResult("input_required", requests, parked.state)
        if self.task.cancelled():
            raise RyeError(
                "the call was cancelled", hint="call again if the result is still needed"
            )
        return self.task.result()


class OpenCalls:
    """All calls of a server that have not ended."""

    def __init__(self, page_answers: Callable[[], bool] = lambda: False) -> None:
        """``page_answers`` returns true if the user has a page open that can answer questions."""
        self.page_answers = page_answers
        self._open: set[OpenCall] = set()
        self._is_stopping = False
        self._parked: dict[str, tuple[OpenCall, asyncio.TimerHandle]] = {}

    async def begin(
        self, request: Request, params: CallToolParams, work: Work
    ) -> CallToolResult | InputRequiredResult:
        """Start a call and wait for its result, or for a question; see :meth:`OpenCall.wait`.

        Raises ``BusyError`` if the server is stopping.
        """
        if self._is_stopping:
            raise BusyError("the server is stopping", hint="call again when it runs again")
        given = params.input_responses or {}
        call = OpenCall(self, request, _identity(request, params), given, work)
        self._open.add(call)
        call.task.add_done_callback(lambda _: self._open.discard(call))
        return await call.wait(request)

    def refuse_new(self) -> None:
        """Start no more calls."""
        self._is_stopping = True

    async def resume(
        self, request: Request, params: CallToolParams
    ) -> CallToolResult | InputRequiredResult:
        """Continue a parked call. Raises ``ProtocolError`` if the state belongs to none."""
        state = params.request_state or ""
        call, _ = self._parked.get(state, (None, None))
        if call is None or call.identity != _identity(request, params):
            raise ProtocolError(
                INVALID_PARAMS,
                "requestState is unknown, was used, or belongs to another call; call again",
            )
        # It may have ended, or have got its answer from a page, while its client was away.
        call.accept(state, params.input_responses or {})
        return await call.wait(request)

    def park(self, state: str, call: OpenCall) -> None:
        """Remember a call whose client has to come back. Raises ``ProtocolError`` for too many."""
        if len(self._parked) >= _MAX_PARKED:
            raise ProtocolError(INVALID_REQUEST, "too many questions wait for an answer")
        expiry = asyncio.get_running_loop().call_later(ANSWER_SECONDS, self._expire, state)
        self._parked[state] = (call, expiry)

    def forget(self, state: str) -> None:
        """Forget a state that was used."""
        _, expiry = self._parked.pop(state)
        expiry.cancel()

    def _expire(self, state: str) -> None:
        call, _ = self._parked.pop(state)
        call.task.cancel()

    def cancel_all(self) -> None:
        """Start to cancel every call; ``wait`` raises once its call has ended."""
        for state in list(self._parked):
            self.forget(state)
        for call in list(self._open):
            call.task.cancel()

    async def wait_all(self) -> None:
        """Wait until all calls have ended."""
        tasks = [call.task for call in self._open]
        if tasks:
            await asyncio.wait(tasks)


def _is_gone(request: Request) -> bool:
    return request.disconnected is not None and request.disconnected.is_set()


def _identity(request: Request, params: CallToolParams) -> bytes:
    import msgspec

    called = [request.token_name, params.name, params.arguments or {}]
    from hashlib import sha256

    return sha256(msgspec.json.encode(called, order="deterministic")).digest()
