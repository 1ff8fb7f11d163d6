"""Every error that Rye raises, in one tree.

::

    RyeError
    ├── ItemIdError                 an id that cannot name an item (also a ValueError)
    ├── ItemNotFoundError           nothing bears that id; carries the nearest names
    ├── AmbiguousIdError            a short id that two files of one space bear
    ├── ItemFormatError             a file whose metadata cannot be read; carries file and line
    │   └── NoMetadataError         a file that declares nothing: a helper file, not an item
    ├── UnsafePathError             a path that leaves its space, or an item that is no plain file
    ├── TrustError                  carries the item; ends in the command that mends it
    │   ├── UnsignedError
    │   ├── ChangedError            signed, then changed
    │   ├── ForgedError             the signature is not by the key that it names
    │   ├── UntrustedKeyError       a key that nobody here vouches for
    │   └── KeyStoreError           a trust store entry or a private key that cannot be used
    ├── ChainError (also a ValueError)
    │   ├── MissingExecutorError
    │   ├── ChainCycleError
    │   ├── ChainDepthError
    │   ├── UnknownPrimitiveError
    │   └── ChainValidationError    carries every issue that was found
    ├── ParameterError              parameters that do not fit the schema; carries every issue
    ├── LockError                   carries the lockfile's path
    │   ├── LockCorruptError
    │   ├── LockMissingError        frozen mode, and no lockfile
    │   ├── LockUpgradeError        validly signed, other content than pinned
    │   ├── LockTamperedError       other content than pinned, and not validly signed
    │   └── LockShadowedError       the pinned item is now found in another place
    ├── AnchorError                 an anchor or its dependencies that cannot be used
    ├── InterpreterMissingError     a runtime's interpreter is not on this machine
    ├── ConfigTemplateError         a command template that cannot be rendered
    └── ArgumentTooLongError        parameters that no argv can hold; names the runtime that can

Messages are lower-case, name the thing, and end in what to do. An expected failure of a tool (an
exit code, a timeout) is a result, not an exception; ``PrimitiveExecutor.execute()`` turns both
into an ``ExecutionResult``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class RyeError(Exception):
    """The root. Its text is ``reason``, then ``hint``: what to do next."""

    def __init__(self, reason: str, *, hint: str = "") -> None:
        super().__init__(f"{reason}; {hint}" if hint else reason)
        self.reason = reason
        self.hint = hint


class ItemIdError(RyeError, ValueError):
    """An id that cannot name an item."""


class ItemNotFoundError(RyeError):
    """Nothing bears that id."""

    def __init__(self, message: str, *, hint: str = "", nearest: Sequence[str] = ()) -> None:
        super().__init__(message, hint=hint)
        self.nearest = tuple(nearest)


class AmbiguousIdError(RyeError):
    """A short id that more than one file of the deciding space bears."""


class ItemFormatError(RyeError):
    """A file whose metadata cannot be read."""

    def __init__(self, path: Path, reason: str, *, line: int | None = None, hint: str = "") -> None:
        where = f"{path}:{line}" if line is not None else str(path)
        super().__init__(f"{where}: {reason}", hint=hint)
        self.path = path
        self.line = line


class NoMetadataError(ItemFormatError):
    """A file that declares no metadata at all: a helper beside the items, not an item."""


class UnsafePathError(RyeError):
    """A path that leaves its space, or an item that is no plain file."""


class TrustError(RyeError):
    """An item that may not run because of who signed it, or that nobody did."""


class UnsignedError(TrustError):
    """There is no signature line."""


class ChangedError(TrustError):
    """The content is not what was signed."""


class ForgedError(TrustError):
    """The signature was not made by the key that it names."""


class UntrustedKeyError(TrustError):
    """The key that signed is not one that the user vouches for."""


class KeyStoreError(TrustError):
    """A trust store entry or a private key that cannot be used."""


class ChainError(RyeError, ValueError):
    """A chain that cannot be built or may not be run."""


class MissingExecutorError(ChainError):
    """An element names an executor that is not there."""


class ChainCycleError(ChainError):
    """An element is its own executor, directly or through others."""


class ChainDepthError(ChainError):
    """More elements than ``MAX_CHAIN_DEPTH``."""


class UnknownPrimitiveError(ChainError):
    """A chain that ends in something that no primitive is registered for."""


class _IssuesError(RyeError):
    def __init__(self, message: str, issues: Sequence[str], *, hint: str = "") -> None:
        super().__init__(f"{message}: {'; '.join(issues)}", hint=hint)
        self.issues = tuple(issues)


class ChainValidationError(_IssuesError, ChainError):
    """A chain whose elements do not fit together."""


class ParameterError(_IssuesError):
    """Parameters that do not fit the tool's schema. Values are never repeated."""


class LockError(RyeError):
    """A lockfile that is violated, missing or unreadable."""

    def __init__(self, message: str, *, lockfile: Path, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.lockfile = lockfile


class LockCorruptError(LockError):
    """A lockfile that is not what it should be."""


class LockMissingError(LockError):
    """Frozen mode, and no lockfile."""


class LockUpgradeError(LockError):
    """An element has other content than pinned, and is validly signed."""


class LockTamperedError(LockError):
    """An element has other content than pinned, and is not validly signed."""


class LockShadowedError(LockError):
    """A pinned element is now found in another place."""


class AnchorError(RyeError):
    """An anchor or one of its dependencies cannot be used."""


class InterpreterMissingError(RyeError):
    """The interpreter of a runtime is not on this machine."""


class ConfigTemplateError(RyeError):
    """A template of the chain's configuration cannot be rendered."""


class ArgumentTooLongError(RyeError):
    """Parameters that no argument list can hold."""
