"""The tool ``output``: lines of an output that was cut."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from rye.mcp.budget import DEFAULT_BUDGET
from rye.mcp.outputs import Outputs

_DEFAULT_LINES = 200
_MAX_LINE = 2_000


def output_text(
    outputs: Outputs,
    *,
    id: str,  # noqa: A002 - the name of the argument
    stream: str = "stdout",
    offset: int = 0,
    limit: int = _DEFAULT_LINES,
    grep: str | None = None,
    tail: int | None = None,
    budget: int = DEFAULT_BUDGET,
) -> str:
    """Return numbered lines, after a line that says which they are. Raises ``RyeError``.

    ``offset`` is the number of lines to skip, of those that contain ``grep``.
    """
    numbered: Iterable[tuple[int, str]] = enumerate(outputs.lines(id, stream), start=1)
    if grep is not None:
        numbered = ((number, line) for number, line in numbered if grep in line)
    if tail is not None:
        counted = _Counted(numbered)
        last = list(deque(counted, maxlen=tail))
        first = counted.count - len(last)
        return _shown(last, first, counted.count, grep, budget)
    counted = _Counted(numbered)
    chosen = [one for at, one in enumerate(counted) if offset <= at < offset + limit]
    return _shown(chosen, offset, counted.count, grep, budget)


class _Counted:
    """Counts what is iterated over."""

    def __init__(self, numbered: Iterable[tuple[int, str]]) -> None:
        self._numbered = numbered
        self.count = 0

    def __iter__(self) -> Iterator[tuple[int, str]]:
        for one in self._numbered:
            self.count += 1
            yield one


def _shown(
    chosen: list[tuple[int, str]], first: int, count: int, grep: str | None, budget: int
) -> str:
    lines: list[str] = []
    room = budget
    for number, line in chosen:
        text = line if len(line) <= _MAX_LINE else f"{line[:_MAX_LINE]}… ({len(line):,} characters)"
        room -= len(text) + 10
        if room < 0:
            break
        lines.append(f"{number}\t{text}")
    what = "lines" if grep is None else "lines that contain the text"
    if not lines:
        return f"[none of {count:,} {what}]"
    end = first + len(lines)
    more = f"; continue with offset {end}" if end < count else ""
    return "\n".join([f"[{first + 1:,} to {end:,} of {count:,} {what}{more}]", *lines])
