"""Everything between an item id and a job that can start, as one plain sequence.

::

    resolve → lock → chain → confirm → validate → anchor → dependencies → pins   verify()
    → parameters → environment → config → permissions                        complete()

Every way to a tool goes through here: ``execute()``, the blocking call and a dry run prepare it;
``rye lock``, ``rye chain`` and ``rye show`` verify it. A pin can therefore never accept what a call
refuses.

Nothing here is shared between threads. A :class:`Preparer`, with all its caches, belongs to one
thread at a time; see ``run/execute.py`` for the thread that verifies large calls.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping

from lilux.record import Record, field, replaced

from rye.closure.compiled import CompileJob
from rye.closure.manifest import Closure
from rye.closure.store import Copy
from rye.context import Context
from rye.executor.chain.anchor import Anchor, resolve_anchor
from rye.executor.chain.build import Chain, ChainBuilder
from rye.executor.chain.dependencies import PROJECT, dependency_files, verified_hashes
from rye.executor.chain.project_files import PinnedFiles
from rye.executor.chain.snapshot import Library, Snapshot
from rye.executor.chain.validate import ChainValidator
from rye.executor.config.build import ConfigBuilder, ExecutionConfig
from rye.executor.config.environment import ChainEnvironment, Environments
from rye.executor.config.named_files import NamedFiles
from rye.executor.config.placement import Placement
from rye.executor.locks.file import LockfileResolver, StoredLock
from rye.executor.locks.guard import LockGuard
from rye.executor.run.closures import Closures
from rye.executor.run.confine import Confining, Widening
from rye.executor.run.originals import Originals
from rye.executor.run.parameters import ParameterGate, check_timeout
from rye.executor.run.stdin import with_stdin
from rye.permissions.settings import REFUSE, UserSettings
from rye.spaces.ids import SUBPROCESS
from rye.spaces.model import Space

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    OnStep = Callable[[str], None]
    """Is called with the name of each step when it has ended."""


class CallOptions(Record, frozen=True, kw_only=True):
    """The options of a call that decide what is verified and how it runs."""

    validate_chain: bool = True
    use_lockfile: bool = True
    frozen: bool = False
    """Refuse a tool without a lockfile, whatever ``use_lockfile`` says."""
    timeout: float | None = None
    """Seconds; takes precedence over the timeout of the chain."""
    widening: Widening | None = None
    """What a person allows for this call beyond the permissions of the tool."""
    unenforced: str = REFUSE
    """What to do with permissions that cannot be enforced, unless the user's settings say."""
    confined: bool = True
    """Confine the tool to its permissions. False only for `rye permissions learn`."""

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
    closure: Closure
    """All of it, as one digest."""
    read: Mapping[str, str]
    """Path → SHA-256 of all bytes of each signed file."""
    copy: Copy | None = None
    """The copy that runs; ``None`` if nothing is read from it, or if it was not needed yet."""
    needs_lock: bool = False
    """True if it runs files that only a lockfile vouches for; see ``chain/project_files.py``."""
    needs_cwd: bool = False
    """True if the files that it names depend on the working directory of the call."""


class PreparedCall(Record, frozen=True, kw_only=True):
    """A call that is ready to run. Parameters may be secrets and are not in the repr."""

    chain: Chain
    lock: StoredLock | None
    anchor: Anchor | None
    dependencies: Mapping[str, str]
    closure: Closure
    """What runs, as one digest."""
    placement: Placement
    """Where the call finds its files: in a copy of the closure."""
    compile_job: CompileJob | None = None
    """What to compile after the call, so that the next one need not; ``None`` if nothing."""
    note: str = ""
    """Why the copy is only temporary; empty if it is not."""
    parameters: Mapping[str, Any] = field(repr=False)
    """Validated, with the defaults of the schema."""
    environment: ChainEnvironment
    config: ExecutionConfig
    """What the primitive is called with."""
    options: CallOptions
    programs: tuple[str, ...] = ()
    """The programs outside the project, for the lockfile of a first success."""

    @property
    def originals(self) -> Originals:
        """The author's names of the files that run."""
        return Originals(self.placement.root, self.closure.folders)

    @property
    def needs_lock(self) -> bool:
        """True if a success must be pinned."""
        return self.options.locked and self.lock is None and self.chain[0].path is not None


