"""The one place where the command meets the executor."""

from __future__ import annotations

from rye.errors import RyeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from rye.context import Context
    from rye.executor.result import ExecutionResult

    OnOutput = Callable[[str, str], None]


def declared_schema(context: Context, item_id: str) -> Mapping[str, Any] | None:
    """The schema of an item's parameters, as its file has it.

    ``None`` also for an item that cannot be found or read: running it will tell why.
    """
    from rye.executor.snapshot import Library

    try:
        snapshot = Library(context).snapshot()
        return snapshot.metadata(snapshot.resolve(item_id)).config_schema
    except RyeError:
        return None


def execute(
    context: Context,
    item_id: str,
    parameters: Mapping[str, Any],
    *,
    timeout: float | None = None,
    dry_run: bool = False,
    frozen: bool = False,
    on_output: OnOutput | None = None,
) -> ExecutionResult:
    """Run the tool to its end. Raises ``Interrupted`` once an interrupted tool's tree is gone."""
    from rye.executor.blocking import execute_blocking

    return execute_blocking(
        item_id,
        parameters,
        context=context,
        timeout=timeout,
        dry_run=dry_run,
        frozen=frozen,
        on_output=on_output,
    )
