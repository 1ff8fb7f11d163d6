"""What the signed files of a chain allow together."""

from __future__ import annotations

from collections.abc import Sequence

from rye.items.element import ChainElement
from rye.items.permissions import PROJECT, TMP, Permissions, joined

DIRECT = Permissions(write=(PROJECT, TMP))
"""What a runtime may use that is called directly."""


def chain_permissions(chain: Sequence[ChainElement]) -> Permissions | None:
    """What the signed files of a chain allow; ``None`` if the tool is not confined.

    The tool decides whether it is confined. The runtimes add what they need themselves; a
    primitive adds nothing, since its permissions are for direct calls. The permissions of a runtime
    are what it adds to a tool, so a direct call of it, which runs code in the project, gets more.
    """
    own = chain[0].metadata.permissions
    if own is None:
        return None
    return joined([own, *runtime_permissions(chain)])


def runtime_permissions(chain: Sequence[ChainElement]) -> list[Permissions]:
    """What the runtimes of a chain need themselves."""
    bases = [
        element.metadata.permissions
        for element in chain[1:]
        if element.metadata.permissions is not None and element.executor_id is not None
    ]
    if chain[0].metadata.tool_type == "runtime":
        bases.append(DIRECT)
    return bases
