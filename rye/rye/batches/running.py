"""From the folder of a batch to its end: what `rye batch` and its resume have in common."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from rye.batches.announced import announced
from rye.batches.driver import Driver, Options, Summary
from rye.batches.original import has_changed, original_tool
from rye.batches.plan import check_unchanged, may_repeat, remaining, retries_of
from rye.errors import BatchError
from rye.recording.record import Caller

if TYPE_CHECKING:
    from typing import Any

    from rye.batches.backends import Backend
    from rye.batches.folder import BatchFolder
    from rye.batches.records import BatchResult
    from rye.context import Context
    from rye.executor.run.prepare import VerifiedChain
    from rye.history.signing import ReceiptSigner

CALLER = Caller(kind="batch")
_RECEIPTS_AT_ONCE = 1000
_SECONDS_BETWEEN_LOOKS = 2.0


def backend_of(item_id: str, context: Context, options: Mapping[str, Any]) -> Backend:
    """Where the calls of a batch with these options run."""
    if options.get("on") == "ray":
        from rye.batches.backends.ray_backend import RayBackend

        return RayBackend(
            item_id,
            context,
            jobs=options.get("jobs"),
            timeout=options.get("timeout"),
            env=options.get("env") or (),
            insecure=bool(options.get("insecure")),
        )
    from rye.batches.backends.local import LocalBackend

    return LocalBackend(
        item_id, context, jobs=options.get("jobs"), timeout=options.get("timeout"), caller=CALLER
    )


async def run_folder(
    folder: BatchFolder,
    backend: Backend,
    context: Context,
    *,
    rerun_unknown: bool,
    on_progress: Callable[[Summary], None],
) -> Summary:
    """Run the calls that have no result yet. The first SIGINT lets running calls finish, the second
    ends them.

    A tool that has changed since the batch was started runs as it was, from its private copy.
    Raises :class:`BatchError` if that cannot be used.
    """
    manifest = folder.manifest()
    tool, closure, space = manifest["tool"], manifest["closure"], manifest["space"]
    with ExitStack() as resources:
        if await _changed(tool, closure, context):
            stored = original_tool(tool, closure, space, context)
            backend.verified = resources.enter_context(stored)
        await backend.open()
        verified = backend.verified
        if verified is None or verified.closure.digest != closure:
            raise BatchError(
                f"the tool {tool!r} has changed since the batch {folder.path} was started",
                hint="restore it, or start another batch",
            )
        summary = await _run(
            folder, backend, context, verified, rerun_unknown=rerun_unknown, on_progress=on_progress
        )
        if summary.changed or await _changed(tool, closure, context):
            summary.notes.append(
                f"{tool} has changed meanwhile; all calls ran the version that the batch began with"
            )
    return summary


async def _changed(tool: str, closure: str, context: Context) -> bool:
    return await asyncio.to_thread(has_changed, tool, closure, context)


async def _run(
    folder: BatchFolder,
    backend: Backend,
    context: Context,
    verified: VerifiedChain,
    *,
    rerun_unknown: bool,
    on_progress: Callable[[Summary], None],
) -> Summary:
    manifest = folder.manifest()
    options = manifest["options"]
    before = folder.progress(int(manifest["calls"]))
    again = rerun_unknown or may_repeat(verified)
    check_unchanged(folder, before, may_run_twice=again)
    receipts = _Receipts(context, wanted=options.get("receipts") == "signed")

    def ended(result: BatchResult) -> None:
        receipts.add(result)
        on_progress(driver.summary)

    driver = Driver(
        backend,
        remaining(folder, before, rerun_unknown=again),
        folder,
        Summary(int(manifest["calls"]), before.outcomes),
        Options(
            max_failures=options.get("max_failures"),
            retries=retries_of(options, verified),
            rerun_lost=again,
        ),
        ended,
    )

    async def watch() -> None:
        while not await _changed(manifest["tool"], manifest["closure"], context):  # noqa: ASYNC110 - a file tells nobody
            await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)
        driver.summary.changed = True
        on_progress(driver.summary)

    watching = asyncio.create_task(watch())
    with suppress(asyncio.CancelledError), announced(driver, folder, context):
        await _interruptible(driver, lambda: on_progress(driver.summary))
    watching.cancel()
    if (number := driver.summary.cut_off) > 0:
        calls = "1 call was" if number == 1 else f"{number} calls were"
        driver.summary.notes.append(f"{calls} ended before a result was known")
    await asyncio.to_thread(receipts.sign)
    return driver.summary


class _Receipts:
    """Signs the receipts of the calls, some thousands at once."""

    def __init__(self, context: Context, *, wanted: bool) -> None:
        """Raises ``KeyStoreError`` if the user's key cannot be used."""
        self._signer: ReceiptSigner | None = None
        self._waiting = 0
        if wanted:
            from rye.history.signing import ReceiptSigner

            self._signer = ReceiptSigner(context, _report)

    def add(self, result: BatchResult) -> None:
        if self._signer is None or result.run_id is None:
            return
        self._signer.add(result.run_id)
        self._waiting += 1
        if self._waiting >= _RECEIPTS_AT_ONCE:
            self.sign()

    def sign(self) -> None:
        self._waiting = 0
        if self._signer is not None:
            self._signer.sign()


def _report(fault: str) -> None:
    raise BatchError(fault, hint="sign them later with: rye receipt RUN")


async def _interruptible(driver: Driver, on_progress: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    running = asyncio.ensure_future(driver.run())
    ticking = asyncio.ensure_future(_tick(on_progress))

    def interrupt() -> None:
        if driver.summary.stopped:
            running.cancel()
        else:
            driver.stop("interrupted")
            on_progress()

    numbers = (signal.SIGINT, signal.SIGTERM)
    for number in numbers:
        loop.add_signal_handler(number, interrupt)
    try:
        await running
    finally:
        ticking.cancel()
        for number in numbers:
            loop.remove_signal_handler(number)


async def _tick(on_progress: Callable[[], None]) -> None:
    """Show progress also while no call ends."""
    while True:
        on_progress()
        await asyncio.sleep(1)
