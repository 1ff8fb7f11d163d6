"""The arguments of `rye run`, and a parser for their usual form.

The parser accepts what click accepts, without the import of click, which takes a third of the
start-up time. It leaves help and misuse to click.
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
    """The parameters as given: ``key=value``, or ``--key`` and ``value``."""
    params: str | None = None
    """JSON, ``@file`` or ``-``."""
    json: bool = False
    timeout: float | None = None
    dry_run: bool = False
    frozen: bool = False
    allow: tuple[str, ...] = ()
    """What the tool may do in this call beyond its permissions, as given."""
    quiet: bool = False
    verbose: bool = False
    debug: bool = False

    @property
    def has_parameters(self) -> bool:
        """True if parameters were given."""
        return bool(self.pairs) or self.params is not None

    @property
    def reads_stdin(self) -> bool:
        """True if a parameter is read from stdin."""
        return self.params == "-" or any(
            pair.endswith("=-") and not pair.startswith("--") for pair in self.pairs
        )


_FLAGS = {
    "--json": "json",
    "--dry-run": "dry_run",
    "--frozen": "frozen",
    # No long forms: tools have parameters called --quiet and --verbose.
    "-q": "quiet",
    "-v": "verbose",
    "--debug": "debug",
}
_ALLOW = "--allow"
_OPTIONS = {"--params": "params", "--timeout": "timeout", _ALLOW: "allow"}
VALUE_OPTIONS = tuple(_OPTIONS)
HELP = frozenset({"-h", "--help"})
OWN_OPTIONS = (*_FLAGS, *_OPTIONS, *HELP)


def split_arguments(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Separate Rye's own options from the words of the call: the tool, then its parameters.

    An own option may stand anywhere before ``--``; its value is joined to it by ``=``. Any other
    option after the tool is a parameter of the tool. What cannot be understood is left among the
    own options.
    """
    own: list[str] = []
    words: list[str] = []
    rest = iter(arguments)
    for word in rest:
        if word == "--":
            words += rest
        elif word in _OPTIONS:
            value = next(rest, None)
            own.append(word if value is None else f"{word}={value}")
        elif word in OWN_OPTIONS or word.partition("=")[0] in _OPTIONS:
            own.append(word)
        elif not word.startswith("-") or word == "-" or _is_of_tool(word, words):
            words.append(word)
        else:
            own.append(word)
    return own, words


def _is_of_tool(word: str, words: list[str]) -> bool:
    """True for ``--key`` after the tool, and for a value after it such as ``-3``."""
    if not words:
        return False
    after_key = len(words) > 1 and words[-1].startswith("--") and "=" not in words[-1]
    return after_key or word.startswith("--")


def parse_without_click(arguments: Sequence[str]) -> RunRequest | None:
    """Return the request, or ``None`` if the arguments are left to click."""
    own, words = split_arguments(arguments)
    if not words or not words[0]:
        return None
    options: dict[str, str | bool] = {}
    allow: list[str] = []
    for one in own:
        name, equals, value = one.partition("=")
        if one in _FLAGS:
            options[_FLAGS[one]] = True
        elif not equals or name not in _OPTIONS:
            return None
        elif name == _ALLOW:
            allow.append(value)
        else:
            options[_OPTIONS[name]] = value
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
        quiet="quiet" in options,
        verbose="verbose" in options,
        debug="debug" in options,
    )
