"""What differs between a recorded run and its replay: the first difference, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Difference(NamedTuple):
    """One difference; ``text`` is a line for a person."""

    what: str
    before: Any
    after: Any
    text: str


def interpreter_difference(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> Difference | None:
    """Compare two programs by their content, or by their path if nothing more is known."""
    old, new = before.get("version"), after.get("version")
    name = str(after.get("path") or before.get("name") or before.get("path", "")).rpartition("/")[2]
    if "sha256" in before and "sha256" in after:
        same = before["sha256"] == after["sha256"]
    else:
        same = old == new and before.get("path", after.get("path")) == after.get("path")
    if same:
        return None
    if old and new and old != new:
        return Difference("interpreter", old, new, f"interpreter: {name} {old} → {new}")
    was, now = (str(one.get("path") or one.get("name")) for one in (before, after))
    if was == now:
        return Difference("interpreter", was, now, f"interpreter: {name} is another file now")
    return Difference("interpreter", was, now, f"interpreter: {was} → {now}")


def environment_difference(
    before: Sequence[str], after: Sequence[str], may_vary: frozenset[str] = frozenset()
) -> Difference | None:
    """Compare the names of variables."""
    gone = sorted(set(before) - set(after) - may_vary)
    new = sorted(set(after) - set(before) - may_vary)
    if not gone and not new:
        return None
    words = [f"without {', '.join(gone)}"] if gone else []
    words += [f"with {', '.join(new)}"] if new else []
    return Difference(
        "environment", sorted(before), sorted(after), f"environment: now {' and '.join(words)}"
    )


def outcome_difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> Difference | None:
    """Compare how two runs ended."""
    old, new = _ending(before), _ending(after)
    return None if old == new else Difference("exit", old, new, f"exit: {old} → {new}")


def stream_difference(
    stream: str,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    old: bytes | None,
    new: bytes | None,
) -> Difference | None:
    """Compare an output by its digest, and find the line if both contents are known."""
    if before.get("sha256") == after.get("sha256"):
        return None
    line = None if old is None or new is None else first_different_line(old, new)
    where = "" if line is None else f" at line {line}"
    return Difference(stream, before.get("sha256"), after.get("sha256"), f"{stream} differs{where}")


def first_different_line(old: bytes, new: bytes) -> int | None:
    """Return the number of the first line that differs; ``None`` if the contents are the same."""
    before, after = old.split(b"\n"), new.split(b"\n")
    for number, (one, other) in enumerate(zip(before, after, strict=False), start=1):
        if one != other:
            return number
    return None if len(before) == len(after) else min(len(before), len(after)) + 1


def _ending(run: Mapping[str, Any]) -> str:
    if run.get("signal"):
        return f"signal {run['signal']}"
    if run["outcome"] in ("ok", "failed") and run.get("exit") is not None:
        return f"{run['exit']}"
    return str(run["outcome"])
