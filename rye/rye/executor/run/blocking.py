"""A call by a program that has no event loop and does nothing else meanwhile.

::

    result = execute_blocking("rye/bash/bash", {"command": "echo hi"}, context=context)

It is the same call, station by station: the coroutine of ``PrimitiveExecutor.execute`` is driven by
hand, with a subprocess primitive that never suspends. Only a chain that ends in another primitive
needs an event loop, and gets one.
"""

from __future__ import annotations

from collections.abc import Mapping

from lilux.primitives.subprocess.blocking import BlockingSubprocess
from lilux.sha256 import prefer_interpreter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from rye.context import Context
    from rye.executor.run.result import ExecutionResult

    Parameters = Mapping[str, Any]
    ReadBySchema = Callable[[Mapping[str, Any] | None], Parameters]


def execute_blocking(
    item_id: str,
    parameters: Parameters | ReadBySchema | None = None,
    *,
    context: Context | None = None,
    validate_chain: bool = True,
    use_lockfile: bool = True,
    dry_run: bool = False,
    frozen: bool = False,
    timeout: float | None = None,
    on_output: Callable[[str, str], None] | None = None,
) -> ExecutionResult:
    """``PrimitiveExecutor(context=context).execute(…)``, to its end.

    ``parameters`` may be a function that makes them of the schema that the item declares, of which
    nothing is verified yet; what it raises is raised. ``on_output`` must be a plain function.
    ``KeyboardInterrupt`` ends the job, with all that it started, before it is raised; so does the
    death of this process.
    """
    prefer_interpreter()
    with BlockingSubprocess() as subprocess:
        if not dry_run:
            # It gets ready while the stations are imported and passed.
            subprocess.start_early()
        from rye.executor.run.blocking_executor import BlockingExecutor

        executor = BlockingExecutor(context, subprocess)
        if callable(parameters):
            parameters = parameters(executor.declared_schema(item_id))
        return executor.run(
            executor.execute(
                item_id,
                parameters,
                validate_chain=validate_chain,
                use_lockfile=use_lockfile,
                dry_run=dry_run,
                frozen=frozen,
                timeout=timeout,
                on_output=on_output,
            )
        )
