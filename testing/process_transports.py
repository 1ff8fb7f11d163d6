"""The process client with both transports, for tests that must pass with each."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lilux.primitives.subprocess import BlockingSubprocess, SubprocessPrimitive, SubprocessResult

TRANSPORTS = ("asyncio", "blocking")
Execute = Callable[..., SubprocessResult]


@contextlib.contextmanager
def open_transport(name: str) -> Iterator[Execute]:
    """Yield a plain ``execute(config, params, on_output=…)``. All calls share one helper."""
    if name == "blocking":
        with BlockingSubprocess() as blocking:
            yield blocking.execute
        return
    with asyncio.Runner() as runner:

        def execute(
            config: Mapping[str, Any], params: Mapping[str, Any] | None = None, **options: Any
        ) -> SubprocessResult:
            return runner.run(SubprocessPrimitive().execute(config, params, **options))

        yield execute
