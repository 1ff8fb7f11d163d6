"""Calls on the nodes of a Ray cluster: one actor for each node, fed with many calls at once.

A node gets as many calls as it has slots, and every message to it carries all new calls and brings
back all new results. So a lost node leaves at most its slots in doubt, whatever the size of the
batch, and a message for many calls costs as much as one for a single call.

Actors are never restarted and calls are never sent twice (``max_restarts``, ``max_task_retries``):
Ray would report a call that ran twice as one success.
"""

from __future__ import annotations

import asyncio
import platform
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import rye
from rye.batches.backends import WorkerLost
from rye.batches.backends.ray_cluster import ClusterNode, connect, load_ray
from rye.batches.backends.ray_records import WorkerRecords, checked_result
from rye.batches.backends.ray_shipment import chosen, pack
from rye.batches.backends.ray_worker import RayWorker
from rye.batches.backends.slots import Slots
from rye.batches.records import UNKNOWN, BatchResult, Call
from rye.errors import ClosureError, ClusterError
from rye.executor.run.execute import PrimitiveExecutor
from rye.recording.run_ids import new_run_id

if TYPE_CHECKING:
    from rye.context import Context
    from rye.executor.run.prepare import VerifiedChain

# While the results of some calls travel, others run. Fewer slots cost throughput.
_SLOTS_PER_CPU = 8
_START_SECONDS = 60.0
_CLOSE_SECONDS = 5.0


class RayBackend:
    """One call in each lane; the lanes are the slots of all nodes."""

    def __init__(
        self,
        item_id: str,
        context: Context,
        *,
        jobs: int | None = None,
        timeout: float | None = None,
        env: Sequence[str] = (),
        insecure: bool = False,
    ) -> None:
        """``env`` are the names of variables whose values the workers get."""
        self.verified: VerifiedChain | None = None
        self._item_id = item_id
        self._context = context
        self._jobs = jobs
        self._timeout = timeout
        self._env = tuple(env)
        self._insecure = insecure
        self._connected = False
        self._nodes: list[_Node] = []
        self._slots: Slots[_Node] = Slots({})
        self._records: WorkerRecords | None = None

    async def open(self) -> None:
        """Verify the tool here, connect, and verify it again on every node."""
        if self._nodes:
            return
        if self.verified is None:
            async with PrimitiveExecutor(context=self._context) as executor:
                self.verified = await executor.freeze(self._item_id)
        shipment = pack(self.verified, self._context)
        variables = chosen(self.verified, self._env, self._context)
        ray = load_ray()
        # A program that uses Ray itself keeps its connection.
        self._connected = not ray.is_initialized()
        found = connect(insecure=self._insecure)
        records = WorkerRecords(self._context, shipment.item_id, shipment.closure)
        self._records = records
        self._nodes = [
            _Node(ray, one, records, self._lose) for one in found[: self._jobs or len(found)]
        ]
        reference = ray.put(shipment)
        await asyncio.gather(
            *(
                node.open(reference, shipment.closure, variables, self._timeout)
                for node in self._nodes
            )
        )
        living = [node for node in self._nodes if not node.lost]
        if not living:
            raise ClusterError(
                "no worker could be started on any node of the cluster",
                hint="look at the logs of the cluster",
            )
        _share(living, self._jobs)
        self._slots = Slots({node: node.slots for node in living})

    @property
    def lanes(self) -> int:
        """The slots of the nodes that are alive."""
        return self._slots.living

    async def run(self, call: Call) -> BatchResult:
        """Run the call on a node that has a free slot."""
        node = await self._slots.take()
        try:
            return await node.result(call, node.hand_over(call))
        finally:
            self._slots.give_back(node)

    def _lose(self, node: _Node) -> None:
        self._slots.lose(node)

    async def close(self) -> None:
        """End everything on all nodes."""
        nodes, self._nodes = self._nodes, []
        await asyncio.gather(*(node.close() for node in nodes))
        if self._records is not None:
            self._records.close()
        if self._connected:
            self._connected = False
            load_ray().shutdown()


