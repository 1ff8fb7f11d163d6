"""Resolving one id with 10 and with 10,000 tools in the project, and a cold chain of three.

All projects are measured alternately in one run, and the medians are compared. "cold" is a new
resolver for each question; "warm" asks the same resolver again, as an executor does on every call.
The 10,000 tools are in one folder, or in 1,000.

A full id is looked up by name and costs the same everywhere. A short id depends on every folder, so
with 1,000 folders it does NOT keep the ratio to 10 tools, which is printed beside it. Its limit is
relative to the least that can be done: one ``os.stat`` for each folder when warm, one ``os.walk``
when cold. With 200 folders it also has a limit in milliseconds.
"""

import gc
import hashlib
import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import MappingProxyType

from rye.context import Context
from rye.items.metadata import parse_metadata
from rye.items.reader import read_item
from rye.spaces.model import Resolution
from rye.spaces.resolver import Resolver

from bench.table import Report, Row, alternating_medians

LIMIT = 1.5
WALK_LIMIT = 2.0
STAT_LIMIT = 2.0
SHORT_LIMIT_MS = 1.0
CHAIN_LIMIT_MS = 5.0
ROUNDS = 1500
SLOW_ROUNDS = 40
SHAPES = {"10 tools": (1, 10), "one folder": (1, 10_000), "1,000 folders": (1_000, 10)}
LARGE = (200, 10)
FULL_IDS = {"a tool of the project": "many/f0/tool_0_7", "a tool of the system": "bench/tool_0"}
SHORT_ID = "bench_runtime"

TOOL = '''"""Prints hello."""

__version__ = "1.0.0"
__tool_type__ = "tool"
__executor_id__ = "rye/core/runtimes/bench_runtime"
__category__ = "bench"
__tool_description__ = "prints hello"

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "whom to greet"},
        "times": {"type": "integer", "minimum": 1, "default": 1},
    },
    "required": ["name"],
}


def main(name: str, times: int = 1) -> dict[str, str]:
    return {"greeting": " ".join([f"hello {name}"] * times)}
'''

RUNTIME = """tool_type: runtime
version: "1.0.0"
executor_id: rye/core/primitives/bench_primitive
env_config:
  interpreter:
    type: venv_python
    venv_path: .venv
    var: RYE_PYTHON
    fallback: python3
config:
  command: "${RYE_PYTHON}"
  args:
    - "{tool_path}"
    - "--params"
    - "{params_json}"
    - "--project-path"
    - "{project_path}"
  timeout: 300
"""

PRIMITIVE = """tool_type: primitive
version: "1.0.0"
executor_id: null
config_schema:
  type: object
  properties:
    command: {type: string, description: what to run}
    args: {type: array, items: {type: string}}
    env: {type: object}
    cwd: {type: string}
    timeout: {type: number, default: 300}
  required: [command]
"""

CHAIN = {
    "bench/tool_0": ("tool_0.py", TOOL),
    "rye/core/runtimes/bench_runtime": ("bench_runtime.yaml", RUNTIME),
    "rye/core/primitives/bench_primitive": ("bench_primitive.yaml", PRIMITIVE),
}


def space(root: Path, folders: int, tools_in_each: int) -> Context:
    """Create a project with that many tools, and a system space with the chain."""
    for item_id, (name, text) in CHAIN.items():
        home = root / "system" / ".ai" / "tools" / item_id
        home.parent.mkdir(parents=True)
        (home.parent / name).write_text(text)
    for folder in range(folders):
        tools = root / "project" / ".ai" / "tools" / "many" / f"f{folder}"
        tools.mkdir(parents=True)
        for number in range(tools_in_each):
            tool = tools / f"tool_{folder}_{number}.py"
            tool.write_text('__executor_id__ = "python_runtime"\n')
    return Context(
        project_path=root / "project",
        user_space=root / "user",
        system_space=root / "system",
        environ=MappingProxyType({}),
    )


def warm(context: Context, item_id: str) -> Callable[[], Resolution]:
    return partial(Resolver(context).resolve, item_id)


def cold(context: Context, item_id: str) -> Callable[[], Resolution]:
    return lambda: Resolver(context).resolve(item_id)


def chain_of_three(context: Context) -> str:
    """Find, read, hash and parse each file with a new resolver, but do not verify it."""
    resolver = Resolver(context)
    digest = hashlib.sha256()
    for item_id in CHAIN:
        found = resolver.resolve(item_id)
        assert found.path is not None
        file = read_item(found.path, found.space.root)
        digest.update(file.content)
        parse_metadata(file)
    return digest.hexdigest()


def full_id_rows(contexts: dict[str, Context]) -> list[Row]:
    rows = []
    for temperature in (warm, cold):
        for name, item_id in FULL_IDS.items():
            calls = [temperature(context, item_id) for context in contexts.values()]
            few, *many = alternating_medians(ROUNDS, *calls)
            for shape, taken in zip(list(contexts)[1:], many, strict=True):
                rows.append(ratio(f"{name}, {temperature.__name__}, {shape}", taken, few))
    return rows


def short_id_rows(contexts: dict[str, Context]) -> list[Row]:
    ten, one_folder, thousand = contexts.values()
    few, many = alternating_medians(ROUNDS, warm(ten, SHORT_ID), warm(one_folder, SHORT_ID))
    tools = thousand.project_path / ".ai" / "tools"
    folders = [folder for folder, _, _ in os.walk(tools)]
    spread, checked = alternating_medians(
        SLOW_ROUNDS,
        warm(thousand, SHORT_ID),
        lambda: [os.stat(each) for each in folders],  # noqa: PTH116 - the least work possible
    )
    built, walked, small = alternating_medians(
        SLOW_ROUNDS,
        cold(thousand, SHORT_ID),
        lambda: list(os.walk(tools)),
        cold(ten, SHORT_ID),
    )
    return [
        ratio("a short id, warm, one folder", many, few),
        ratio("a short id, warm, 1,000 folders ÷ os.stat", spread, checked, few, STAT_LIMIT),
        ratio("a short id, cold, 1,000 folders ÷ os.walk", built, walked, small, WALK_LIMIT),
    ]


def ratio(
    what: str, taken: float, base: float, few: float | None = None, limit: float = LIMIT
) -> Row:
    detail = f"{taken:.0f} / {base:.0f} µs"
    if few is not None:
        detail += f"; {taken / few:.0f} times as long as with 10 tools ({few:.0f} µs)"
    return Row(what, taken / base, limit, detail=detail)


def measure() -> Report:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve()
        contexts = {
            shape: space(root / str(number), *size)
            for number, (shape, size) in enumerate(SHAPES.items())
        }
        large = space(root / "large", *LARGE)
        time.sleep(0.5)  # answers that depend on a folder that changed just now are not cached
        gc.disable()
        rows = full_id_rows(contexts) + short_id_rows(contexts)
        (short,) = alternating_medians(ROUNDS, warm(large, SHORT_ID))
        (chain,) = alternating_medians(200, lambda: chain_of_three(contexts["one folder"]))
    rows.append(Row("a short id, warm, 200 folders", short / 1000, SHORT_LIMIT_MS, unit=" ms"))
    rows.append(Row("cold chain of three, not verified", chain / 1000, CHAIN_LIMIT_MS, unit=" ms"))
    return Report(rows)
