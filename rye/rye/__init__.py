"""Rye: signed, pinned and supervised tools.

::

    async with rye.PrimitiveExecutor(project_path=".") as executor:
        result = await executor.execute("rye/bash/bash", {"command": "echo hi"})

    result = rye.execute_blocking("rye/bash/bash", {"command": "echo hi"})  # without an event loop

Importing this loads nothing else; a name loads its module when it is first used.
"""

from __future__ import annotations

# Type checkers take this for typing's own, whose import would cost more than all the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rye.context import Context
    from rye.errors import (
        AmbiguousIdError,
        AnchorError,
        ArgumentTooLongError,
        ChainCycleError,
        ChainDepthError,
        ChainError,
        ChainValidationError,
        ChangedError,
        ConfigTemplateError,
        ForgedError,
        InterpreterMissingError,
        ItemFormatError,
        ItemIdError,
        ItemNotFoundError,
        KeyStoreError,
        LockCorruptError,
        LockError,
        LockMissingError,
        LockShadowedError,
        LockTamperedError,
        LockUpgradeError,
        MissingExecutorError,
        NoMetadataError,
        ParameterError,
        RyeError,
        TrustError,
        UnknownPrimitiveError,
        UnsafePathError,
        UnsignedError,
        UntrustedKeyError,
    )
    from rye.executor.blocking import execute_blocking
    from rye.executor.primitive_executor import PrimitiveExecutor
    from rye.executor.result import ExecutionResult
    from rye.items.element import ChainElement

__version__ = "0.1.0"

__all__ = [
    "AmbiguousIdError",
    "AnchorError",
    "ArgumentTooLongError",
    "ChainCycleError",
    "ChainDepthError",
    "ChainElement",
    "ChainError",
    "ChainValidationError",
    "ChangedError",
    "ConfigTemplateError",
    "Context",
    "ExecutionResult",
    "ForgedError",
    "InterpreterMissingError",
    "ItemFormatError",
    "ItemIdError",
    "ItemNotFoundError",
    "KeyStoreError",
    "LockCorruptError",
    "LockError",
    "LockMissingError",
    "LockShadowedError",
    "LockTamperedError",
    "LockUpgradeError",
    "MissingExecutorError",
    "NoMetadataError",
    "ParameterError",
    "PrimitiveExecutor",
    "RyeError",
    "TrustError",
    "UnknownPrimitiveError",
    "UnsafePathError",
    "UnsignedError",
    "UntrustedKeyError",
    "execute_blocking",
]

_HOMES = {
    "ChainElement": "rye.items.element",
    "Context": "rye.context",
    "ExecutionResult": "rye.executor.result",
    "PrimitiveExecutor": "rye.executor.primitive_executor",
    "execute_blocking": "rye.executor.blocking",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'rye' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES.get(name, "rye.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
