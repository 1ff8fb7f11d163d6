"""What the author of a tool can do about its failure, or about output that is not quite JSON.

It is for the person who called the tool. An agent does not read it: it names commands that sign.
"""

from __future__ import annotations

import re
import shlex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rye.executor.run.result import ExecutionResult

_NO_MODULE = "ModuleNotFoundError: "
_MAX_READ = 64 * 1024


def advice_of(result: ExecutionResult) -> str:
    """What to do about a tool of the project or the user that failed; empty if that is not known.

    The place of the error is the last line of the tool's own file in a Python traceback, and the
    first one in the messages of other languages.
    """
    tool = result.chain[0]
    path = tool.get("path")
    if tool["space"] == "system" or not path:
        return ""
    name = shlex.quote(str(tool["item_id"]))
    text = _stderr(result)
    if text.rstrip().rpartition("\n")[2].startswith(_NO_MODULE):
        return f"see what is missing, and how to install it, with: rye check {name}"
    lines = re.findall(rf"{re.escape(str(path))}(?:\", line |: line |:)(\d+)", text)
    if not lines:
        return ""
    line = lines[-1] if "Traceback (most recent call last):" in text else lines[0]
    return f"to correct line {line} of {path}, run: rye edit {name}"


def note_about_json(data: Any) -> str:
    """Say why output that ends in JSON is a text, and how to make it data; empty otherwise."""
    text = data.get("stdout") if isinstance(data, dict) else None
    if not isinstance(text, str) or not text.rstrip().endswith(("}", "]")):
        return ""
    first, _, rest = text[:_MAX_READ].strip().partition("\n")
    if not rest or len(text) > _MAX_READ:
        return ""
    import json

    last = rest.rpartition("\n")[2]
    try:
        json.loads(last if last[:1] in ("{", "[") else rest)
    except ValueError:
        return ""
    return (
        f"the result is text and not data, because other output comes before the JSON "
        f"({first[:40]!r}); print it to stderr instead"
    )


def _stderr(result: ExecutionResult) -> str:
    data = result.data
    text = data.get("stderr") if isinstance(data, dict) else None
    return text if isinstance(text, str) and text else result.error or ""
