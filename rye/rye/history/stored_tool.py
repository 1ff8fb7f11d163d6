"""A tool as it was: its files from the store of closures, in a space of their own.

The runtimes are those of this machine. Whether the result is the closure that ran before is decided
by its digest, after everything was verified again: signatures by keys that are trusted now.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rye.closure.manifest import FOLDERS, TOOL
from rye.closure.store import store_of
from rye.context import Context
from rye.errors import ClosureError
from rye.spaces.model import Space, SpaceName


@contextmanager
def stored_tool(
    digest: str, item_id: str, space: SpaceName, context: Context
) -> Iterator[Space | None]:
    """A space with the tool of a stored closure; ``None`` if there is none that can be used.

    Tools of the system space are not served: only there is their key trusted.
    """
    with tempfile.TemporaryDirectory(prefix="rye-replay-") as folder:
        root = Path(folder).resolve() / ".ai"
        usable = space != "system" and _fill(root, digest, item_id, context)
        yield Space(name=space, root=root) if usable else None


def _fill(root: Path, digest: str, item_id: str, context: Context) -> bool:
    try:
        stored = store_of(context).open(digest)
    except ClosureError:
        return False
    tool = stored.manifest.tool
    if tool is None:
        return False
    # The files of a tool keep their places relative to each other; the id says where that is.
    path = f"{item_id}{Path(tool.path).suffix}"
    if path != tool.path and not path.endswith(f"/{tool.path}"):
        return False
    base = root / "tools" / path.removesuffix(tool.path)
    for one in stored.manifest.files:
        if one.place is None or FOLDERS.get(one.role) != FOLDERS[TOOL]:
            continue
        target = base / one.path
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copy(Path(stored.root, one.place), target)
    return True
