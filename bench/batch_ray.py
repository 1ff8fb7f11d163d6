"""A batch on a Ray cluster of two nodes on this machine, beside a local one and Ray tasks.

All use the same processors. A Ray task starts ``/bin/true`` and does nothing else: no checks, no
journal, no record, and it may run twice. Needs the group ``ray``.
"""

import asyncio
import itertools
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from ray_nodes import INSTALLED, MISSING, RayNodes
from rye.batches.backends.local import LocalBackend
from rye.batches.backends.ray_backend import RayBackend
from rye.batches.backends.ray_cluster import connect, load_ray
from rye.batches.running import CALLER

from bench.batch import CALLS, EMPTY, alternating, batch_rate, make_project, ratio
from bench.programs import TRUE
from bench.table import Report, Samples

NODES = 2
ROUNDS = 5
WARM_UP = 100
LIMIT = 0.85
# As many at once on a node as a batch has there.
TASK_CPUS = 0.125


def task_rate() -> float:
    """Calls a second of Ray tasks, one for each call."""
    ray = load_ray()
    task = ray.remote(subprocess.call).options(num_cpus=TASK_CPUS)
    for count in (WARM_UP, CALLS):
        started = time.perf_counter()
        codes = ray.get([task.remote([TRUE]) for _ in range(count)])
        seconds = time.perf_counter() - started
        assert not any(codes)
    return CALLS / seconds


def measure() -> Report:
    if not INSTALLED:
        return Report([], missing={"Ray": MISSING})
    with tempfile.TemporaryDirectory() as name, RayNodes(NODES) as nodes:
        root = Path(name).resolve()
        project = make_project(root)
        turns = itertools.count()
        os.environ.update(nodes.environ)
        ray = load_ray()
        connect(insecure=False)

        def local() -> float:
            backend = LocalBackend(EMPTY, project.context, caller=CALLER)
            return asyncio.run(batch_rate(backend, project, root / f"turn-{next(turns)}"))

        def cluster() -> float:
            backend = RayBackend(EMPTY, project.context)
            return asyncio.run(batch_rate(backend, project, root / f"turn-{next(turns)}"))

        try:
            here, there, tasks = alternating(ROUNDS, local, cluster, task_rate)
        finally:
            ray.shutdown()
    rates = {"rye batch": here, "rye batch --on ray": there, "Ray tasks": tasks}
    return Report(
        [ratio(f"--on ray, {NODES} nodes on the same cores ÷ local", there, here, LIMIT)],
        {"true": Samples("calls/s", {who: statistics.median(each) for who, each in rates.items()})},
        peers={"Ray": str(ray.__version__)},
    )
