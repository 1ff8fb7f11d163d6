"""Workers and nodes of a Ray cluster die by SIGKILL while they run the calls of a batch."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
from ray_nodes import INSTALLED, MISSING, RayNodes

from torture.batch_deaths import (
    MIN_RESULTS,
    Batch,
    Where,
    repeat,
    survivors,
    wait_for_results,
    without_leftovers,
)
from torture.leftovers import Baseline
from torture.scenario import Outcome, ScenarioSkippedError

NODES = 3
SLOTS = 2
"""Of each node."""
MAX_SECONDS = 2
"""No process of a lost worker lives longer."""

Kill = Callable[[RayNodes, int], None]


def actor_killed(times: int, folder: Path) -> Outcome:
    """Kill the worker of a node; its node goes on without it until the next batch."""
    return _repeat(times, folder, _kill_actor)


def node_killed(times: int, folder: Path) -> Outcome:
    """Kill all processes of a node, and start another one for the next batch."""
    return _repeat(times, folder, RayNodes.kill)


def _kill_actor(nodes: RayNodes, index: int) -> None:
    (worker,) = nodes.workers(index)
    worker.kill()


def _repeat(times: int, folder: Path, kill: Kill) -> Outcome:
    if not INSTALLED:
        raise ScenarioSkippedError(MISSING)
    before = Baseline()
    with RayNodes(NODES) as nodes:

        def kill_repeatedly(batch: Batch, kills: int, numbers: random.Random) -> list[str]:
            return _kill_repeatedly(nodes, kill, batch, kills, numbers)

        # One node is left at the end of each batch.
        backend = Where("ray", NODES * SLOTS, NODES - 1, nodes.environ)
        outcome = repeat(times, folder, kill_repeatedly, backend)
    return without_leftovers(outcome, before)


def _kill_repeatedly(
    nodes: RayNodes, kill: Kill, batch: Batch, kills: int, numbers: random.Random
) -> list[str]:
    failures: list[str] = []
    with batch.running() as driver:
        for turn in range(kills):
            wait_for_results(batch, driver, batch.outcomes()["ok"] + MIN_RESULTS)
            time.sleep(numbers.uniform(0, 0.05))
            busy = [index for index in nodes.alive() if nodes.workers(index)]
            if driver.poll() is not None or not busy:
                failures.append(f"death {turn}: the batch had ended before")
                break
            index = numbers.choice(busy)
            below = _family(nodes, index)
            kill(nodes, index)
            failures += [f"death {turn}: {one}" for one in survivors(below, MAX_SECONDS)]
            wait_for_results(batch, driver, batch.outcomes()["ok"] + MIN_RESULTS)
            # The other nodes may go on for a while before a death is noticed.
            lost, most = batch.outcomes()["unknown"], SLOTS * (turn + 1)
            if lost > most:
                failures.append(f"death {turn}: {lost} calls are unknown, and {most} ran")
        failures += batch.finish(driver)
    while len(nodes.alive()) < NODES:
        nodes.add()
    return failures


def _family(nodes: RayNodes, index: int) -> list[psutil.Process]:
    """The worker of a node, its helper, and the tools."""
    found: list[psutil.Process] = []
    for worker in nodes.workers(index):
        with suppress(psutil.NoSuchProcess):
            found += [worker, *worker.children(recursive=True)]
    return found
