"""A record of the history as rows, steps, parts of output and a tree of processes."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rye.items.permissions import permissions_from_json
from rye.permissions.words import PARTS, explained
from rye.recording.digests import SECRET

PART_BYTES = 64 * 1024
_MAX_DEPTH = 64


class Step(NamedTuple):
    """A part of the time of a run; places are shares of the total, from 0 to 100."""

    name: str
    milliseconds: float
    start: float
    width: float


class OutputPart(NamedTuple):
    """A part of the kept output of a run."""

    streams: tuple[str, ...]
    stream: str
    text: str
    number: int
    parts: int


class Node(NamedTuple):
    """A process, and how deep it is below the first one."""

    depth: int
    process: Mapping[str, Any]


_STEPS = {
    "prepare": "Check and prepare",
    "wait": "Wait for a turn or an answer",
    "run": "Run",
}


def steps_of(durations: Mapping[str, float]) -> list[Step]:
    """Return what a run spent its time on, in order; the rest is called finishing."""
    total = max(durations["total"], 0.001)
    found = [(_STEPS.get(name, name), ms) for name, ms in durations.items() if name != "total"]
    rest = durations["total"] - sum([ms for _, ms in found])
    if not found or rest >= 0.05:
        found.append(("Finish and record", max(rest, 0.0)))
    steps, at = [], 0.0
    for name, ms in found:
        start = min(at / total * 100, 100.0)
        steps.append(Step(name, ms, round(start, 3), round(min(ms / total * 100, 100 - start), 3)))
        at += ms
    return steps


def output_part(outputs: Mapping[str, bytes], stream: str, part: str) -> OutputPart | None:
    """Return one part of an output that was kept; ``None`` if nothing was."""
    streams = tuple(sorted(outputs, key=lambda name: (name != "stdout", name)))
    if not streams:
        return None
    if stream not in outputs:
        stream = next((name for name in streams if outputs[name]), streams[0])
    data = outputs[stream]
    parts = max(-(-len(data) // PART_BYTES), 1)
    number = int(part) if part.isascii() and part.isdecimal() and len(part) < 10 else 1
    number = min(max(number, 1), parts)
    start = (number - 1) * PART_BYTES
    # A character that the cut divides, like any byte that is not UTF-8, is shown as a replacement.
    text = data[start : start + PART_BYTES].decode("utf-8", "replace")
    return OutputPart(streams, stream, text.replace("\r\n", "\n"), number, parts)


def process_tree(processes: Sequence[Mapping[str, Any]]) -> list[Node]:
    """Return the processes of an autopsy, each after its parent."""
    children: dict[int | None, list[Mapping[str, Any]]] = {}
    known = {one["pid"] for one in processes}
    for one in processes:
        parent = one.get("parent")
        root = parent not in known or parent == one["pid"]
        children.setdefault(None if root else parent, []).append(one)
    found: list[Node] = []
    waiting = [Node(0, one) for one in reversed(children.get(None, []))]
    while waiting:
        node = waiting.pop()
        found.append(node)
        below = children.pop(node.process["pid"], [])
        waiting += [Node(min(node.depth + 1, _MAX_DEPTH), one) for one in reversed(below)]
    # Parents in a circle, as an import may claim, have no first one.
    rest = [one for group in children.values() for one in group]
    shown = {id(node.process) for node in found}
    return found + [Node(0, one) for one in rest if id(one) not in shown]


def facts_of(record: Mapping[str, Any], owner_of: Callable[[str], str]) -> list[tuple[str, str]]:
    """Return what is known about a run as names and texts, without empty ones.

    ``owner_of`` names the owner of a key by its fingerprint; empty if it is not known.
    """
    return [(name, text) for name, text in _facts(record, owner_of) if text]


def _facts(record: Mapping[str, Any], owner_of: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    get = record.get
    yield "Run", record["id"]
    yield "Exit code", "" if get("exit") is None else str(get("exit"))
    yield "Signal", _signal(get("signal"))
    yield "Error", get("error_type") or ""
    yield "Limit", str(get("limit") or "")
    yield "Called by", " ".join([str(get(n)) for n in ("by", "client", "program") if get(n)])
    yield "Token", get("token") or ""
    yield "Trace", get("trace_id") or ""
    yield "Project", record["project"]
    yield "Version", str(get("version") or "")
    yield "Closure", get("closure") or ""
    owners = [(owner_of(one), one) for one in get("signers") or ()]
    yield "Signed by", ", ".join([f"{name} ({one})" if name else one for name, one in owners])
    interpreter = get("interpreter") or {}
    known = [str(interpreter[n]) for n in ("path", "version") if interpreter.get(n)]
    yield "Interpreter", " ".join(known)
    yield "Parameters", _parameters(record["parameters"])
    yield "Environment", " ".join(get("environment") or ())
    yield from _permissions(record)
    survivors = " ".join(map(str, get("survivors") or ()))
    yield "Survivors", survivors and f"processes {survivors}"
    yield "Redacted", "private parts were removed" if get("redacted") else ""
    yield "Imported", "this account cannot say whether it is true" if get("imported") else ""


def _signal(number: int | None) -> str:
    if not number:
        return ""
    try:
        return f"{number} ({signal.Signals(number).name})"
    except ValueError:
        return str(number)


def _permissions(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    permissions = permissions_from_json(record.get("permissions"))
    if permissions is None:
        if record.get("closure"):
            yield "Permissions", "unconfined: everything that the user can do"
        return
    yield "Permissions", "; ".join([f"{word} {text}" for word, text in explained(permissions)])
    enforced = record.get("enforced") or {}
    yield (
        "Enforced",
        "; ".join([f"{PARTS.get(part, part)} ({by})" for part, by in enforced.items()]),
    )
    missing = [PARTS.get(one["part"], one["part"]) for one in record.get("missing") or ()]
    yield "Not enforced", "; ".join(missing)


def _parameters(parameters: Mapping[str, Any]) -> str:
    values = parameters.get("values")
    if values is None:
        digest = parameters.get("sha256")
        return f"not kept; SHA-256 {digest}" if digest else ""
    return values_text(values)


def values_text(values: Mapping[str, Any]) -> str:
    """Return parameters as JSON, without the secret ones."""
    shown = {name: "(secret)" if one == SECRET else one for name, one in values.items()}
    return json.dumps(shown, ensure_ascii=False)
