"""Everything between an item id and a job that can start, as one plain sequence.

::

    resolve → lock → chain → confirm → validate → anchor → dependencies      verify()
    → parameters → environment → config                                     complete()

Every way to a tool goes through here: ``execute()``, the blocking call and a dry run prepare it;
``rye lock``, ``rye chain`` and ``rye show`` verify it. A pin can therefore never accept what a call
refuses.

Nothing here is shared between threads. A :class:`Preparer`, with all its caches, belongs to one
thread at a time; see ``run/execute.py`` for the thread that verifies large calls.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from lilux.record import Record, field

from rye.context import Context
from rye.executor.chain.anchor import Anchor, resolve_anchor
from rye.executor.chain.build import Chain, ChainBuilder
from rye.executor.chain.dependencies import verify_dependencies
from rye.executor.chain.snapshot import Library, Snapshot
from rye.executor.chain.validate import ChainValidator
from rye.executor.config.build import ConfigBuilder, ExecutionConfig
from rye.executor.config.environment import ChainEnvironment, Environments
from rye.executor.locks.file import LockfileResolver, StoredLock
from rye.executor.locks.guard import LockGuard
from rye.executor.run.parameters import ParameterGate, check_timeout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class CallOptions(Record, frozen=True, kw_only=True):
    """The options of a call that decide what is verified and how it runs."""

    validate_chain: bool = True
    use_lockfile: bool = True
    frozen: bool = False
    """Refuse a tool without a lockfile, whatever ``use_lockfile`` says."""
    timeout: float | None = None
    """Seconds; takes precedence over the timeout of the chain."""

    @property
    def locked(self) -> bool:
        """True if the lockfile is read, and made after the first success."""
        return self.use_lockfile or self.frozen


class VerifiedChain(Record, frozen=True, kw_only=True):
    """A chain that may run: signatures, lock and dependencies were verified."""

    chain: Chain
    lock: StoredLock | None
    """``None`` if the tool has no lockfile, or if it was not read."""
    anchor: Anchor | None
    dependencies: Mapping[str, str]
    """Name → content hash of every other file that runs with the chain."""


class PreparedCall(Record, frozen=True, kw_only=True):
    """A call that is ready to run. Parameters may be secrets and are not in the repr."""

    chain: Chain
    lock: StoredLock | None
    anchor: Anchor | None
    dependencies: Mapping[str, str]
    parameters: Mapping[str, Any] = field(repr=False)
    """Validated, with the defaults of the schema."""
    environment: ChainEnvironment
    config: ExecutionConfig
    """What the primitive is called with."""
    options: CallOptions

    @property
    def needs_lock(self) -> bool:
        """True if a success must be pinned."""
        return self.options.locked and self.lock is None and self.chain[0].path is not None


class Preparer:
    """The parts that prepare calls, with what they remember from one call to the next."""

    def __init__(self, context: Context, primitives: Container[str]) -> None:
        self.context = context
        self.library = Library(context)
        self.chains = ChainBuilder(primitives)
        self.validator = ChainValidator()
        self.lockfiles = LockfileResolver(
            context,
            spaces=self.library.resolver.spaces,
            disk_cache=self.library.disk_cache,
        )
        self.locks = LockGuard(self.lockfiles)
        self.parameters = ParameterGate(self.library.disk_cache)
        self.environments = Environments(context)
        self.configs = ConfigBuilder(context)

    def flush(self) -> None:
        """Write what the next process can use to the disk cache."""
        self.library.disk_cache.flush()


_DEFAULTS = CallOptions()


class Preparation:
    """One call on its way to a :class:`PreparedCall`. Use it once.

    ``chain`` is set as soon as the chain is built: the result of a call that is refused later
    lists it.
    """

    def __init__(
        self,
        preparer: Preparer,
        item_id: str,
        options: CallOptions = _DEFAULTS,
        *,
        snapshot: Snapshot | None = None,
    ) -> None:
        """``snapshot`` is one that was just made for this call; by default a new one."""
        self.chain: Chain = ()
        self._preparer = preparer
        self._item_id = item_id
        self._options = options
        self._snapshot = snapshot

    def prepare(
        self, parameters: Mapping[str, Any] | None = None, *, few: bool = False
    ) -> PreparedCall:
        """Verify the chain, and complete it.

        Raises a ``RyeError``, or a ``LiluxError`` for a ``.env`` that cannot be used. With ``few``
        it raises ``ManyDependencies`` for a call that would block an event loop.
        """
        check_timeout(self._options.timeout)
        return self.complete(self.verify(few=few), parameters)

    def complete(
        self, verified: VerifiedChain, parameters: Mapping[str, Any] | None = None
    ) -> PreparedCall:
        """Add parameters, environment and config; the last part of :meth:`prepare`.

        ``verified`` may come from another preparer.
        """
        parts = self._preparer
        chain, anchor = verified.chain, verified.anchor
        self.chain = chain
        given = parts.parameters.admit(chain[0], parameters)
        environment = parts.environments.resolve(chain)
        return PreparedCall(
            chain=chain,
            lock=verified.lock,
            anchor=anchor,
            dependencies=verified.dependencies,
            parameters=given,
            environment=environment,
            config=parts.configs.build(
                chain, given, environment, anchor, timeout=self._options.timeout
            ),
            options=self._options,
        )

    def verify(self, *, few: bool = False) -> VerifiedChain:
        """Verify everything that would run, without parameters and without an interpreter.

        Raises a ``RyeError``; with ``few`` also ``ManyDependencies``.
        """
        parts, options = self._preparer, self._options
        snapshot = self._snapshot or parts.library.snapshot()
        known = parts.chains.known(self._item_id, snapshot)
        tool = known[0].resolution if known else snapshot.resolve(self._item_id)
        lock = None
        if options.locked:
            lock = parts.locks.verify(tool, snapshot, known, frozen=options.frozen)
        chain = self.chain = known or parts.chains.build(self._item_id, snapshot)
        if lock is not None:
            parts.locks.confirm_chain(lock, chain)
        if options.validate_chain:
            parts.validator.require_valid(chain)
        anchor = resolve_anchor(chain, parts.context)
        dependencies = verify_dependencies(chain, anchor, snapshot.verify_file, few=few)
        if lock is not None:
            parts.locks.confirm_dependencies(lock, dependencies)
        return VerifiedChain(chain=chain, lock=lock, anchor=anchor, dependencies=dependencies)
