"""What a tool reports and asks during `rye run`: a line of progress, and prompts."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from rye.cli.output.printing import is_terminal, plain
from rye.executor.run.channel import DECLINED, UNAVAILABLE, Progress, Question, Reply, answered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rye.cli.output.progress import RunningTime
    from rye.cli.run.live_output import LiveOutput

_YES = frozenset({"y", "yes", "true"})
_NO = frozenset({"n", "no", "false"})


class TerminalListener:
    """Asks the person at the terminal. Without one, nobody can be asked."""

    def __init__(
        self, running_time: RunningTime, output: LiveOutput, *, stdin_is_used: bool
    ) -> None:
        self._running_time = running_time
        self._output = output
        self.can_ask = not stdin_is_used and is_terminal(sys.stdin) and is_terminal(sys.stderr)

    def progress(self, progress: Progress) -> None:
        """Show it, unless a line of output is incomplete."""
        if not self._output.is_inside_line:
            self._running_time.report(progress.progress, progress.total, progress.message)

    def ask(self, question: Question) -> Reply:
        """Prompt for each value. The end of the input declines."""
        if not self.can_ask:
            return UNAVAILABLE
        self._running_time.stop()
        self._output.end_open_line()
        _say(f"the tool asks: {question.message}")
        try:
            return answered(_ask_for("answer", question.schema))
        except EOFError:
            _say("declined")
            return DECLINED


def _ask_for(name: str, schema: Mapping[str, Any]) -> Any:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return _ask_value(name, schema, required=True)
    required = schema.get("required", ())
    values = {
        key: _ask_value(key, one if isinstance(one, Mapping) else {}, required=key in required)
        for key, one in properties.items()
    }
    return {key: value for key, value in values.items() if value is not None}


def _ask_value(name: str, schema: Mapping[str, Any], *, required: bool) -> Any:
    """Prompt until the value is valid; an empty line takes the default, or skips an option."""
    prompt = f"  {_label(name, schema)}: "
    while True:
        text = _read(prompt).strip()
        if not text and "default" in schema:
            return schema["default"]
        if not text and not required:
            return None
        value = _parsed(text, schema)
        fault = _fault(name, value, schema)
        if fault is None:
            return value
        _say(f"  {fault}")


def _label(name: str, schema: Mapping[str, Any]) -> str:
    words = str(schema.get("title") or schema.get("description") or name)
    if schema.get("type") == "boolean":
        words += " (y/n)"
    elif isinstance(schema.get("enum"), list):
        words += f" ({', '.join(map(str, schema['enum']))})"
    if "default" in schema:
        words += f" [{schema['default']}]"
    return plain(words)


def _parsed(text: str, schema: Mapping[str, Any]) -> Any:
    """Read the text as the schema's type; text that is not of this type stays text."""
    if schema.get("type") == "boolean" and text.lower() in _YES | _NO:
        return text.lower() in _YES
    if schema.get("type") in {"string", None} and not isinstance(schema.get("enum"), list):
        return text
    choices = schema.get("enum")
    if isinstance(choices, list):
        return next((choice for choice in choices if str(choice) == text), text)
    import json

    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _fault(name: str, value: Any, schema: Mapping[str, Any]) -> str | None:
    from lilux.schemas.schema_validator import validate_parameters

    verdict = validate_parameters({name: value}, {"properties": {name: dict(schema)}})
    return None if verdict.valid else "; ".join(verdict.errors).removeprefix("parameters.")


def _say(text: str) -> None:
    sys.stderr.write(f"{plain(text)}\n")
    sys.stderr.flush()


def _read(prompt: str) -> str:
    sys.stderr.write(prompt)
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line:
        sys.stderr.write("\n")
        raise EOFError
    return line