class Preparer:
    """The parts that prepare calls, with what they remember from one call to the next."""

    def __init__(
        self,
        context: Context,
        primitives: Container[str],
        *,
        confined_only: bool = False,
        own: tuple[Space, ...] | None = None,
    ) -> None:
        """``own`` replaces the spaces of the project and of the user."""
        self.context = context
        self.library = Library(context, own=own)
        self.chains = ChainBuilder(primitives)
        self.validator = ChainValidator()
        self.lockfiles = LockfileResolver(
            context,
            spaces=self.library.resolver.spaces,
            disk_cache=self.library.disk_cache,
        )
        self.locks = LockGuard(self.lockfiles)
        self.parameters = ParameterGate(self.library.disk_cache)
        self.pinned_files = PinnedFiles(context.project_path)
        self.named_files = NamedFiles(context)
        self.environments = Environments(context, self.library.disk_cache)
        self.configs = ConfigBuilder(context)
        self.closures = Closures(context, self.library.disk_cache)
        self.confining = Confining(
            context,
            UserSettings(context, self.library.disk_cache),
            confined_only=confined_only,
        )

    def flush(self) -> None:
        """Write what the next process can use to the disk cache."""
        self.library.disk_cache.flush()

    def close(self) -> None:
        """Flush, and remove temporary files. The preparer may be used again."""
        self.flush()
        self.closures.store.close()


_DEFAULTS = CallOptions()


def no_step(_name: str) -> None:
    """Ignore the end of a step."""


