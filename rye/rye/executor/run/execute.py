"""From an item id and parameters to a result: the stations of one call, in their order."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType, coroutine

from lilux.primitives.errors import LiluxError
from lilux.record import replaced

from rye.context import Context
from rye.errors import LockError, RyeError
from rye.executor.caches import BoundedDict, CacheEntry
from rye.executor.chain.anchor import Anchor, resolve_anchor
from rye.executor.chain.build import (
    MAX_CHAIN_DEPTH,
    Chain,
    build_chain,
    describe_chain,
    is_current,
    remembered,
)
from rye.executor.chain.dependencies import verify_dependencies
from rye.executor.chain.snapshot import Library, Snapshot
from rye.executor.chain.validate import ChainValidator
from rye.executor.config.build import ConfigBuilder, ExecutionConfig
from rye.executor.config.environment import ChainEnvironment, Environments
from rye.executor.locks.file import LockfileResolver
from rye.executor.locks.guard import LockGuard

# Not when something fails: then there may be no descriptor left to import it with.
from rye.executor.run.failure import failure_of, refuse_bad_options
from rye.executor.run.outcome import Outcome, outcome_of
from rye.executor.run.parameters import ParameterGate
from rye.executor.run.primitives import PRIMITIVE_MAP, OnOutput, PrimitivePool
from rye.executor.run.result import ExecutionResult
from rye.items.element import ChainElement
from rye.spaces.model import Resolution

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, Self


class PrimitiveExecutor:
    """Runs tools by their ids. Any number of calls may be under way in one event loop.

    Use it as an async context manager, or call :meth:`aclose`, to close idle connections.
    """

    PRIMITIVE_MAP: ClassVar[Mapping[str, type[Any]]] = PRIMITIVE_MAP
    MAX_CHAIN_DEPTH: ClassVar[int] = MAX_CHAIN_DEPTH

    def __init__(
        self,
        project_path: Path | str | None = None,
        user_space: Path | str | None = None,
        system_space: Path | str | None = None,
        *,
        context: Context | None = None,
    ) -> None:
        """``context`` takes the place of the three paths and of the environment of the process."""
        self.context = context or Context.from_machine(project_path, user_space, system_space)
        self._library = Library(self.context)
        self._chain_cache: dict[str, CacheEntry[Chain]] = BoundedDict()
        self._metadata_cache = self._library.metadata_cache
        self._validator = ChainValidator()
        self._locks = LockGuard(
            LockfileResolver(
                self.context,
                spaces=self._library.resolver.spaces,
                disk_cache=self._library.disk_cache,
            )
        )
        self._parameters = ParameterGate(self._library.disk_cache)
        self._environments = Environments(self.context)
        self._configs = ConfigBuilder(self.context)
        self._primitives = self._pool()

    def _pool(self) -> PrimitivePool:
        return PrimitivePool(self.PRIMITIVE_MAP)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close what the primitives hold open. The executor may be used again."""
        await self._primitives.aclose()
        self._library.disk_cache.flush()

    async def execute(
        self,
        item_id: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        validate_chain: bool = True,
        use_lockfile: bool = True,
        dry_run: bool = False,
        frozen: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109 - of the job, and by the specification
        on_output: OnOutput | None = None,
    ) -> ExecutionResult:
        """Run the tool ``item_id``; never raises anything but cancellation, which ends the job.

        ``timeout`` in seconds goes before the chain's own. ``frozen`` refuses a tool without a
        lockfile. ``on_output(stream, text)`` gets output as it comes. A ``dry_run`` does all but
        run, and gives the plan as ``data`` and as ``metadata["plan"]``.
        """
        started = time.perf_counter()
        chain: Chain = ()
        try:
            refuse_bad_options(timeout)
            locked = use_lockfile or frozen
            snapshot = self._library.snapshot()
            known = self._known_chain(item_id, snapshot)
            tool = known[0].resolution if known else self._resolve_tool_path(item_id, snapshot)
            lock = self._locks.verify(tool, snapshot, known, frozen=frozen) if locked else None
            chain = known or self._build_chain(item_id, snapshot)
            if lock is not None:
                self._locks.confirm_chain(lock, chain)
            if validate_chain:
                self._validator.require_valid(chain)
            params = self._parameters.admit(chain[0], parameters)
            env = self._resolve_chain_env(chain)
            anchor = resolve_anchor(chain, self.context)
            dependencies = await self._verify_dependencies(chain, anchor, snapshot)
            if lock is not None:
                self._locks.confirm_dependencies(lock, dependencies)
            config = self._build_execution_config(chain, params, env, anchor, timeout=timeout)
            if dry_run:
                from rye.executor.run.plan import masked_config, planned

                shown = masked_config(chain, params, env, anchor, self.context)
                outcome = planned(chain, config, shown, lock, dependencies, use_lockfile=locked)
            else:
                ran = await self._primitives.run(
                    config.primitive_id, config.config, config.params, on_output
                )
                outcome = outcome_of(config, ran, chain)
                if outcome.success and locked and lock is None and chain[0].path is not None:
                    outcome = await self._keep_lock(chain, dependencies, outcome)
        except Exception as error:  # noqa: BLE001 - the promise is a result for whatever goes wrong
            outcome = failure_of(error)
        return ExecutionResult(
            success=outcome.success,
            data=outcome.data,
            error=outcome.error,
            duration_ms=(time.perf_counter() - started) * 1000,
            chain=describe_chain(chain),
            metadata=outcome.metadata,
        )

    def _resolve_tool_path(self, item_id: str, snapshot: Snapshot | None = None) -> Resolution:
        """Where the item is: project, user or system space, in this order."""
        return (snapshot or self._library.snapshot()).resolve(item_id)

    def _build_chain(self, item_id: str, snapshot: Snapshot | None = None) -> Chain:
        """The chain ``[tool, …, primitive]``, from the cache if building it would give the same."""
        snapshot = snapshot or self._library.snapshot()
        known = self._known_chain(item_id, snapshot)
        if known is not None:
            return known
        chain = build_chain(item_id, snapshot, self.PRIMITIVE_MAP)
        self._chain_cache[item_id] = remembered(chain, snapshot)
        return chain

    def _known_chain(self, item_id: str, snapshot: Snapshot) -> Chain | None:
        """The chain of the cache, if building it anew would give the same; else it is dropped."""
        entry = self._chain_cache.get(item_id) if type(item_id) is str else None
        if entry is None:
            return None
        if not is_current(entry, item_id, snapshot):
            del self._chain_cache[item_id]
            return None
        if entry.watch is None:
            self._chain_cache[item_id] = remembered(entry.data, snapshot)
        return entry.data

    def _resolve_chain_env(self, chain: Sequence[ChainElement]) -> ChainEnvironment:
        """The environment, from the primitive to the tool; a later element overrides."""
        return self._environments.resolve(chain)

    async def _verify_dependencies(
        self, chain: Chain, anchor: Anchor | None, snapshot: Snapshot
    ) -> dict[str, str]:
        """The content hashes of what the chain brings along; most chains bring nothing.

        There may be thousands, so other tasks have their turns in between.
        """
        if all(one.metadata.anchor is None and one.metadata.verify_deps is None for one in chain):
            return {}
        return await coroutine(verify_dependencies)(chain, anchor, snapshot.vouch)

    def _build_execution_config(
        self,
        chain: Sequence[ChainElement],
        parameters: Mapping[str, Any],
        env: ChainEnvironment,
        anchor: Anchor | None = None,
        *,
        timeout: float | None = None,
    ) -> ExecutionConfig:
        """The rendered config of the primitive that the chain ends in."""
        return self._configs.build(chain, parameters, env, anchor, timeout=timeout)

    async def _keep_lock(
        self, chain: Chain, dependencies: Mapping[str, str], outcome: Outcome
    ) -> Outcome:
        """Pin the chain after its first success.

        What ran did run: a lockfile that cannot be written is told in the metadata. Only one that
        another run has made in the meantime, for other content, turns the outcome into a failure.
        """
        try:
            kept = await self._primitives.beside(lambda: self._locks.keep(chain, dependencies))
        except LockError as error:
            failed = failure_of(error)
            metadata = {**outcome.metadata, **failed.metadata}
            return replaced(outcome, success=False, error=failed.error, metadata=metadata)
        except (RyeError, LiluxError, OSError) as error:
            told = {"lockfile_error": failure_of(error).error}
        else:
            told = {"lockfile_created": str(kept.path)}
        return replaced(outcome, metadata={**outcome.metadata, **told})
