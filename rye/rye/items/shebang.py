"""The first line of a script: which interpreter runs it, and with which arguments."""

from __future__ import annotations

from lilux.record import Record

from rye.items.declarations import RefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

RUNTIME = "script_runtime"
"""The runtime that starts the interpreter of the first line, by the last part of its id."""
VARIABLE = "RYE_INTERPRETER"


class Shebang(Record, frozen=True):
    """``#!/usr/bin/env perl``: the program is a name on PATH or an absolute path."""

    program: str
    arguments: tuple[str, ...]


def shebang_of(text: str) -> Shebang | None:
    """Read the first line of ``text``; ``None`` if it is not a shebang.

    Raises :class:`RefusedError` if the line names no program, or one by a relative path, which
    would depend on the working directory.
    """
    if not text.startswith("#!"):
        return None
    words = text.partition("\n")[0][2:].split()
    if words[:1] and words[0].rpartition("/")[2] == "env":
        words = [word for word in words[1:] if word != "-S"]
        named = True
    else:
        named = False
    program = words[0] if words else ""
    if not program or program[0] == "-" or "=" in program:
        raise RefusedError("the first line names no interpreter; write #!/usr/bin/env NAME", 1)
    if not (program.startswith("/") or (named and "/" not in program)):
        raise RefusedError(
            f"the first line names '{program}', which is a relative path; "
            "write an absolute one, or #!/usr/bin/env NAME",
            1,
        )
    return Shebang(program, tuple(words[1:]))


def interpreter_rule(text: str) -> dict[str, Any]:
    """The rule with which the environment finds the interpreter of a script.

    Raises :class:`RefusedError`, also for a file without a shebang.
    """
    found = shebang_of(text)
    if found is None:
        raise RefusedError(f"has no shebang, but runs on {RUNTIME}; write #!/usr/bin/env NAME", 1)
    return {
        "type": "system_binary",
        "binary": found.program,
        "var": VARIABLE,
        "fallback": found.program,
    }


def is_script_runtime(executor_id: object) -> bool:
    """True if the executor starts the interpreter of the first line."""
    return isinstance(executor_id, str) and executor_id.rpartition("/")[2] == RUNTIME
