"""A batch as a page sees it: one call with a progress, which may be stopped."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rye.executor.run.announcer import Announcer
from rye.recording.record import BATCH, CANCELLED, FAILED, OK
from rye.recording.run_ids import is_run_id, new_run_id

if TYPE_CHECKING:
    from rye.batches.driver import Driver
    from rye.batches.folder import BatchFolder
    from rye.context import Context

STOPPED = "cancelled on the page of `rye ui`"


@contextmanager
def announced(driver: Driver, folder: BatchFolder, context: Context) -> Iterator[None]:
    """Pages see the batch during the block. To be used in an event loop."""
    announcer, batch = Announcer(context.user_space), _LiveBatch(driver, folder, context)
    announcer.announce(batch)
    try:
        yield
    finally:
        summary = driver.summary
        outcome = FAILED if summary.failures else OK
        announcer.withdraw(batch, CANCELLED if summary.stopped else outcome)
        announcer.close()


class _LiveBatch:
    def __init__(self, driver: Driver, folder: BatchFolder, context: Context) -> None:
        self._driver = driver
        self._tool = folder.manifest()["tool"]
        self._project = str(context.project_path)
        # The name of its folder, unless the user chose another one.
        name = folder.path.name
        self.run_id = name if is_run_id(name) else new_run_id(int(time.time() * 1000))

    def described(self) -> dict[str, Any]:
        item = {"item": self._tool, "client": "", "kind": BATCH}
        return {**item, "project": self._project, "parameters": {}}

    def state(self) -> dict[str, Any]:
        summary = self._driver.summary
        failed = f"{summary.failures} without success" if summary.failures else ""
        return {"part": [summary.done, summary.total, failed], "questions": []}

    def look(self, on_sight: Any, stdout_from: int, stderr_from: int, limit: int) -> bool:  # noqa: ARG002 - of many calls, no output is shown
        return False

    def cancel(self) -> str:
        self._driver.stop(STOPPED)
        return ""

    def answer(self, question: str, answer: Mapping[str, Any]) -> str:  # noqa: ARG002
        return "a batch asks nothing"
