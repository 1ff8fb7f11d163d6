"""The options of `rye history`, and a parser for their usual form.

The parser accepts what click accepts, without the import of click, which takes most of the time. It
leaves everything else (help, misuse, the other commands of the group) to click.
"""

from __future__ import annotations

from lilux.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class ListRequest(Record, frozen=True, kw_only=True):
    """Which runs are listed, as given."""

    tool: str = ""
    failed: bool = False
    since: str | None = None
    by: str = ""
    limit: int | None = None
    as_json: bool = False


_FLAGS = {"--failed": "failed", "--json": "as_json"}
_OPTIONS = ("--tool", "--since", "--by", "--limit")


def parse_without_click(arguments: Sequence[str]) -> ListRequest | None:
    """Return the request, or ``None`` if the arguments are left to click."""
    given: dict[str, str | bool | int] = {}
    rest = iter(arguments)
    for word in rest:
        if word in _FLAGS:
            given[_FLAGS[word]] = True
            continue
        name, equals, value = word.partition("=")
        text = value if equals else next(rest, None)
        if name not in _OPTIONS or text is None:
            return None
        given[name[2:]] = text
    if "limit" in given:
        limit = str(given["limit"])
        if not (limit.isascii() and limit.isdigit()) or not 0 < int(limit) < 10**9:
            return None
        given["limit"] = int(limit)
    return ListRequest(**given)  # type: ignore[arg-type]  # each name has its own type
