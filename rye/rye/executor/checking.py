"""Whether a tool would run, and what its author should know, without running it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rye.context import Context
from rye.errors import NoMetadataError, RyeError
from rye.executor.chain.build import Chain
from rye.executor.chain.snapshot import Library
from rye.executor.config.author_lines import (
    accept_command,
    permissions_advice,
    pins_advice,
)
from rye.executor.config.check import check_command_line
from rye.executor.config.programs import unseen_files
from rye.executor.run.prepare import CallOptions, Preparation, Preparer, VerifiedChain
from rye.executor.run.primitives import PRIMITIVE_MAP

# Tools are built on these; what confines a tool is its own declaration.
_FOUNDATIONS = ("primitive", "runtime", "library")


class Checked(NamedTuple):
    """The result for one tool."""

    error: RyeError | None = None
    warnings: tuple[str, ...] = ()
    chain: Chain = ()
    """The verified chain; empty if there is an error."""


class Checking:
    """Checks tools as a call does, up to the point where parameters are needed."""

    def __init__(self, context: Context) -> None:
        self._preparer = Preparer(context, PRIMITIVE_MAP)

    @property
    def library(self) -> Library:
        """The spaces and the trust store."""
        return self._preparer.library

    def environment(self, chain: Chain) -> Mapping[str, str]:
        """The environment of a call; raises the errors of a missing interpreter."""
        return self._preparer.environments.resolve(chain).env

    def project_items(self) -> Iterable[str]:
        """The ids of the tools of the project; files without metadata are left out."""
        snapshot = self._preparer.library.snapshot()
        for found in self._preparer.library.resolver.iter_items(snapshot.resolver.spaces[0]):
            try:
                snapshot.metadata(found)
            except NoMetadataError:
                continue
            except RyeError:
                pass  # reported by check()
            yield found.item_id

    def check(self, item_id: str) -> Checked:
        """Check one tool. A fault is a result, not an exception."""
        options = CallOptions(use_lockfile=False)
        try:
            verified = Preparation(self._preparer, item_id, options).verify()
            check_command_line(verified.chain, self._preparer.context)
            self._require_lockfile(verified)
            return Checked(None, tuple(self._warnings(verified)), verified.chain)
        except RyeError as error:
            return Checked(error)

    def _require_lockfile(self, verified: VerifiedChain) -> None:
        tool = verified.chain[0]
        if verified.needs_lock and self._preparer.lockfiles.find(tool.item_id) is None:
            self._preparer.locks.refuse_unlocked(tool, verified.dependencies)

    def _warnings(self, verified: VerifiedChain) -> Iterable[str]:
        chain, tool = verified.chain, verified.chain[0]
        names = self._unasked_names(chain)
        if names:
            yield (
                f"{tool.item_id!r} mentions {', '.join(names)}, which the project's .env sets and "
                f"the tool does not ask for; if it reads the variable, "
                f"{permissions_advice(tool, names)}, then run: {accept_command(tool)}"
            )
        context = self._preparer.context
        if tool.metadata.permissions is None and tool.metadata.tool_type not in _FOUNDATIONS:
            yield (
                f"{tool.item_id!r} is unconfined: it can do everything that its user can do; "
                f"declare what it needs as permissions in {tool.path}"
            )
        for unseen in unseen_files(chain, verified.anchor, context, verified.dependencies):
            yield (
                f"{tool.item_id!r} runs {unseen.program}, which reads {' and '.join(unseen.names)} "
                f"by itself, and nothing pins that; review it, {pins_advice(tool, unseen.names)}, "
                f"then run: {accept_command(tool)}"
            )

    def _unasked_names(self, chain: Chain) -> list[str]:
        """The names of the ``.env`` in the text of a tool that does not get their values."""
        tool = chain[0]
        if tool.space == "system" or tool.path is None:
            return []
        words = set(re.findall(rb"\w+", tool.path.read_bytes()))
        unasked = self._preparer.environments.unasked(chain)
        return sorted(name for name in unasked if name.encode() in words)
