"""Resolving one id with 10 and with 10,000 tools in the space, and a cold chain of three.

The two spaces are asked in turn in one run, and the medians are compared. "cold" is a new
resolver for each question; "warm" asks the same one again, as an executor does on every call.
The tools of the large space lie in one folder, which is the worst case.
"""

import gc
import hashlib
import statistics
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

LIMIT = 1.5
ROUNDS = 1500
SIZES = (10, 10_000)
CHAIN_LIMIT_MS = 5.0
QUESTIONS = {
    "a tool of the project": "many/tool_7",
    "a tool of the system": "bench/tool_0",
    "a short id": "bench_runtime",
}

TOOL = '''"""Says hello."""

__version__ = "1.0.0"
__tool_type__ = "tool"
__executor_id__ = "rye/core/runtimes/bench_runtime"
__category__ = "bench"
__tool_description__ = "says hello"

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


def space(folder: Path, size: int) -> Context:
    """A project with that many tools, and a system space with the chain."""
    for item_id, (name, text) in CHAIN.items():
        home = folder / "system" / ".ai" / "tools" / item_id
        home.parent.mkdir(parents=True)
        (home.parent / name).write_text(text)
    tools = folder / "project" / ".ai" / "tools" / "many"
    tools.mkdir(parents=True)
    for number in range(size):
        (tools / f"tool_{number}.py").write_text('__executor_id__ = "python_runtime"\n')
    return Context(
        project_path=folder / "project",
        user_space=folder / "user",
        system_space=folder / "system",
        environ=MappingProxyType({}),
    )


def microseconds(call: Callable[[], object]) -> float:
    start = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - start) / 1000


def compare(name: str, small: Callable[[], object], large: Callable[[], object]) -> float:
    samples = [(microseconds(small), microseconds(large)) for _ in range(ROUNDS)][ROUNDS // 10 :]
    few, many = (statistics.median(each) for each in zip(*samples, strict=True))
    print(
        f"{name:34} {SIZES[0]} tools {few:7.1f} µs   {SIZES[1]:,} tools {many:7.1f} µs"
        f"   ratio {many / few:.2f}  (limit {LIMIT})"
    )
    return float(many / few)


def cold(context: Context, item_id: str) -> Resolution:
    return Resolver(context).resolve(item_id)


def chain_of_three(context: Context) -> str:
    """A new resolver; each file found, read, hashed and parsed: what is left is to verify."""
    resolver = Resolver(context)
    digest = hashlib.sha256()
    for item_id in CHAIN:
        found = resolver.resolve(item_id)
        assert found.path is not None
        file = read_item(found.path, found.space.root)
        digest.update(file.content)
        parse_metadata(file)
    return digest.hexdigest()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        contexts = [space(Path(folder).resolve() / str(size), size) for size in SIZES]
        time.sleep(0.1)  # a folder that changed this very moment is never answered from memory
        gc.disable()
        ratios = []
        for name, item_id in QUESTIONS.items():
            few, many = (partial(Resolver(context).resolve, item_id) for context in contexts)
            ratios.append(compare(f"{name}, warm", few, many))
        for name in ("a tool of the project", "a tool of the system"):
            few, many = (partial(cold, context, QUESTIONS[name]) for context in contexts)
            ratios.append(compare(f"{name}, cold", few, many))
        chain_of_three(contexts[1])
        chain = statistics.median(
            microseconds(lambda: chain_of_three(contexts[1])) for _ in range(200)
        )
        gc.enable()
    print(f"cold resolve, read, hash and parse of a chain of three: {chain / 1000:.2f} ms")
    assert max(ratios) <= LIMIT, f"a ratio of {max(ratios):.2f} is more than {LIMIT}"
    assert chain / 1000 <= CHAIN_LIMIT_MS


if __name__ == "__main__":
    main()
