"""`rye run -v` and `--debug`: what runs, how it was found, and how long each step took.

Everything goes to stderr. Values of parameters and of the environment are shown as in a dry run.
"""

from __future__ import annotations

import time

from rye.cli.output.printing import echo, plain, shorten_paths
from rye.cli.run.result_text import plan_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rye.context import Context
    from rye.executor.run.prepare import PreparedCall
    from rye.executor.run.result import ExecutionResult


class Details:
    """Prints the plan of a call before it runs, and with ``debug`` the origin of each file."""

    def __init__(self, *, debug: bool) -> None:
        self._debug = debug
        self._since = time.perf_counter()
        self._steps: list[tuple[str, float]] = []

    def step(self, name: str) -> None:
        """Remember that a step has ended."""
        now = time.perf_counter()
        self._steps.append((name, now - self._since))
        self._since = now

    def prepared(self, call: PreparedCall, context: Context) -> None:
        """Print what is about to run."""
        from rye.executor.run.plan import planned

        plan = planned(call, context).metadata["plan"]
        _print(plan_lines(plan, verb="runs"))
        if self._debug:
            _print(_origins(call, context))
        self._since = time.perf_counter()

    def ended(self, result: ExecutionResult) -> None:
        """Print how long the call took, and with ``debug`` each of its steps."""
        if self._debug:
            _print(_row("", f"{1000 * seconds:8.1f} ms  {name}") for name, seconds in self._steps)
        state = "succeeded" if result.success else "failed"
        _print([f"{state} after {result.duration_ms:.0f} ms"])


def _origins(call: PreparedCall, context: Context) -> Iterator[str]:
    yield _row("project", context.project_path)
    yield _row("user space", context.user_space)
    for element in call.chain:
        found = element.resolution
        yield _row("found", f"{element.item_id} in {element.path or 'Rye itself'}")
        if found.asked not in ("", element.item_id):
            yield _row("", f"asked for as {found.asked!r}")
        for path in found.absent:
            yield _row("", f"not in {path}.*")
    for name in call.dependencies:
        yield _row("dependency", name)
    for name in call.programs:
        yield _row("program", name)


def _row(name: str, text: object) -> str:
    return f"  {name:<13}{shorten_paths(plain(str(text)))}"


def _print(lines: Iterator[str] | list[str]) -> None:
    for line in lines:
        echo(line, err=True)
