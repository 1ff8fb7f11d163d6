"""Who may use the page: a link that works once, then a cookie, and a token in every form."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading

COOKIE_PREFIX = "rye-ui-"
_MAX_LINKS = 8
_MAX_SESSIONS = 32


class Access:
    """The links and sessions of one server. They are kept in memory, and end with the process."""

    def __init__(self, port: int) -> None:
        # A browser sends the cookies of a host to all of its ports.
        self.cookie_name = f"{COOKIE_PREFIX}{port}"
        self._links: list[str] = []
        self._sessions: list[str] = []
        self._lock = threading.Lock()

    def new_link(self) -> str:
        """Return a token that opens one session. Only the newest few are valid."""
        token = secrets.token_urlsafe(32)
        with self._lock:
            self._links = [*self._links[1 - _MAX_LINKS :], token]
        return token

    def enter(self, token: str) -> str | None:
        """Use up the token of a link; return a new session, ``None`` if the token is invalid."""
        with self._lock:
            found = _same(token, self._links)
            if found is None:
                return None
            self._links.remove(found)
            session = secrets.token_urlsafe(32)
            self._sessions = [*self._sessions[1 - _MAX_SESSIONS :], session]
            return session

    def session(self, cookie: str) -> str | None:
        """Return the session that a cookie names, ``None`` if there is no such session."""
        return _same(cookie, self._sessions)


def form_token(session: str) -> str:
    """The token that every form of a session contains; it does not reveal the session."""
    return hmac.new(session.encode(), b"form", hashlib.sha256).hexdigest()


def is_form_token(given: str, session: str) -> bool:
    """True if the form was made for this session."""
    return hmac.compare_digest(given.encode(), form_token(session).encode())


def _same(given: str, known: list[str]) -> str | None:
    """Compare with each in constant time, so that a guess reveals nothing."""
    found = None
    for one in known:
        if hmac.compare_digest(given.encode("utf-8", "surrogateescape"), one.encode()):
            found = one
    return found