class _Node:
    """The actor of one node, as the driver sees it."""

    def __init__(
        self,
        ray: Any,
        node: ClusterNode,
        records: WorkerRecords,
        on_lost: Callable[[_Node], None],
    ) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self.slots = 0
        """How many calls it runs at once."""
        self.cpus = node.cpus
        self.lost = False
        self.host = node.address
        self._ray = ray
        self._records = records
        self._on_lost = on_lost
        self._waiting: dict[int, tuple[Call, str, asyncio.Future[BatchResult]]] = {}
        """Line → the call, the id of its run, and who waits for its result."""
        self._outbox: list[tuple[Any, ...]] = []
        self._exchanges = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._scheduled = False
        self._actor = (
            ray.remote(RayWorker)
            .options(
                num_cpus=0,
                max_restarts=0,
                max_task_retries=0,
                scheduling_strategy=NodeAffinitySchedulingStrategy(node.id, soft=False),
            )
            .remote()
        )

    async def open(
        self,
        shipment: Any,
        closure: str,
        variables: dict[str, str],
        timeout: float | None,  # noqa: ASYNC109 - of each call
    ) -> None:
        """Raises a ``RyeError`` if the node refuses the tool; one that is gone is lost.

        A cluster lists a node for some seconds after its death.
        """
        here = {"rye": rye.__version__, "python": platform.python_version()}
        try:
            about = await asyncio.wait_for(_answer(self._actor.about.remote()), _START_SECONDS)
            self.host = about["host"]
            for name, version in here.items():
                if about[name] != version:
                    raise ClusterError(
                        f"node {self.host} has {name} {about[name]}, and this machine {version}",
                        hint=f"install {name} {version} there",
                    )
            found = await self._actor.open.remote(shipment, variables, timeout)
        except (self._ray.exceptions.RayError, TimeoutError) as error:
            if "No module named 'rye'" in str(error):
                raise ClusterError(
                    f"rye is not installed on node {self.host}",
                    hint=f"install rye {rye.__version__} there",
                ) from None
            self._lose()
            return
        if not isinstance(found, str):
            raise _refusal(self.host, *found)
        if found != closure:
            raise ClosureError(
                f"node {self.host} verified another closure: {found[:12]}, not {closure[:12]}",
                hint="look at that node, and leave it out of the cluster",
            )

    def hand_over(self, call: Call) -> asyncio.Future[BatchResult]:
        """Send the call with the next message."""
        future: asyncio.Future[BatchResult] = asyncio.get_running_loop().create_future()
        # The id is made here: a worker cannot report a run under the id of another one.
        run_id = new_run_id(time.time_ns() // 1_000_000)
        self._waiting[call.line] = (call, run_id, future)
        self._outbox.append((*call, run_id))
        self._schedule()
        return future

    async def result(self, call: Call, future: asyncio.Future[BatchResult]) -> BatchResult:
        """Wait for the result. Raises :class:`WorkerLost`; cancelling ends the call."""
        try:
            return await future
        except asyncio.CancelledError:
            if not self.lost:
                self._outbox = [one for one in self._outbox if one[0] != call.line]
                with suppress(self._ray.exceptions.RayError):
                    self._actor.cancel.remote([call.line])
            raise
        finally:
            self._waiting.pop(call.line, None)

    def _schedule(self) -> None:
        """Send soon: after all lanes that got a result have handed over their next call."""
        if not self._scheduled:
            self._scheduled = True
            loop = asyncio.get_running_loop()
            loop.call_soon(loop.call_soon, self._send)

    def _send(self) -> None:
        self._scheduled = False
        if self.lost or (not self._outbox and (self._exchanges or not self._waiting)):
            return
        calls, self._outbox = self._outbox, []
        self._exchanges += 1
        self._start(self._exchange(calls))

    async def _exchange(self, calls: list[tuple[Any, ...]]) -> None:
        try:
            answers = await self._actor.exchange.remote(calls)
        except self._ray.exceptions.RayError:
            # Also for an actor that is only unavailable: it may run the calls, or not.
            self._lose()
            return
        self._exchanges -= 1
        try:
            for fields, record in answers:
                self._accept(fields, record)
        except WorkerLost:
            self._lose()
            return
        self._schedule()

    def _accept(self, fields: Sequence[Any], record: bytes | None) -> None:
        """Take a result. Raises :class:`WorkerLost` if it is not that of the call."""
        # A call that was cancelled may have ended before.
        waiting = self._waiting.get(fields[0])
        if waiting is None:
            return
        call, run_id, future = waiting
        result = checked_result(fields, call, run_id)
        result = self._records.keep(result, record, self.host)
        if future.done():
            return
        if result.outcome == UNKNOWN:  # its helper died, and the worker goes on with another one
            future.set_exception(WorkerLost)
        else:
            future.set_result(result)

    def _lose(self) -> None:
        if self.lost:
            return
        self.lost = True
        self._on_lost(self)
        self._kill()
        for _, _, future in self._waiting.values():
            if not future.done():
                future.set_exception(WorkerLost)

    def _kill(self) -> None:
        with suppress(self._ray.exceptions.RayError):
            self._ray.kill(self._actor, no_restart=True)

    def _start(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """End the calls of the node, and its actor."""
        if not self.lost:
            with suppress(self._ray.exceptions.RayError, TimeoutError):
                await asyncio.wait_for(_answer(self._actor.close.remote()), _CLOSE_SECONDS)
        self.lost = True
        self._kill()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _answer(reference: Any) -> Any:
    return await reference


def _share(nodes: Sequence[_Node], jobs: int | None) -> None:
    """Give each node its slots: by its processors, or an equal share of what the user says."""
    for at, node in enumerate(nodes):
        share = _SLOTS_PER_CPU * max(node.cpus, 1)
        node.slots = share if jobs is None else (jobs + len(nodes) - 1 - at) // len(nodes)


def _refusal(host: str, kind: str, reason: str, hint: str) -> Exception:
    """The error of a node, with its type."""
    import rye.errors

    found = getattr(rye.errors, kind, ClosureError)
    text = reason if host in reason else f"node {host}: {reason}"
    try:
        error: Exception = found(text, hint=hint)
    except TypeError:  # a class with other arguments
        error = ClosureError(text, hint=hint)
    return error