class Preparation:
    """One call on its way to a :class:`PreparedCall`. Use it once.

    ``chain`` is set as soon as the chain is built, and ``closure`` as soon as all its files are
    verified: the result of a call that is refused later has them.
    """

    def __init__(
        self,
        preparer: Preparer,
        item_id: str,
        options: CallOptions = _DEFAULTS,
        *,
        snapshot: Snapshot | None = None,
        on_step: OnStep = no_step,
    ) -> None:
        """``snapshot`` is one that was just made for this call; by default a new one."""
        self.chain: Chain = ()
        self.closure: Closure | None = None
        self._preparer = preparer
        self._item_id = item_id
        self._options = options
        self._snapshot = snapshot
        self._on_step = on_step

    def prepare(
        self, parameters: Mapping[str, Any] | None = None, *, few: bool = False
    ) -> PreparedCall:
        """Verify the chain, and complete it.

        Raises a ``RyeError``, or a ``LiluxError`` for a ``.env`` that cannot be used. With ``few``
        it raises ``ManyDependencies`` for a call that would block an event loop.
        """
        check_timeout(self._options.timeout)
        return self.complete(self.copied(self.verify(few=few)), parameters)

    def copied(self, verified: VerifiedChain) -> VerifiedChain:
        """Check, or make, the copy that the call will run.

        Raises :class:`ClosureError` for a file that changed since it was verified.
        """
        closures = self._preparer.closures
        copy = closures.copy(verified.closure, verified.anchor, verified.read)
        self._on_step("copy")
        return replaced(verified, copy=copy)

    def complete(
        self, verified: VerifiedChain, parameters: Mapping[str, Any] | None = None
    ) -> PreparedCall:
        """Add parameters, environment and config; the last part of :meth:`prepare`.

        ``verified`` comes from :meth:`copied`, perhaps of another preparer.
        """
        parts = self._preparer
        chain, anchor = verified.chain, verified.anchor
        self.chain, self.closure = chain, verified.closure
        if verified.needs_lock and verified.lock is None:
            parts.locks.refuse_unlocked(chain[0], verified.dependencies)
        if verified.needs_lock:
            pinned = next(name for name in verified.dependencies if name.startswith(PROJECT))
            parts.environments.admit_pinned(chain, pinned.removeprefix(PROJECT))
        given = parts.parameters.admit(chain[0], parameters)
        self._on_step("parameters")
        environment = parts.environments.resolve(chain)
        self._on_step("environment")
        programs: tuple[str, ...] = ()
        if verified.lock is None and self._options.locked:
            from rye.executor.config.programs import outside_programs

            programs = outside_programs(chain, anchor, parts.context, environment.env)
        placement, compile_job = parts.closures.place(
            verified.closure, anchor, verified.copy, chain, environment.env
        )
        config = parts.configs.build(
            chain,
            given,
            environment,
            placement.anchor,
            timeout=self._options.timeout,
            places=placement.names,
        )
        if verified.needs_cwd:
            cwd = config.config.get("cwd")
            parts.named_files.require_pinned(chain, anchor, verified.dependencies, cwd)
        config = self._without_shim(config, chain)
        self._on_step("config")
        if self._options.confined:
            config = parts.confining.confine(
                chain, anchor, environment, config, self._options, own=placement.folders
            )
            self._on_step("permissions")
        # After the confinement, which passes only the variables that the tool may have.
        config = with_stdin(chain, config)
        return PreparedCall(
            chain=chain,
            lock=verified.lock,
            anchor=anchor,
            dependencies=verified.dependencies,
            closure=verified.closure,
            placement=placement,
            compile_job=compile_job,
            note="" if verified.copy is None else verified.copy.note,
            parameters=given,
            environment=environment,
            config=config,
            options=self._options,
            programs=programs,
        )

    def _without_shim(self, config: ExecutionConfig, chain: Chain) -> ExecutionConfig:
        """Replace a command that is a version manager's shim by its program.

        The caller of a primitive names the program, and gets what it names.
        """
        if config.primitive_id != SUBPROCESS or len(chain) == 1:
            return config
        command, path = config.config["command"], config.config["env"].get("PATH", "")
        program = self._preparer.environments.behind_command(chain, command, path)
        if program == command:
            return config
        return replaced(config, config={**config.config, "command": program})

    def verify(self, *, few: bool = False) -> VerifiedChain:
        """Verify everything that would run, without parameters and without an interpreter.

        Raises a ``RyeError``; with ``few`` also ``ManyDependencies``.
        """
        parts, options = self._preparer, self._options
        snapshot = self._snapshot or parts.library.snapshot()
        known = parts.chains.known(self._item_id, snapshot)
        tool = known[0].resolution if known else snapshot.resolve(self._item_id)
        self._on_step("resolve")
        lock = None
        if options.locked:
            lock = parts.locks.verify(tool, snapshot, known, frozen=options.frozen)
            self._on_step("lockfile")
        chain = self.chain = known or parts.chains.build(self._item_id, snapshot)
        self._on_step("chain and signatures")
        if lock is not None:
            parts.locks.confirm_chain(lock, chain)
        if options.validate_chain:
            parts.validator.require_valid(chain)
            self._on_step("validation")
        anchor = resolve_anchor(chain, parts.context)
        files = dependency_files(chain, anchor, few=few)
        dependencies = verified_hashes(files, chain[0].item_id, snapshot.verify_file)
        data: Collection[str] = ()
        if any(one.metadata.files for one in chain):
            from rye.executor.chain.data_files import verified_data_files

            found = verified_data_files(chain, anchor, snapshot.verify_file, few=few)
            data = found.digests.keys() - dependencies.keys()
            dependencies = {**found.digests, **dependencies}
            files = {**found.files, **files}
        pins = parts.pinned_files.digests(chain, few=few)
        if pins:
            dependencies = {**dependencies, **pins}
        needs_cwd = parts.named_files.require_pinned(chain, anchor, dependencies)
        if lock is not None:
            parts.locks.confirm_dependencies(lock, dependencies)
        self._on_step("dependencies")
        self.closure = parts.closures.close(chain, anchor, dependencies, files, data)
        self._on_step("closure")
        return VerifiedChain(
            chain=chain,
            lock=lock,
            anchor=anchor,
            dependencies=dependencies,
            closure=self.closure,
            read=_read(snapshot, self.closure),
            needs_lock=bool(pins),
            needs_cwd=needs_cwd,
        )


def _read(snapshot: Snapshot, closure: Closure) -> dict[str, str]:
    digests = [(path, snapshot.digest(path)) for path, _ in closure.sources]
    return {path: digest for path, digest in digests if digest is not None}
