"""Tools that read the stdin of their caller: ``stdin: true``, in Python ``__stdin__ = True``.

Many runtimes pass the parameters on stdin. Then the variable ``RYE_STDIN`` contains their length in
bytes: a runtime that declares ``stdin: true`` reads that many, and leaves the rest to the tool.
Where nobody passes a stdin, as over MCP, the tool reads the end at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from lilux.record import replaced

from rye.errors import ChainValidationError
from rye.executor.config.build import ExecutionConfig
from rye.items.element import ChainElement
from rye.spaces.ids import SUBPROCESS

VARIABLE = "RYE_STDIN"


def reads_stdin(chain: Sequence[ChainElement]) -> bool:
    """True if the tool reads the stdin of its caller. A runtime only passes it on."""
    metadata = chain[0].metadata
    return metadata.stdin and metadata.tool_type != "runtime"


def with_stdin(chain: Sequence[ChainElement], config: ExecutionConfig) -> ExecutionConfig:
    """Return the config of a call, with the length of what precedes the stdin of its tool.

    Raises :class:`ChainValidationError` if the tool cannot get a stdin.
    """
    if not reads_stdin(chain):
        return config
    tool = chain[0]
    if config.primitive_id != SUBPROCESS:
        raise _refused(tool, f"{config.primitive_id} starts no process")
    data = config.config.get("input_data")
    if not data:
        return config
    for runtime in chain[1:-1]:
        if not runtime.metadata.stdin:
            raise _refused(tool, f"{runtime.item_id} uses stdin for the parameters")
    if len(chain) < 3:
        raise _refused(tool, "its own input_data is on stdin")
    size = len(data if isinstance(data, bytes) else data.encode("utf-8", "surrogateescape"))
    env = {**config.config["env"], VARIABLE: str(size)}
    return replaced(config, config={**config.config, "env": env})


def _refused(tool: ChainElement, reason: str) -> ChainValidationError:
    return ChainValidationError(
        f"{tool.item_id!r} cannot read stdin",
        [reason],
        hint=f"remove stdin: true from {tool.path}, or use another executor",
    )
