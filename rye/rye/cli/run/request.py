"""What `rye run` is asked to do, and a reader for the plain form of its arguments.

The reader understands the same as click's, only without importing it, which would cost a third of
the start. What it does not understand (help, misuse, what a newer option may bring) it leaves to
click, so that there is one truth about usage.
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

    @property
    def has_parameters(self) -> bool:
        """Whether there are any to read."""
        return bool(self.pairs) or self.params is not None


_FLAGS = {"--json": "json", "--dry-run": "dry_run", "--frozen": "frozen"}
_VALUED = {"--params": "params", "--timeout": "timeout"}


def read_plainly(arguments: Sequence[str]) -> RunRequest | None:
    """The request, or ``None`` if the arguments are not of the plain form."""
    words: list[str] = []
    options: dict[str, str | bool] = {}
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
            if name not in _VALUED or given is None:
                return None
            options[_VALUED[name]] = given
    if not words or not words[0]:
        return None
    return _request(words, options)


def _request(words: list[str], options: dict[str, str | bool]) -> RunRequest | None:
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
    )
