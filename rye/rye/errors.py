"""Every error that Rye raises, in one tree.

::

    RyeError
    ├── ItemIdError                 an invalid item id (also a ValueError)
    ├── ItemNotFoundError           no item has this id; ``nearest`` has similar ids
    ├── AmbiguousIdError            several files have this id
    ├── ItemFormatError             a file with unreadable metadata; has ``path`` and ``line``
    │   └── NoMetadataError         a file without metadata: a helper file, not an item
    ├── UnsafePathError             a path outside its space, or an item that is not a regular file
    ├── TrustError                  what may not run, because nobody trusted approved it
    │   ├── UnsignedError           no signature line
    │   ├── ChangedError            changed after it was signed
    │   ├── ForgedError             the signature was not made by the key that it names
    │   ├── UntrustedKeyError       signed by a key that the user does not trust
    │   ├── RevokedKeyError         signed by a key that was revoked
    │   ├── UnpinnedError           would run a file of the project that nobody signed or pinned
    │   ├── DataFileError           a data file that differs from the signed list of its tool
    │   ├── KeyStoreError           a trust store entry or a private key that cannot be used
    │   └── UnapprovedProjectError  a call that needs an unsigned part of a project
    ├── ChainError (also a ValueError)
    │   ├── MissingExecutorError    an element names an executor that does not exist
    │   ├── ChainCycleError         an element is its own executor, directly or indirectly
    │   ├── ChainDepthError         more elements than allowed
    │   ├── UnknownPrimitiveError   the chain ends in an unknown primitive
    │   └── ChainValidationError    elements that do not fit together; has ``issues``
    ├── ParameterError              parameters that do not match the schema; has ``issues``
    ├── LockError                   has ``lockfile``
    │   ├── LockCorruptError        a malformed lockfile
    │   ├── LockMissingError        no lockfile, and the call requires one
    │   ├── LockLeftoverError       several lockfiles for one tool
    │   ├── LockDowngradeError      an older version than the pinned one, validly signed
    │   ├── LockUpgradeError        the content differs from the pin, and is validly signed
    │   ├── LockTamperedError       the content differs from the pin, and is not validly signed
    │   └── LockShadowedError       the pinned item is now found in another place
    ├── PinError                    a file in ``pins`` that cannot be used
    ├── ClosureError                a stored closure that cannot be used
    ├── AnchorError                 an anchor, or one of its dependencies, that cannot be used
    ├── InterpreterMissingError     the interpreter of a runtime is not installed; has ``variable``
    ├── PermissionsError            permissions or grants that cannot be used
    │   └── NotEnforcedError        permissions that this machine cannot enforce
    ├── ApprovalError               a call of an agent that the user has not allowed
    │   ├── DeclinedError           the user was asked, and did not agree
    │   └── NobodyToAskError        a tool that needs a user, and there is nobody to ask
    ├── CancelledOnPageError        the user cancelled the call on the page
    ├── BusyError                   a server that is stopping, or runs as many calls as it may
    ├── HistoryError                a record, or the history, that cannot be read or written
    │   ├── RunNotFoundError        no recorded run has this id
    │   └── ReceiptError            a receipt that is not valid, or not by a trusted key
    ├── BatchError                  a batch that cannot be started, resumed or read
    │   └── ClusterError            a cluster that cannot be used for a batch
    ├── SettingsError               a section of the user's config that cannot be used
    ├── ConfigTemplateError         a template of the configuration that cannot be rendered
    └── ArgumentTooLongError        parameters that are too long for an argument list

Messages are lower-case, name the object, and end in what to do. An expected failure of a tool (an
exit code, a timeout) is a result, not an exception; ``PrimitiveExecutor.execute()`` turns both
into an ``ExecutionResult``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self


class RyeError(Exception):
    """The base of all errors. Its text is ``reason``, then ``hint``: what to do next."""

    decided_by_user = False
    """True if what to do lifts a protection. Then an agent does not read the hint, which is for
    the user. Each class directly below this one decides it."""

    def __init__(self, reason: str, *, hint: str = "") -> None:
        super().__init__(f"{reason}; {hint}" if hint else reason)
        self.reason = reason
        self.hint = hint

    @classmethod
    def of_problem(cls, problem: str, hint: str = "") -> Self:
        """From the problem of a file, such as ``… is writable by others; fix it with: …``."""
        reason, _, remedy = problem.partition("; ")
        return cls(reason, hint="; ".join([one for one in (remedy, hint) if one]))


class ItemIdError(RyeError, ValueError):
    """An invalid item id."""

    decided_by_user = False


class ItemNotFoundError(RyeError):
    """No item has this id. ``nearest`` has similar ids.

    ``agent_hint`` is the hint for an agent, which does not run commands; if empty, ``hint`` is.
    """

    decided_by_user = False

    def __init__(
        self, message: str, *, hint: str = "", agent_hint: str = "", nearest: Sequence[str] = ()
    ) -> None:
        super().__init__(message, hint=hint)
        self.agent_hint = agent_hint
        self.nearest = tuple(nearest)


class AmbiguousIdError(RyeError):
    """Several files have this id."""

    decided_by_user = False


class ItemFormatError(RyeError):
    """A file whose metadata cannot be read."""

    decided_by_user = False

    def __init__(self, path: Path, reason: str, *, line: int | None = None, hint: str = "") -> None:
        where = f"{path}:{line}" if line is not None else str(path)
        super().__init__(f"{where}: {reason}", hint=hint)
        self.path = path
        self.line = line


class NoMetadataError(ItemFormatError):
    """A file without metadata: a helper file, not an item."""


class MergeConflictError(ItemFormatError):
    """A file with the marks of a merge conflict; its author has to merge and sign it."""

    decided_by_user = True


class UnsafePathError(RyeError):
    """A path outside its space, or an item that is not a regular file."""

    decided_by_user = False


class TrustError(RyeError):
    """Something that may not run or be used, because nobody whom the user trusts approved it."""

    decided_by_user = True


class UnsignedError(TrustError):
    """The item has no signature line."""


class ChangedError(TrustError):
    """The item was changed after it was signed."""


class ForgedError(TrustError):
    """The signature was not made by the key that it names."""


class UntrustedKeyError(TrustError):
    """The item is signed by a key that the user does not trust."""


class RevokedKeyError(TrustError):
    """The item is signed by a key that the user or the project has revoked."""


class DataFileError(TrustError):
    """A file that ``files`` declares, and that differs from the signed list."""


class UnpinnedError(TrustError):
    """The chain names a file of the project that is neither signed nor pinned."""


class KeyStoreError(TrustError):
    """A trust store entry or a private key that cannot be used."""


class UnapprovedProjectError(TrustError):
    """A call needs an unsigned part of a project that the user has not approved."""


class UpstreamChangedError(TrustError):
    """A tool of another MCP server is not the one that the user pinned."""


class ChainError(RyeError, ValueError):
    """A chain that cannot be built or may not be run."""

    decided_by_user = False


class MissingExecutorError(ChainError):
    """An element names an executor that does not exist."""


class ChainCycleError(ChainError):
    """An element is its own executor, directly or indirectly."""


class ChainDepthError(ChainError):
    """The chain has more elements than ``MAX_CHAIN_DEPTH``."""


class UnknownPrimitiveError(ChainError):
    """The chain ends in an item for which no primitive is registered."""


class _IssuesError(RyeError):
    decided_by_user = False

    def __init__(self, message: str, issues: Sequence[str], *, hint: str = "") -> None:
        super().__init__(f"{message}: {'; '.join(issues)}", hint=hint)
        self.issues = tuple(issues)


class ChainValidationError(_IssuesError, ChainError):
    """A chain whose elements do not fit together."""


class ParameterError(_IssuesError):
    """Parameters that do not match the tool's schema. The message never has their values.

    ``agent_hint`` is the hint for an agent, which does not read files; if empty, ``hint`` is.
    """

    def __init__(
        self, message: str, issues: Sequence[str], *, hint: str = "", agent_hint: str = ""
    ) -> None:
        super().__init__(message, issues, hint=hint)
        self.agent_hint = agent_hint


class LockError(RyeError):
    """A lockfile that is missing, malformed, or does not match."""

    decided_by_user = True

    def __init__(self, message: str, *, lockfile: Path, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.lockfile = lockfile


class LockCorruptError(LockError):
    """A malformed lockfile."""


class LockMissingError(LockError):
    """There is no lockfile, and frozen mode or unsigned files of the project require one."""


class LockLeftoverError(LockError):
    """A tool has several lockfiles in one space, of which only one can be current."""


class LockDowngradeError(LockError):
    """An element has an older version than the pinned one, and is validly signed."""


class LockUpgradeError(LockError):
    """The content of an element differs from the pin, and is validly signed."""


class LockTamperedError(LockError):
    """The content of an element differs from the pin, and is not validly signed."""


class LockShadowedError(LockError):
    """A pinned element is now found in another place."""


class PinError(RyeError):
    """A file that ``pins`` lists, and that cannot be used."""

    decided_by_user = False


class ClosureError(RyeError):
    """A stored closure that cannot be used."""

    decided_by_user = False


class AnchorError(RyeError):
    """An anchor, or one of its dependencies, that cannot be used."""

    decided_by_user = False


class InterpreterMissingError(RyeError):
    """The interpreter of a runtime is not installed. ``variable`` would contain its path."""

    decided_by_user = False

    def __init__(self, reason: str, *, hint: str = "", variable: str = "") -> None:
        super().__init__(reason, hint=hint)
        self.variable = variable


class PermissionsError(RyeError):
    """Permissions, or the user's grants, that cannot be used."""

    decided_by_user = True


