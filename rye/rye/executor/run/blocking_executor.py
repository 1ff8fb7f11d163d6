"""The executor whose coroutines can be driven without an event loop."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping

from rye.context import Context
from rye.errors import RyeError
from rye.executor.run.execute import PrimitiveExecutor
from rye.executor.run.primitives import SUBPROCESS, OnOutput, PrimitivePool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from lilux.primitives.subprocess.blocking import BlockingSubprocess

    Result = TypeVar("Result")


class BlockingExecutor(PrimitiveExecutor):
    """A ``PrimitiveExecutor`` that never suspends; one call at a time."""

    def __init__(self, context: Context | None, subprocess: BlockingSubprocess) -> None:
        self._subprocess = subprocess
        super().__init__(context=context)

    def _pool(self) -> PrimitivePool:
        return BlockingPool(self.PRIMITIVE_MAP, self._subprocess)

    def declared_schema(self, item_id: str) -> Mapping[str, Any] | None:
        """What the item's file says of its parameters. Nothing is verified.

        ``None`` also for an item that cannot be found or read: a call will tell why.
        """
        snapshot = self._library.snapshot()
        try:
            return snapshot.metadata(snapshot.resolve(item_id)).config_schema
        except RyeError:
            return None

    def run(self, call: Coroutine[Any, Any, Result]) -> Result:
        """What a call of this executor gives."""
        while True:
            try:
                awaited = call.send(None)
            except StopIteration as end:
                self._library.disk_cache.flush()
                result: Result = end.value
                return result
            # Nothing waited for is a turn for other tasks, of which there are none.
            if awaited is not None:
                call.close()
                raise RuntimeError("a blocking call waited; this is a defect of rye: please report")


class BlockingPool(PrimitivePool):
    """Runs processes itself, and every other primitive in an event loop of its own."""

    def __init__(self, primitives: Mapping[str, type[Any]], subprocess: BlockingSubprocess) -> None:
        super().__init__(primitives)
        self._primitives = primitives
        self._subprocess = subprocess

    async def run(
        self,
        primitive_id: str,
        config: dict[str, Any],
        params: dict[str, Any],
        on_output: OnOutput | None = None,
    ) -> Any:
        """What the primitive gives."""
        if primitive_id == SUBPROCESS:
            return self._subprocess.execute(config, params, on_output=on_output)
        from rye.executor.run.interruptible_loop import run_interruptibly

        async def in_a_loop() -> Any:
            pool = PrimitivePool(self._primitives)
            try:
                return await pool.run(primitive_id, config, params, on_output)
            finally:
                await pool.aclose()

        return run_interruptibly(in_a_loop())

    async def beside(self, work: Callable[[], Result]) -> Result:
        """There is nothing else under way."""
        return work()
