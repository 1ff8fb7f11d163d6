"""The text of an autopsy: what the processes of a tool waited for when its time was over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_LINES = 11
"""With the error itself, the text has one line more."""
_MAX_PROCESSES = 5
_MAX_FRAMES = 3
_MAX_OUTPUT = 2
_MAX_WIDTH = 200
_MUCH_CPU, _MUCH_MEMORY = 0.1, 100_000_000
_FOR_A_CHILD = ("waiting for child", "waiting for a child", "waiting for one of")
_SHIMS = ("rye_start.py", "rye_run_tool.py")


def autopsy_lines(autopsy: Mapping[str, Any]) -> Iterator[str]:
    """Yield at most :data:`MAX_LINES` lines for a person or a model."""
    processes: Sequence[Mapping[str, Any]] = autopsy["processes"]
    shown = _most_telling(processes)
    if shown:
        yield "when the time was over:"
    stack_shown = False
    for process in shown:
        name = f"{process['pid']} {process['command']}{_usage(process)}"
        yield _cut(f"  {name}: {process['waits_for']}")
        calls = "" if stack_shown else _calls(process.get("stack") or "")
        if calls:
            stack_shown = True
            yield _cut(f"    Python: {calls}")
    rest = len(processes) - len(shown) + autopsy["unexamined"]
    if shown and rest:
        yield f"  and {rest} more {'process' if rest == 1 else 'processes'}"
    if missing := autopsy.get("missing"):
        yield _cut(f"what it waited for is not {'fully ' if shown else ''}known: {missing}")
    output = autopsy["output"]["stderr"] or autopsy["output"]["stdout"]
    for line in output.splitlines()[-_MAX_OUTPUT:]:
        yield _cut(f"last output: {line.strip()}")


def _most_telling(processes: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Leave out those that only wait for another process of the job, if there are too many."""
    if len(processes) <= _MAX_PROCESSES:
        return list(processes)
    causes = [one for one in processes if not one["waits_for"].startswith(_FOR_A_CHILD)]
    return (causes or list(processes))[:_MAX_PROCESSES]


def _usage(process: Mapping[str, Any]) -> str:
    cpu, memory = process.get("cpu_seconds", 0), process.get("memory_bytes", 0)
    notes = []
    if cpu >= _MUCH_CPU:
        notes.append(f"{cpu:.1f} s CPU")
    if memory >= _MUCH_MEMORY:
        notes.append(f"{memory / 1e6:.0f} MB")
    return f" ({', '.join(notes)})" if notes else ""


def _calls(stack: str) -> str:
    """The innermost calls of the main thread: ``fetch (tool.py:12), called by main (tool.py:40)``.

    ``faulthandler`` calls the thread that got the signal the current one.
    """
    import re

    thread = stack.rpartition("Current thread")[2].partition("\n\n")[0]
    frames = re.findall(r'^ *File "(?:[^"]*/)?([^"/]*)", line (\d+) in (.+)$', thread, re.MULTILINE)
    calls = [f"{name} ({file}:{line})" for file, line, name in frames if file not in _SHIMS]
    return ", called by ".join(calls[:_MAX_FRAMES])


def _cut(line: str) -> str:
    line = " ".join(line.splitlines())
    return line if len(line) <= _MAX_WIDTH else line[: _MAX_WIDTH - 1] + "…"
