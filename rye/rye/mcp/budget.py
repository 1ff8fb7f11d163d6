"""Fits the text of a result into what a model should read: the head, the tail, and how to get more.

A result has a budget in characters (``mcp: {max_output: N}`` in the user's config). A longer one
begins with a line that says what was left out, and the whole output is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rye.errors import ItemFormatError

if TYPE_CHECKING:
    from rye.items.user_config import UserConfig
    from rye.mcp.outputs import Outputs

DEFAULT_BUDGET = 24_000
MIN_BUDGET = 1_000
MAX_BUDGET = 10_000_000

_NOTE_ROOM = 300
_MAX_MESSAGE = 4_000


def budget_of(config: UserConfig, wanted: int | None) -> int:
    """Return the budget of the user, or what a caller wants if that is less.

    Raises ``ItemFormatError`` if the section ``mcp`` of the config is invalid.
    """
    section = config.current().get("mcp", {})
    hint = f"write `mcp: {{max_output: {DEFAULT_BUDGET}}}`, or leave `mcp` out"
    if not isinstance(section, dict) or set(section) - {"max_output"}:
        raise ItemFormatError(config.path, "expected only 'max_output' in 'mcp'", hint=hint)
    budget = section.get("max_output", DEFAULT_BUDGET)
    if type(budget) is not int or not MIN_BUDGET <= budget <= MAX_BUDGET:
        raise ItemFormatError(
            config.path,
            f"expected a number from {MIN_BUDGET:,} to {MAX_BUDGET:,} in 'mcp.max_output'",
            hint=hint,
        )
    return budget if wanted is None else min(budget, wanted)


class Text(NamedTuple):
    """The text of a result, in parts."""

    message: str = ""
    """What went wrong; empty for a success."""
    stdout: str = ""
    stderr: str = ""
    not_kept: int = 0
    """Bytes of the output that were dropped while the tool ran."""

    def whole(self) -> str:
        """Return all of it."""
        parts = [self.message, self.stdout]
        if self.stderr.strip():
            parts.append(f"stderr:\n{self.stderr}")
        parts = [part for part in parts if part]
        # Only the last part keeps its end: the output of a tool is passed on as it is.
        return "\n\n".join([*[part.rstrip() for part in parts[:-1]], *parts[-1:]])


class Fitted(NamedTuple):
    """Text that fits, and the id of the whole output if something was left out."""

    text: str
    is_cut: bool = False
    output_id: str = ""
    streams: tuple[str, ...] = ()


def fit(text: Text, budget: int, outputs: Outputs) -> Fitted:
    """Return the text, cut if it has more characters than the budget."""
    whole = text.whole()
    if len(whole) <= budget and not text.not_kept:
        return Fitted(whole)
    kept = {"stdout": text.stdout, "stderr": text.stderr}
    streams = {name: one.encode("utf-8", "replace") for name, one in kept.items() if one}
    try:
        output_id = outputs.keep(streams)
    except OSError:
        output_id = ""
    message = text.message[:_MAX_MESSAGE]
    room = max(0, budget - len(message) - _NOTE_ROOM)
    for_stderr = min(len(text.stderr), max(room // 4, room - len(text.stdout)))
    stderr, less_stderr = _clipped(text.stderr, for_stderr)
    stdout, less_stdout = _clipped(text.stdout, room - for_stderr)
    notes = []
    if left_out := less_stdout + less_stderr:
        size = len(text.stdout) + len(text.stderr)
        notes.append(f"{left_out:,} of {size:,} characters are left out")
    if text.not_kept:
        notes.append(f"{text.not_kept:,} bytes in the middle were dropped while the tool ran")
    if output_id:
        notes.append(f"read the output with the tool `output`, id {output_id}")
    shown = Text(message, stdout, stderr).whole()
    streams_kept = tuple(streams) if output_id else ()
    return Fitted(f"[{'; '.join(notes)}]\n{shown}", True, output_id, streams_kept)


def _clipped(text: str, room: int) -> tuple[str, int]:
    """Keep the beginning and the end, and return how many characters between them are left out.

    The cuts are at the ends of lines if these are near.
    """
    if len(text) <= room:
        return text, 0
    head, tail = text[: room * 2 // 3], text[len(text) - room // 3 :]
    line_end = head.rfind("\n", len(head) // 2)
    if line_end >= 0:
        head = head[:line_end]
    line_start = tail.find("\n", 0, len(tail) // 2)
    if line_start >= 0:
        tail = tail[line_start + 1 :]
    left_out = len(text) - len(head) - len(tail)
    return f"{head}\n[… {left_out:,} characters …]\n{tail}", left_out
