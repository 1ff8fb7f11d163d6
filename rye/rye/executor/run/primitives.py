"""The primitives that a chain may end in, and the objects that run jobs.

Lilux has two primitives. A package adds one through the entry point group ``rye.primitives``: the
name is the item id, the value ``module:Class`` with ``async execute(config, params)``. It cannot
replace another primitive.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import cache

from rye.errors import UnknownPrimitiveError
from rye.executor.config.build import MCP_TOOL
from rye.executor.run.channel import Conversation
from rye.spaces.entry_points import PRIMITIVES, entry_points
from rye.spaces.ids import HTTP_CLIENT, SUBPROCESS, primitive_ids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from rye.executor.config.build import ExecutionConfig
    from rye.executor.run.channel import Listener
    from rye.executor.run.live_run import LiveRun
    from rye.executor.run.upstream import UpstreamPool

__all__ = [
    "HTTP_CLIENT",
    "PRIMITIVE_MAP",
    "SUBPROCESS",
    "OnOutput",
    "PrimitiveMap",
    "PrimitivePool",
]

OnOutput = Callable[[str, str], Awaitable[None] | None]

_BUILT_IN = {
    HTTP_CLIENT: "lilux.primitives.http_client:HttpClientPrimitive",
    SUBPROCESS: "lilux.primitives.subprocess:SubprocessPrimitive",
}


class PrimitiveMap(Mapping[str, "type[Any]"]):
    """Item id → class. A class is imported on first use. Entry points are searched only for an id
    that is not one of Lilux's.

    A lookup raises ``UnknownPrimitiveError`` for an entry point that cannot be used, ``KeyError``
    for an unknown id.
    """

    def __getitem__(self, item_id: str) -> type[Any]:
        target = _BUILT_IN.get(item_id)
        return _load(target) if target else _load_announced(item_id, _announced(item_id))

    def __contains__(self, item_id: object) -> bool:
        return item_id in _BUILT_IN or any(one.name == item_id for one in entry_points(PRIMITIVES))

    def __iter__(self) -> Iterator[str]:
        return iter(primitive_ids())

    def __len__(self) -> int:
        return len(primitive_ids())


PRIMITIVE_MAP = PrimitiveMap()


class PrimitivePool:
    """One object of each primitive, made when it is first used."""

    def __init__(self, primitives: Mapping[str, type[Any]], user_space: Path) -> None:
        self._classes = primitives
        self._user_space = user_space
        self._objects: dict[str, Any] = {}
        self._upstream: UpstreamPool | None = None

    async def run(
        self,
        config: ExecutionConfig,
        on_output: OnOutput | None = None,
        listener: Listener | None = None,
        live: LiveRun | None = None,
        prepared: Any = None,
    ) -> Any:
        """Call the primitive and return its result.

        A primitive without ``on_output`` is called without it. Only processes have a channel, and
        only they may be ``prepared``: then ``NotPreparedError`` says that nothing has happened.
        """
        if MCP_TOOL in config.config:
            return await self._servers().call(config, on_output, listener)
        primitive = self._objects.get(config.primitive_id)
        if primitive is None:
            primitive = self._classes[config.primitive_id]()
            self._objects[config.primitive_id] = primitive
        if config.primitive_id == SUBPROCESS:
            conversation = Conversation(listener)
            if live is not None:
                live.conversation = conversation
            try:
                result = await (prepared or primitive).execute(
                    config.config,
                    config.params,
                    on_output=on_output,
                    dialogue=conversation.dialogue,
                )
            finally:
                conversation.end()
            if live is not None:
                live.result = result
            return result
        if on_output is not None and _takes_on_output(primitive):
            return await primitive.execute(config.config, config.params, on_output=on_output)
        return await primitive.execute(config.config, config.params)

    async def aclose(self) -> None:
        """Close idle connections and helpers; the primitives may be used again."""
        if self._upstream is not None:
            await self._upstream.aclose()
        # A copy: a call may add a primitive while another one closes.
        for primitive in tuple(self._objects.values()):
            close = getattr(primitive, "aclose", None) or getattr(primitive, "close", None)
            if close is not None:
                await close()

    def _servers(self) -> UpstreamPool:
        if self._upstream is None:
            from rye.executor.run.upstream import UpstreamPool

            self._upstream = UpstreamPool(self._user_space)
        return self._upstream


@cache
def _load(target: str) -> type[Any]:
    from importlib import import_module

    module, _, name = target.partition(":")
    loaded: type[Any] = getattr(import_module(module), name)
    return loaded


def _announced(item_id: str) -> str:
    targets = sorted({one.value for one in entry_points(PRIMITIVES) if one.name == item_id})
    if not targets:
        raise KeyError(item_id)
    if len(targets) > 1:
        raise UnknownPrimitiveError(
            f"the primitive {item_id!r} is claimed by {' and by '.join(targets)}",
            hint="uninstall one of the packages",
        )
    return targets[0]


def _load_announced(item_id: str, target: str) -> type[Any]:
    try:
        loaded = _load(target)
    except (ImportError, AttributeError) as error:
        raise UnknownPrimitiveError(
            f"the primitive {item_id!r} cannot be loaded from {target!r} ({type(error).__name__})",
            hint="correct or uninstall its package",
        ) from error
    import inspect

    execute = getattr(loaded, "execute", None)
    if not (inspect.isclass(loaded) and inspect.iscoroutinefunction(execute)):
        raise UnknownPrimitiveError(
            f"the primitive {item_id!r} is {target!r}, which is not a class with an async "
            "execute(config, params)",
            hint="correct or uninstall its package",
        )
    return loaded


def _takes_on_output(primitive: Any) -> bool:
    import inspect

    return "on_output" in inspect.signature(primitive.execute).parameters
