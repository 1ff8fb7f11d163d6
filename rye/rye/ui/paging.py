"""Long lists, a page at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

from starlette.requests import Request

PAGE_LENGTH = 50
_MAX_PAGE = 1_000_000
_MAX_DIGITS = 18


class Pager(NamedTuple):
    """Which part of a list is shown, and the addresses of the parts before and after it."""

    number: int
    """From 1."""
    total: int | None
    """The length of the list; ``None`` if it is not counted."""
    has_next: bool
    path: str
    query: dict[str, str]

    @property
    def pages(self) -> int | None:
        """The number of pages; ``None`` if the list is not counted."""
        return None if self.total is None else max(-(-self.total // PAGE_LENGTH), 1)

    @property
    def before(self) -> str:
        """The address of the page before; empty on the first one."""
        return self.at(self.number - 1) if self.number > 1 else ""

    @property
    def after(self) -> str:
        """The address of the next page; empty on the last one."""
        return self.at(self.number + 1) if self.has_next else ""

    def at(self, number: int) -> str:
        """The address of a page."""
        return f"{self.path}?{urlencode({**self.query, 'page': str(number)})}"


def page_number(request: Request) -> int:
    """Return the page that the query asks for, from 1; anything else is the first."""
    return min(number_in(request, "page"), _MAX_PAGE) or 1


def number_in(request: Request, name: str) -> int:
    """Return a number of the query; 0 if it has none, or one that no page would write."""
    text = request.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS else 0


def page_of(request: Request, rows: Sequence[Any]) -> tuple[Sequence[Any], Pager]:
    """Return the wanted part of a list, and its pager."""
    number = min(page_number(request), max(-(-len(rows) // PAGE_LENGTH), 1))
    start = (number - 1) * PAGE_LENGTH
    pager = Pager(
        number, len(rows), len(rows) > start + PAGE_LENGTH, request.url.path, query_of(request)
    )
    return rows[start : start + PAGE_LENGTH], pager


def query_of(request: Request) -> dict[str, str]:
    """Return the query without the page, for the links of a pager."""
    return {name: text for name, text in request.query_params.items() if name != "page"}
