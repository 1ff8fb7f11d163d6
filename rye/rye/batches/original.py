"""The tool that a batch began with, also after its files have changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rye.errors import BatchError, RyeError
from rye.executor.run.prepare import CallOptions, Preparation, Preparer, VerifiedChain
from rye.executor.run.primitives import PRIMITIVE_MAP
from rye.history.stored_tool import stored_tool

if TYPE_CHECKING:
    from rye.context import Context
    from rye.spaces.model import SpaceName


def has_changed(tool: str, closure: str, context: Context) -> bool:
    """True if the tool is now another one than the closure with this digest."""
    try:
        return _verified(tool, Preparer(context, PRIMITIVE_MAP)).closure.digest != closure
    except RyeError:
        return True


@contextmanager
def original_tool(
    tool: str, closure: str, space: SpaceName, context: Context
) -> Iterator[VerifiedChain]:
    """The tool from the private copy of its closure, verified again: by keys trusted now.

    Raises :class:`BatchError` if there is none that can be used.
    """
    with stored_tool(closure, tool, space, context) as own:
        found, reason = None, "it was removed"
        if own is not None:
            preparer = Preparer(context, PRIMITIVE_MAP, own=(own,))
            try:
                found, reason = _verified(tool, preparer), "it is not the same"
            except RyeError as error:
                reason = error.reason
        if found is None or found.closure.digest != closure:
            raise BatchError(
                f"{tool!r} has changed since the batch was started, and the copy of what it was "
                f"cannot be used: {reason}",
                hint="restore it, or start another batch",
            )
        try:
            yield found
        finally:
            preparer.close()


def _verified(tool: str, preparer: Preparer) -> VerifiedChain:
    # The digest is a stricter pin than a lockfile, which may have moved on.
    preparation = Preparation(preparer, tool, CallOptions(use_lockfile=False))
    return preparation.copied(preparation.verify())
