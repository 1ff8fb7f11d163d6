"""The arguments of `rye run`, and a parser for their usual form.

The parser accepts what click accepts, without the import of click, which takes a third of the
start-up time. It leaves everything else (help, misuse, abbreviated options) to click.
"""

from __future__ import annotations

from lilux.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class RunRequest(Record, frozen=True):
    """The arguments of `rye run`."""

    item_id: str
    pairs: tuple[str, ...] = ()
    """``key=value``, as given."""
    params: str | None = None
    """JSON, ``@file`` or ``-``."""
    json: bool = False
    timeout: float | None = None
    dry_run: bool = False
    frozen: bool = False
    allow: tuple[str, ...] = ()
    """What the tool may do in this call beyond its permissions, as given."""

    @property
    def has_parameters(self) -> bool:
        """True if parameters were given."""
        return bool(self.pairs) or self.params is not None


_FLAGS = {"--json": "json", "--dry-run": "dry_run", "--frozen": "frozen"}
_ALLOW = "--allow"
_OPTIONS = {"--params": "params", "--timeout": "timeout"}


def parse_without_click(arguments: Sequence[str]) -> RunRequest | None:
    """Return the request, or ``None`` if the arguments are left to click."""
    words: list[str] = []
    options: dict[str, str | bool] = {}
    allow: list[str] = []
    rest = iter(arguments)
    for word in rest:
        if word == "--":
            words += rest
        elif not word.startswith("-") or word == "-":
            words.append(word)
        elif word in _FLAGS:
            options[_FLAGS[word]] = True
        else:
            name, equals, value = word.partition("=")
            given = value if equals else next(rest, None)
            if name == _ALLOW and given is not None:
                allow.append(given)
                continue
            if name not in _OPTIONS or given is None:
                return None
            options[_OPTIONS[name]] = given
    if not words or not words[0]:
        return None
    return _request(words, options, allow)


def _request(
    words: list[str], options: dict[str, str | bool], allow: list[str]
) -> RunRequest | None:
    params, timeout = options.get("params"), options.get("timeout")
    try:
        seconds = None if timeout is None else float(timeout)
    except ValueError:
        return None
    return RunRequest(
        item_id=words[0],
        pairs=tuple(words[1:]),
        params=None if params is None else str(params),
        json="json" in options,
        timeout=seconds,
        dry_run="dry_run" in options,
        frozen="frozen" in options,
        allow=tuple(allow),
    )
