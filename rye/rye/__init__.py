"""Rye: signed, pinned and supervised tools.

::

    async with rye.PrimitiveExecutor(project_path=".") as executor:
        result = await executor.execute("rye/bash/bash", {"command": "echo hi"})

    result = rye.execute_blocking("rye/bash/bash", {"command": "echo hi"})  # without an event loop

Importing this package loads none of its modules. Each name loads its module on first use.
"""

from __future__ import annotations

from lilux.exports import lazy_exports

# Type checkers treat this like typing.TYPE_CHECKING, without the slow import of typing.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from rye.batches.api import batch
    from rye.batches.records import BatchResult
    from rye.context import Context
    from rye.errors import (
        AmbiguousIdError,
        AnchorError,
        ApprovalError,
        ArgumentTooLongError,
        BatchError,
        BusyError,
        CancelledOnPageError,
        ChainCycleError,
        ChainDepthError,
        ChainError,
        ChainValidationError,
        ChangedError,
        ClosureError,
        ClusterError,
        ConfigTemplateError,
        DataFileError,
        DeclinedError,
        ForgedError,
        HistoryError,
        InterpreterMissingError,
        ItemFormatError,
        ItemIdError,
        ItemNotFoundError,
        KeyStoreError,
        LockCorruptError,
        LockDowngradeError,
        LockError,
        LockLeftoverError,
        LockMissingError,
        LockShadowedError,
        LockTamperedError,
        LockUpgradeError,
        MergeConflictError,
        MissingExecutorError,
        NobodyToAskError,
        NoMetadataError,
        NotEnforcedError,
        ParameterError,
        PermissionsError,
        PinError,
        ReceiptError,
        RevokedKeyError,
        RunNotFoundError,
        RyeError,
        SettingsError,
        TrustError,
        UnapprovedProjectError,
        UnknownPrimitiveError,
        UnpinnedError,
        UnsafePathError,
        UnsignedError,
        UntrustedKeyError,
        UpstreamChangedError,
    )
    from rye.executor.run.blocking import execute_blocking
    from rye.executor.run.execute import PrimitiveExecutor
    from rye.executor.run.result import ExecutionResult
    from rye.items.element import ChainElement

__version__ = "0.1.0"

__all__ = [
    "AmbiguousIdError",
    "AnchorError",
    "ApprovalError",
    "ArgumentTooLongError",
    "BatchError",
    "BatchResult",
    "BusyError",
    "CancelledOnPageError",
    "ChainCycleError",
    "ChainDepthError",
    "ChainElement",
    "ChainError",
    "ChainValidationError",
    "ChangedError",
    "ClosureError",
    "ClusterError",
    "ConfigTemplateError",
    "Context",
    "DataFileError",
    "DeclinedError",
    "ExecutionResult",
    "ForgedError",
    "HistoryError",
    "InterpreterMissingError",
    "ItemFormatError",
    "ItemIdError",
    "ItemNotFoundError",
    "KeyStoreError",
    "LockCorruptError",
    "LockDowngradeError",
    "LockError",
    "LockLeftoverError",
    "LockMissingError",
    "LockShadowedError",
    "LockTamperedError",
    "LockUpgradeError",
    "MergeConflictError",
    "MissingExecutorError",
    "NoMetadataError",
    "NobodyToAskError",
    "NotEnforcedError",
    "ParameterError",
    "PermissionsError",
    "PinError",
    "PrimitiveExecutor",
    "ReceiptError",
    "RevokedKeyError",
    "RunNotFoundError",
    "RyeError",
    "SettingsError",
    "TrustError",
    "UnapprovedProjectError",
    "UnknownPrimitiveError",
    "UnpinnedError",
    "UnsafePathError",
    "UnsignedError",
    "UntrustedKeyError",
    "UpstreamChangedError",
    "batch",
    "execute_blocking",
]

_HOMES = {
    **dict.fromkeys(__all__, "rye.errors"),
    "BatchResult": "rye.batches.records",
    "ChainElement": "rye.items.element",
    "batch": "rye.batches.api",
    "Context": "rye.context",
    "ExecutionResult": "rye.executor.run.result",
    "PrimitiveExecutor": "rye.executor.run.execute",
    "execute_blocking": "rye.executor.run.blocking",
}

__getattr__ = lazy_exports(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
