"""The one place where the command meets the executor."""

from __future__ import annotations

from rye.errors import RyeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from rye.cli.interruption import Interruption
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
    interruption: Interruption,
    timeout: float | None = None,
    dry_run: bool = False,
    frozen: bool = False,
    on_output: OnOutput | None = None,
) -> ExecutionResult:
    """Run the tool to its end. Raises ``Interrupted`` once an interrupted tool's tree is gone."""
    import asyncio

    from rye.executor.primitive_executor import PrimitiveExecutor

    async def call() -> ExecutionResult:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - asyncio.run makes one
        interruption.cancel(task)
        async with PrimitiveExecutor(context=context) as executor:
            return await executor.execute(
                item_id,
                parameters,
                timeout=timeout,
                dry_run=dry_run,
                frozen=frozen,
                on_output=on_output,
            )

    try:
        return asyncio.run(call())
    except asyncio.CancelledError:
        interruption.raise_received()
        raise
    finally:
        interruption.cancel(None)
