"""The free slots of the nodes of a cluster.

Taking one and giving it back cost the same for one node and for a thousand, as every call does
both.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from itertools import zip_longest
from typing import Generic, TypeVar

from rye.batches.backends import WorkerLost

Node = TypeVar("Node")


class Slots(Generic[Node]):
    """Which nodes can take a call. The slot that has been free for longest is taken first."""

    def __init__(self, slots: Mapping[Node, int]) -> None:
        """The first calls go to different nodes."""
        self._slots = dict(slots)
        rounds = zip_longest(*([node] * number for node, number in slots.items()))
        self._free = deque(node for one in rounds for node in one if node is not None)
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.living = len(self._free)
        """The slots of all nodes that are alive."""

    async def take(self) -> Node:
        """Wait for a free slot. Raises :class:`WorkerLost` if no node is alive."""
        while self.living:
            while self._free:
                node = self._free.popleft()
                if node in self._slots:
                    return node
            waiting = asyncio.get_running_loop().create_future()
            self._waiting.append(waiting)
            try:
                await waiting
            except asyncio.CancelledError:
                if not waiting.cancelled():
                    # It was this one's turn.
                    self._wake()
                raise
        raise WorkerLost

    def give_back(self, node: Node) -> None:
        """The call of a slot has ended; that of a lost node is not used again."""
        if node in self._slots:
            self._free.append(node)
            self._wake()

    def lose(self, node: Node) -> None:
        """The node is gone, with all its slots."""
        self.living -= self._slots.pop(node, 0)
        while not self.living and self._waiting:
            self._wake()

    def _wake(self) -> None:
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(None)
                return