class NotEnforcedError(PermissionsError):
    """A tool declares permissions that this machine cannot enforce."""


class BatchError(RyeError):
    """A batch that cannot be started, resumed or read."""

    decided_by_user = False


class ClusterError(BatchError):
    """A cluster that cannot be used for a batch."""


class ApprovalError(RyeError):
    """A call of an agent that the user's rules forbid, or that nobody could be asked about."""

    decided_by_user = True


class DeclinedError(ApprovalError):
    """The user was asked about a call, and did not agree. Its hint is for the agent."""

    decided_by_user = False


class NobodyToAskError(ApprovalError):
    """A tool declares ``needs_user``, and nobody can be asked."""

    decided_by_user = False


class CancelledOnPageError(RyeError):
    """The user cancelled the call on the page ``rye ui``."""

    decided_by_user = False


class BusyError(RyeError):
    """A server is stopping, or it runs as many calls as it may, and as many wait."""

    decided_by_user = False


class HistoryError(RyeError):
    """A record, or the history, that cannot be read or written."""

    decided_by_user = False


class RunNotFoundError(HistoryError):
    """No recorded run has this id."""


class ReceiptError(HistoryError):
    """A receipt that is not valid, or that no trusted key has signed."""

    decided_by_user = True


class SettingsError(RyeError):
    """A section of the user's config that cannot be used."""

    decided_by_user = True


class ConfigTemplateError(RyeError):
    """A template of the configuration that cannot be rendered."""

    decided_by_user = False


class ArgumentTooLongError(RyeError):
    """Parameters that are too long for an argument list."""

    decided_by_user = False
